// The one event loop: its context, the signals that end the process, and a probe of how late it runs.
//
// Owned by main, outlives everything that runs on it. Not for tests of components: those have a virtual reactor.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"

namespace spillway::async {

class Reactor {
 public:
  Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  boost::asio::io_context& context() { return context_; }
  boost::asio::any_io_executor executor() { return context_.get_executor(); }
  Timers& timers() { return timers_; }

  /// Calls back on the first SIGTERM or SIGINT. The second one ends the process as if nobody had listened.
  void on_stop_signal(std::function<void()> callback);

  /// Runs until stop(), or until there is nothing left to do.
  void run();
  void stop() { context_.stop(); }

 private:
  boost::asio::io_context context_{1};
  ReactorTimers timers_;
  boost::asio::signal_set signals_;
};

/// Wakes each second and notes by how much it was late: spillway_reactor_lag_seconds. Runs until it is cancelled.
Loop probe_reactor_lag(Timers& timers, base::Metrics& metrics);

}  // namespace spillway::async
