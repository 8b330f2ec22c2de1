// Waiting, through a seam, so that tests and the simulator run in virtual time.
//
// Timers is owned by main (or by a test) and outlives everything that waits. Reactor thread only.
#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "vk-provider/async/task.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::async {

/// One place at which one coroutine waits, until a time or until it is woken. A wake that comes before the wait is
/// kept, so that none is lost.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// True if the time was reached, false if wake() came first.
  virtual boost::asio::awaitable<bool> wait_until(base::TimePoint when) = 0;
  virtual void wake() = 0;

  /// Waits for wake() alone.
  boost::asio::awaitable<void> wait() { co_await wait_until(base::TimePoint::max()); }
};

class Timers : public base::Clock {
 public:
  virtual std::unique_ptr<Waiter> make_waiter() = 0;

  boost::asio::awaitable<void> sleep_until(base::TimePoint when);
  boost::asio::awaitable<void> sleep_for(base::Duration d);
};

/// The machine's clock and Asio's timers.
class ReactorTimers final : public Timers {
 public:
  explicit ReactorTimers(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  base::TimePoint now() const override { return clock_.now(); }
  base::WallTime wall() const override { return clock_.wall(); }
  std::unique_ptr<Waiter> make_waiter() override;

 private:
  boost::asio::any_io_executor executor_;
  base::SystemClock clock_;
};

}  // namespace spillway::async
