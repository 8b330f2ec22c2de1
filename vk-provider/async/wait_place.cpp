#include "vk-provider/async/wait_place.hpp"

namespace spillway::async {

boost::asio::awaitable<bool> WaitPlace::wait(Timers& timers, base::Deadline deadline) {
  const std::unique_ptr<Waiter> waiter = timers.make_waiter();
  struct Occupied {
    Waiter*& place;
    ~Occupied() { place = nullptr; }
  } occupied{waiter_};
  waiter_ = waiter.get();
  co_return !co_await waiter->wait_until(deadline);
}

}  // namespace spillway::async
