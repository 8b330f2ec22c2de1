#include "vk-provider/async/semaphore.hpp"

#include <algorithm>

namespace spillway::async {

boost::asio::awaitable<Semaphore::Permit> Semaphore::acquire(base::Deadline deadline) {
  if (free_ > 0) {
    --free_;
    co_return Permit(this);
  }
  const std::unique_ptr<Waiter> waiter = timers_.make_waiter();
  queue_.push_back(waiter.get());
  // Leaves the queue also when this coroutine is cancelled in the wait; a permit that was already handed over goes on
  // to the next.
  struct Place {
    Semaphore* semaphore;
    Waiter* waiter;
    bool taken = false;
    ~Place() {
      const auto it = std::find(semaphore->queue_.begin(), semaphore->queue_.end(), waiter);
      if (it != semaphore->queue_.end()) {
        semaphore->queue_.erase(it);
      } else if (!taken) {
        semaphore->give();
      }
    }
  } place{this, waiter.get()};
  co_await waiter->wait_until(deadline);
  const bool still_queued = std::find(queue_.begin(), queue_.end(), waiter.get()) != queue_.end();
  if (still_queued) co_return Permit();
  place.taken = true;
  co_return Permit(this);
}

void Semaphore::give() {
  if (queue_.empty()) {
    ++free_;
    return;
  }
  Waiter* const next = queue_.front();
  queue_.pop_front();
  next->wake();
}

}  // namespace spillway::async
