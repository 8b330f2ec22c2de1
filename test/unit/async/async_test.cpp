#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
using spillway::test::VirtualReactor;

namespace {

async::Loop note_times(async::Timers& timers, int& count) {
  for (;;) {
    co_await timers.sleep_for(1min);
    ++count;
  }
}

async::Loop hold_for(async::Timers& timers, async::Semaphore& semaphore, spillway::base::Duration d, int& running,
                     int& most) {
  auto permit = co_await semaphore.acquire(spillway::base::TimePoint::max());
  most = std::max(most, ++running);
  co_await timers.sleep_for(d);
  --running;
}

async::Loop wait_for_permit(async::Timers& timers, async::Semaphore& semaphore, bool& got) {
  auto permit = co_await semaphore.acquire(timers.now() + 10s);
  got = static_cast<bool>(permit);
}

async::Loop stop_then_go_on(async::Timers& timers, async::TaskGroup& inner, bool& stopped, bool& went_on) {
  co_await inner.stop();
  stopped = true;
  co_await timers.sleep_for(1h);
  co_await timers.sleep_for(0s);  // a sleep that was cut short is noticed here
  went_on = true;
}

/// Takes a minute to end after it was cancelled.
async::Loop end_slowly(async::Timers& timers) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const auto end = timers.now() + 1min;
  while (timers.now() < end) co_await timers.sleep_for(1s);
}

}  // namespace

TEST_CASE("who has stopped a group can still be cancelled") {
  VirtualReactor r;
  async::TaskGroup inner(r.ctx.get_executor());
  async::TaskGroup outer(r.ctx.get_executor());
  int count = 0;
  inner.spawn(note_times(r.timers, count));
  bool stopped = false;
  bool went_on = false;
  outer.spawn(stop_then_go_on(r.timers, inner, stopped, went_on));
  r.run_for(1s);
  CHECK(stopped);
  r.run(outer.stop());
  CHECK_FALSE(went_on);
}

async::Loop note_begin(bool& begun) {
  begun = true;
  co_return;
}

TEST_CASE("a task does not begin in the midst of who starts it") {
  VirtualReactor r;
  async::TaskGroup group(r.ctx.get_executor());
  bool begun = false;
  bool begun_inside = false;
  const auto starter = [](async::TaskGroup& tasks, bool& began, bool& inside) -> async::Loop {
    tasks.spawn(note_begin(began));
    inside = began;
    co_return;
  };
  r.run(starter(group, begun, begun_inside));
  CHECK_FALSE(begun_inside);
  r.run(group.join());
  CHECK(begun);
}

TEST_CASE("a cancellation that comes while a group is being stopped takes effect afterwards") {
  VirtualReactor r;
  async::TaskGroup inner(r.ctx.get_executor());
  async::TaskGroup outer(r.ctx.get_executor());
  inner.spawn(end_slowly(r.timers));
  bool stopped = false;
  bool went_on = false;
  outer.spawn(stop_then_go_on(r.timers, inner, stopped, went_on));
  r.run_for(1s);
  const auto begin = r.timers.now();
  r.run(outer.stop());
  CHECK(inner.size() == 0);
  CHECK(stopped);
  CHECK_FALSE(went_on);
  CHECK(r.timers.now() - begin < 2min);
}

TEST_CASE("several may wait for the end of a group") {
  VirtualReactor r;
  async::TaskGroup inner(r.ctx.get_executor());
  async::TaskGroup outer(r.ctx.get_executor());
  inner.spawn(end_slowly(r.timers));
  bool first = false;
  bool second = false;
  bool went_on = false;
  outer.spawn(stop_then_go_on(r.timers, inner, first, went_on));
  outer.spawn(stop_then_go_on(r.timers, inner, second, went_on));
  r.run_for(2min);
  CHECK(first);
  CHECK(second);
  r.run(outer.stop());
}

TEST_CASE("an hour of virtual time passes without sleeping") {
  VirtualReactor r;
  async::TaskGroup group(r.ctx.get_executor());
  int count = 0;
  group.spawn(note_times(r.timers, count));
  r.run_for(1h);
  CHECK(count == 60);
  r.run(group.stop());
  CHECK(group.size() == 0);
}

TEST_CASE("a wake that comes before the wait is not lost") {
  VirtualReactor r;
  const auto waiter = r.timers.make_waiter();
  waiter->wake();
  CHECK_FALSE(r.run(waiter->wait_until(r.timers.now() + 1h)));
  CHECK(r.run(waiter->wait_until(r.timers.now() + 1h)));
}

TEST_CASE("a semaphore never lets more through than it has permits") {
  VirtualReactor r;
  async::Semaphore semaphore(r.timers, 3);
  async::TaskGroup group(r.ctx.get_executor());
  int running = 0;
  int most = 0;
  for (int i = 0; i < 20; ++i) group.spawn(hold_for(r.timers, semaphore, 5s, running, most));
  r.run(group.join());
  CHECK(most == 3);
  CHECK(running == 0);
}

TEST_CASE("a permit survives the cancellation of the one who waits for it") {
  VirtualReactor r;
  async::Semaphore semaphore(r.timers, 1);
  int running = 0;
  int most = 0;
  async::TaskGroup holder(r.ctx.get_executor());
  holder.spawn(hold_for(r.timers, semaphore, 5s, running, most));
  r.settle();
  async::TaskGroup cancelled(r.ctx.get_executor());
  bool got = false;
  cancelled.spawn(wait_for_permit(r.timers, semaphore, got));
  r.settle();
  r.run(cancelled.stop());
  CHECK_FALSE(got);
  r.run(holder.join());
  r.run(wait_for_permit(r.timers, semaphore, got));
  CHECK(got);
}

TEST_CASE("a waiter whose deadline passes gets no permit") {
  VirtualReactor r;
  async::Semaphore semaphore(r.timers, 0);
  bool got = true;
  r.run(wait_for_permit(r.timers, semaphore, got));
  CHECK_FALSE(got);
}
