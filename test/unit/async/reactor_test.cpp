#include <catch2/catch.hpp>

#include <csignal>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/reactor.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;

TEST_CASE("the first SIGTERM calls back, and the default action comes back for the second") {
  async::Reactor reactor;
  int calls = 0;
  reactor.on_stop_signal([&] { ++calls; });
  ::raise(SIGTERM);
  reactor.run();
  CHECK(calls == 1);
  struct sigaction action{};
  ::sigaction(SIGTERM, nullptr, &action);
  CHECK(action.sa_handler == SIG_DFL);
}

TEST_CASE("a reactor runs until it is stopped") {
  async::Reactor reactor;
  async::TaskGroup group(reactor.executor());
  bool reached = false;
  group.spawn([](async::Reactor* r, bool* out) -> async::Loop {
    co_await r->timers().sleep_for(1ms);
    *out = true;
    r->stop();
  }(&reactor, &reached));
  reactor.run();
  CHECK(reached);
  reactor.context().restart();
  reactor.run();  // the task ends
}

TEST_CASE("the lag of the reactor is noted each second") {
  spillway::test::VirtualReactor r;
  spillway::base::Metrics metrics;
  async::TaskGroup group(r.ctx.get_executor());
  group.spawn(async::probe_reactor_lag(r.timers, metrics));
  r.run_for(10s);
  CHECK_THAT(metrics.to_text(), Catch::Contains("spillway_reactor_lag_seconds_count 10"));
  CHECK_THAT(metrics.to_text(), Catch::Contains("le=\"0.0005\"} 10"));
  r.run(group.stop());
}
