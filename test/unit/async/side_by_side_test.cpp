#include "vk-provider/async/side_by_side.hpp"

#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using async::together;
using base::ErrorKind;
using test::VirtualReactor;

namespace {

async::Task<void> end_after(async::Timers& timers, base::Duration d, base::Result<void> outcome, int& ended) {
  struct End {
    int& count;
    ~End() { ++count; }
  } end{ended};
  co_await timers.sleep_for(d);
  co_await timers.sleep_for(0s);  // a sleep that was cut short is noticed here
  co_return outcome;
}

async::Loop count_minutes(async::Timers& timers, int& minutes) {
  for (;;) {
    co_await timers.sleep_for(1min);
    co_await timers.sleep_for(0s);
    ++minutes;
  }
}

async::Loop keep_outcome(async::Task<void> task, std::optional<base::Result<void>>& out) {
  out.emplace(co_await std::move(task));
}

base::Result<void> failed(const std::string& why) { return base::fail(ErrorKind::kInvalid, why); }

}  // namespace

TEST_CASE("side by side: the first to end ends the others, and its outcome counts") {
  VirtualReactor r;
  int ended = 0;
  const auto start = r.timers.now();
  const base::Result<void> outcome = GENERATE(base::Result<void>(), failed("first"));
  const auto said = r.run(async::first_of(
      together(end_after(r.timers, 2h, failed("second"), ended), end_after(r.timers, 1h, outcome, ended))));
  CHECK(said.has_value() == outcome.has_value());
  if (!outcome) CHECK(said.error().message == "first");
  CHECK(ended == 2);
  CHECK(r.timers.now() - start == 1h);
}

TEST_CASE("side by side: all are waited for, until one fails") {
  VirtualReactor r;
  int ended = 0;
  const auto start = r.timers.now();
  CHECK(r.run(async::all_of(together(end_after(r.timers, 2h, {}, ended), end_after(r.timers, 1h, {}, ended)))));
  CHECK(r.timers.now() - start == 2h);
  const auto said = r.run(async::all_of(together(end_after(r.timers, 3h, {}, ended), end_after(r.timers, 1h, {}, ended),
                                                 end_after(r.timers, 2h, failed("why"), ended))));
  REQUIRE_FALSE(said);
  CHECK(said.error().message == "why");
  CHECK(ended == 5);
  CHECK(r.timers.now() - start == 4h);
}

TEST_CASE("side by side: of no tasks all have succeeded") {
  VirtualReactor r;
  CHECK(r.run(async::all_of({})));
}

TEST_CASE("side by side: a helper runs as long as its main task, or less") {
  VirtualReactor r;
  int ended = 0;
  int minutes = 0;
  CHECK(r.run(async::with_helper(end_after(r.timers, 10min + 1s, {}, ended), count_minutes(r.timers, minutes))));
  CHECK(minutes == 10);
}

TEST_CASE("side by side: a caller that is cancelled takes all of them along") {
  VirtualReactor r;
  int ended = 0;
  std::optional<base::Result<void>> said;
  async::TaskGroup group(r.ctx.get_executor());
  group.spawn(keep_outcome(
      async::first_of(together(end_after(r.timers, 1h, {}, ended), end_after(r.timers, 2h, {}, ended))), said));
  SECTION("in the midst of it") { r.run_for(1min); }
  SECTION("before anything began") {}
  r.run(group.stop());
  if (said) CHECK(said->error().kind == ErrorKind::kCancelled);
  CHECK(group.size() == 0);
}
