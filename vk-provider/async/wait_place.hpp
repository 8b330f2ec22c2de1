// A place at which at most one coroutine waits for another one's sign.
//
// Owned by what both know; outlives the waiting. Reactor thread only. Costs a pointer while nobody waits. A sign that
// nobody waits for is lost: who waits looks first whether there is a reason to.
#pragma once

#include <memory>

#include "vk-provider/async/timer.hpp"

namespace spillway::async {

class WaitPlace {
 public:
  WaitPlace() = default;
  WaitPlace(const WaitPlace&) = delete;
  WaitPlace& operator=(const WaitPlace&) = delete;

  /// False if the deadline came before the sign.
  boost::asio::awaitable<bool> wait(Timers& timers, base::Deadline deadline);
  void wake() {
    if (waiter_ != nullptr) waiter_->wake();
  }

 private:
  Waiter* waiter_ = nullptr;
};

}  // namespace spillway::async
