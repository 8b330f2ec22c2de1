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

}  // namespace

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
