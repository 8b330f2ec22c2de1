#include "test/support/virtual_time.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace spillway::test {
namespace asio = boost::asio;

class VirtualWaiter final : public async::Waiter {
 public:
  VirtualWaiter(VirtualTimers& timers, asio::io_context& ctx)
      : timers_(timers), signal_(ctx, asio::steady_timer::time_point::max()) {}
  ~VirtualWaiter() override { leave(); }

  asio::awaitable<bool> wait_until(base::TimePoint when) override {
    if (woken_) {
      woken_ = false;
      co_return false;
    }
    if (when <= timers_.now()) {
      co_await asio::post(signal_.get_executor(), asio::use_awaitable);
      const bool woken = woken_;
      woken_ = false;
      co_return !woken;
    }
    // A wait without end is kept out of the queue: time cannot wake it.
    if (when != base::TimePoint::max()) {
      key_ = VirtualTimers::Key{when, timers_.sequence_++};
      timers_.waiting_.emplace(*key_, this);
    }
    waiting_ = true;
    co_await signal_.async_wait(asio::as_tuple(asio::use_awaitable));
    waiting_ = false;
    leave();
    const bool woken = woken_;
    woken_ = false;
    co_return !woken;
  }

  void wake() override {
    woken_ = true;
    if (waiting_) signal_.cancel();
  }

  void time_reached() {
    key_.reset();
    signal_.cancel();
  }

 private:
  void leave() {
    if (key_) timers_.waiting_.erase(*key_);
    key_.reset();
  }

  VirtualTimers& timers_;
  asio::steady_timer signal_;
  std::optional<VirtualTimers::Key> key_;
  bool waiting_ = false;
  bool woken_ = false;
};

std::unique_ptr<async::Waiter> VirtualTimers::make_waiter() { return std::make_unique<VirtualWaiter>(*this, ctx_); }

bool VirtualTimers::advance_to_next(base::TimePoint limit) {
  if (waiting_.empty() || waiting_.begin()->first.when > limit) return false;
  const auto it = waiting_.begin();
  VirtualWaiter* const waiter = it->second;
  advance_to(it->first.when);
  waiting_.erase(it);
  waiter->time_reached();
  return true;
}

void VirtualTimers::advance_to(base::TimePoint t) {
  if (t <= now_) return;
  wall_ += std::chrono::duration_cast<std::chrono::microseconds>(t - now_);
  now_ = t;
}

void VirtualReactor::run(asio::awaitable<void> task) {
  bool done = false;
  std::exception_ptr error;
  asio::co_spawn(ctx, std::move(task), [&](const std::exception_ptr& e) {
    error = e;
    done = true;
  });
  drive([&] { return done; });
  if (error) std::rethrow_exception(error);
}

void VirtualReactor::run_for(base::Duration d) {
  run_until([] { return false; }, d);
}

void VirtualReactor::settle() {
  ctx.restart();
  ctx.poll();
}

}  // namespace spillway::test
