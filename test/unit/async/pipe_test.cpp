#include "vk-provider/async/pipe.hpp"

#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using async::Pipe;
using base::ErrorKind;

namespace {

using ReadResult = std::optional<base::Result<std::string>>;

async::Loop read_into(async::PipePtr pipe, base::Deadline deadline, ReadResult& out) {
  out.emplace(co_await Pipe::read(std::move(pipe), deadline));
}

async::Loop wait_into(async::PipePtr pipe, base::Deadline deadline, std::optional<bool>& out) {
  out.emplace(co_await Pipe::wait_for_room(std::move(pipe), deadline));
}

struct PipeFixture {
  PipeFixture() : pipe(std::make_shared<Pipe>(r.timers, 10)), group(r.ctx.get_executor()) {}
  ~PipeFixture() { r.run(group.stop()); }
  base::Result<std::string> read() { return r.run(Pipe::read(pipe, r.timers.now() + 1s)); }

  test::VirtualReactor r;
  async::PipePtr pipe;
  ReadResult got;
  std::optional<bool> room;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE_METHOD(PipeFixture, "pipe: a read gets all that is there, and then the end") {
  pipe->put("one");
  pipe->put("two");
  pipe->end();
  pipe->put("late");
  CHECK(*read() == "onetwo");
  CHECK(*read() == "");
  CHECK(*read() == "");
}

TEST_CASE_METHOD(PipeFixture, "pipe: an error comes after what was put before it") {
  pipe->put("one");
  pipe->fail(base::Error(ErrorKind::kUnavailable, "broken"));
  pipe->end();
  CHECK(*read() == "one");
  CHECK(read().error().message == "broken");
}

TEST_CASE_METHOD(PipeFixture, "pipe: a reader waits, but not for ever, and the pipe is as before") {
  CHECK(read().error().kind == ErrorKind::kDeadline);
  group.spawn(read_into(pipe, r.timers.now() + 1h, got));
  r.run_for(30min);
  CHECK_FALSE(got);
  pipe->put("x");
  r.settle();
  REQUIRE(got);
  CHECK(**got == "x");
}

TEST_CASE_METHOD(PipeFixture, "pipe: who waits for room gets it from the reader") {
  pipe->put("0123456789");
  CHECK_FALSE(pipe->has_room());
  CHECK_FALSE(r.run(Pipe::wait_for_room(pipe, r.timers.now() + 1s)));
  group.spawn(wait_into(pipe, r.timers.now() + 1h, room));
  r.run_for(1min);
  CHECK_FALSE(room);
  SECTION("that reads") { CHECK(*read() == "0123456789"); }
  SECTION("that leaves") { pipe->close_reader(); }
  r.settle();
  CHECK(room == true);
}

TEST_CASE_METHOD(PipeFixture, "pipe: nothing is kept for a reader that has left") {
  pipe->put("x");
  pipe->close_reader();
  for (int i = 0; i < 100; ++i) pipe->put("0123456789");
  CHECK(pipe->has_room());
  CHECK(*read() == "");
}
