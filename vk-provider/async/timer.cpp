#include "vk-provider/async/timer.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace spillway::async {
namespace asio = boost::asio;

namespace {

class ReactorWaiter final : public Waiter {
 public:
  ReactorWaiter(const asio::any_io_executor& executor, const base::Clock& clock) : timer_(executor), clock_(clock) {}

  asio::awaitable<bool> wait_until(base::TimePoint when) override {
    if (woken_) {
      woken_ = false;
      co_return false;
    }
    if (when == base::TimePoint::max()) {
      timer_.expires_at(asio::steady_timer::time_point::max());
    } else {
      timer_.expires_after(when - clock_.now());
    }
    waiting_ = true;
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    waiting_ = false;
    const bool woken = woken_;
    woken_ = false;
    co_return !woken;
  }

  void wake() override {
    woken_ = true;
    if (waiting_) timer_.cancel();
  }

 private:
  asio::steady_timer timer_;
  const base::Clock& clock_;
  bool waiting_ = false;
  bool woken_ = false;
};

}  // namespace

std::unique_ptr<Waiter> ReactorTimers::make_waiter() { return std::make_unique<ReactorWaiter>(executor_, clock_); }

asio::awaitable<void> Timers::sleep_until(base::TimePoint when) {
  const std::unique_ptr<Waiter> waiter = make_waiter();
  co_await waiter->wait_until(when);
}

asio::awaitable<void> Timers::sleep_for(base::Duration d) { co_await sleep_until(now() + d); }

}  // namespace spillway::async
