#include "vk-provider/async/reactor.hpp"

#include <algorithm>
#include <csignal>

namespace spillway::async {
namespace {

const std::vector<double> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};

}  // namespace

Reactor::Reactor() : timers_(context_.get_executor()), signals_(context_) {}

void Reactor::on_stop_signal(std::function<void()> callback) {
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.async_wait([this, callback = std::move(callback)](const boost::system::error_code& ec, int) {
    if (ec) return;
    // Gives the signals their default action back.
    signals_.clear();
    callback();
  });
}

void Reactor::run() { context_.run(); }

Loop probe_reactor_lag(Timers& timers, base::Metrics& metrics) {
  base::Histogram& lag =
      metrics.histogram("spillway_reactor_lag_seconds", "How late the event loop runs what is due.", {}, kBounds);
  for (base::TimePoint due = timers.now();;) {
    due = std::max(due, timers.now()) + std::chrono::seconds(1);
    co_await timers.sleep_until(due);
    lag.observe(std::chrono::duration<double>(timers.now() - due).count());
  }
}

}  // namespace spillway::async
