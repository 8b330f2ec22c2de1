#include "vk-provider/async/outbox.hpp"

#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using async::Outbox;
using base::ErrorKind;

namespace {

using SendResult = std::optional<base::Result<void>>;

async::Loop send_into(async::OutboxPtr outbox, std::string message, base::Deadline deadline, SendResult& out) {
  out.emplace(co_await Outbox::send(std::move(outbox), std::move(message), deadline));
}

async::Loop flush_into(async::OutboxPtr outbox, bool& done) {
  co_await Outbox::flush(std::move(outbox));
  done = true;
}

struct OutboxFixture {
  OutboxFixture() : outbox(std::make_shared<Outbox>(r.timers)), group(r.ctx.get_executor()) {}
  ~OutboxFixture() { r.run(group.stop()); }
  void send(std::string message, SendResult& out, base::Duration time = 1h) {
    group.spawn(send_into(outbox, std::move(message), r.timers.now() + time, out));
    r.settle();
  }
  std::optional<std::string> next() { return r.run(Outbox::next(outbox)); }
  void written() {
    outbox->written();
    r.settle();
  }

  test::VirtualReactor r;
  async::OutboxPtr outbox;
  SendResult first;
  SendResult second;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE_METHOD(OutboxFixture, "outbox: messages go out in their order, and each writer waits for its own") {
  send("one", first);
  send("two", second);
  outbox->post("three");
  CHECK(outbox->waiting() == 3);
  CHECK(next() == "one");
  CHECK_FALSE(first);
  written();
  CHECK(first);
  CHECK_FALSE(second);
  CHECK(next() == "two");
  written();
  CHECK(second);
  CHECK(next() == "three");
  written();
  CHECK(outbox->waiting() == 0);
}

TEST_CASE_METHOD(OutboxFixture, "outbox: what a cancelled writer has begun is still sent") {
  async::TaskGroup writers(r.ctx.get_executor());
  writers.spawn(send_into(outbox, "one", r.timers.now() + 1h, first));
  r.settle();
  SECTION("before its turn") { r.run(writers.stop()); }
  SECTION("in its turn") {
    CHECK(next() == "one");
    r.run(writers.stop());
    written();
    return;
  }
  CHECK(next() == "one");
  written();
}

TEST_CASE_METHOD(OutboxFixture, "outbox: a writer does not wait past its deadline") {
  send("one", first, 1min);
  r.run_for(2min);
  REQUIRE(first);
  CHECK(first->error().kind == ErrorKind::kDeadline);
  CHECK(next() == "one");
}

TEST_CASE_METHOD(OutboxFixture, "outbox: the end of the connection is told to all") {
  send("one", first);
  send("two", second);
  CHECK(next() == "one");
  outbox->fail(base::Error(ErrorKind::kUnavailable, "gone"));
  r.settle();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->error().message == "gone");
  CHECK(second->error().message == "gone");
  CHECK_FALSE(next());
  CHECK(r.run(Outbox::send(outbox, "three", base::Deadline::max())).error().message == "gone");
  outbox->post("four");
  CHECK(outbox->waiting() == 0);
}

TEST_CASE_METHOD(OutboxFixture, "outbox: a closed one still gives out what is in it") {
  outbox->post("one");
  outbox->close(base::Error(ErrorKind::kInternal, "closed"));
  CHECK(r.run(Outbox::send(outbox, "two", base::Deadline::max())).error().message == "closed");
  CHECK(next() == "one");
  written();
  CHECK_FALSE(next());
}

TEST_CASE_METHOD(OutboxFixture, "outbox: a flush waits for what was there before it") {
  bool done = false;
  r.run(Outbox::flush(outbox));  // nothing to wait for
  send("one", first);
  group.spawn(flush_into(outbox, done));
  r.settle();
  outbox->post("two");
  CHECK(next() == "one");
  CHECK_FALSE(done);
  written();
  CHECK(next() == "two");
  r.settle();
  CHECK(done);
}
