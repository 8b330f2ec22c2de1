// Bounds how many coroutines do one thing at once. First come, first served.
//
// Owned by a component; reactor thread only. Waiting is ended by cancellation of the waiting task.
#pragma once

#include <deque>

#include "vk-provider/async/timer.hpp"

namespace spillway::async {

class Semaphore {
 public:
  Semaphore(Timers& timers, size_t permits) : timers_(timers), free_(permits) {}

  /// Held until it dies.
  class Permit {
   public:
    Permit() = default;
    explicit Permit(Semaphore* s) : semaphore_(s) {}
    Permit(Permit&& other) noexcept : semaphore_(other.semaphore_) { other.semaphore_ = nullptr; }
    Permit& operator=(Permit&& other) noexcept {
      if (this != &other) {
        release();
        semaphore_ = other.semaphore_;
        other.semaphore_ = nullptr;
      }
      return *this;
    }
    ~Permit() { release(); }
    void release() {
      if (semaphore_ != nullptr) semaphore_->give();
      semaphore_ = nullptr;
    }
    explicit operator bool() const { return semaphore_ != nullptr; }

   private:
    Semaphore* semaphore_ = nullptr;
  };

  /// Empty if the deadline came first.
  boost::asio::awaitable<Permit> acquire(base::Deadline deadline);

 private:
  void give();

  Timers& timers_;
  size_t free_;
  std::deque<Waiter*> queue_;  // those who wait; give() hands the permit to the first, so that it cannot be overtaken
};

}  // namespace spillway::async
