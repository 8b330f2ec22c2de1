#include "providers/fake/session.hpp"

#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using test::VirtualReactor;

namespace {

struct SessionFixture {
  base::Deadline in(base::Duration d) { return reactor.timers.now() + d; }
  base::Result<std::string> read(async::ByteStream& stream) { return reactor.run(stream.read(in(1s))); }
  base::Result<void> write(async::ByteStream& stream, std::string bytes) {
    return reactor.run(stream.write(std::move(bytes), in(1s)));
  }
  provider::ExecSessionPtr exec(std::vector<std::string> command, bool stdin_open = false, bool tty = false) {
    provider::ExecOptions options;
    options.command = std::move(command);
    options.stdin_open = stdin_open;
    options.tty = tty;
    return make_exec(reactor.timers, std::move(options));
  }
  base::Result<int> code(provider::ExecSession& session) { return reactor.run(session.exit_code(in(1s))); }

  VirtualReactor reactor;
};

async::Loop write_all(async::ByteStream& stream, size_t size, base::Deadline deadline, bool& done) {
  const auto written = co_await stream.write(std::string(size, 'x'), deadline);
  if (!written) co_return;  // the stream may be gone
  const auto closed = co_await stream.close_write(deadline);
  done = closed.has_value();
}

}  // namespace

TEST_CASE_METHOD(SessionFixture, "fake exec: outputs, an end and a code") {
  const auto session = exec({"sh", "-c", "echo apart >&2"});
  CHECK(session->input() == nullptr);
  CHECK(read(session->output()) == "");
  REQUIRE(session->errors() != nullptr);
  CHECK(read(*session->errors()) == "apart\n");
  CHECK(read(*session->errors()) == "");
  CHECK(code(*session) == 0);
  CHECK(code(*exec({"exit", "7"})) == 7);
  CHECK(reactor.run(session->resize(provider::TerminalSize(), in(1s))));
  CHECK(write(session->output(), "x").error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(SessionFixture, "fake exec: a terminal has one output, and its lines end as on one") {
  const auto session = exec({"sh", "-c", "echo apart >&2"}, true, true);
  CHECK(session->errors() == nullptr);
  CHECK(read(session->output()) == "apart\r\n");
  CHECK(write(*session->input(), "x").error().kind == ErrorKind::kConflict);
  CHECK(read(*session->input()).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(SessionFixture, "fake exec: what is copied waits for its reader, and ends with the input") {
  constexpr size_t kSize = 1'000'000;
  const auto session = exec({"cat"}, true);
  CHECK(read(session->output()).error().kind == ErrorKind::kDeadline);
  CHECK(code(*session).error().kind == ErrorKind::kDeadline);
  bool done = false;
  async::TaskGroup group(reactor.ctx.get_executor());
  group.spawn(write_all(*session->input(), kSize, in(1h), done));
  reactor.settle();
  CHECK_FALSE(done);
  size_t came = 0;
  for (;;) {
    const auto bytes = read(session->output());
    REQUIRE(bytes);
    if (bytes->empty()) break;
    CHECK(bytes->size() <= Pipe::kFullAt);
    came += bytes->size();
  }
  CHECK(came == kSize);
  CHECK(done);
  CHECK(code(*session) == 0);
  CHECK(write(*session->input(), "x").error().kind == ErrorKind::kConflict);
  reactor.run(group.join());

  CHECK(read(exec({"cat"})->output()) == "");
}

TEST_CASE_METHOD(SessionFixture, "fake exec: who waits is told when a session is closed") {
  auto session = exec({"cat"}, true);
  bool done = false;
  async::TaskGroup group(reactor.ctx.get_executor());
  group.spawn(write_all(*session->input(), 1'000'000, in(1h), done));
  reactor.settle();
  session.reset();
  reactor.run(group.join());
  CHECK_FALSE(done);
}

TEST_CASE_METHOD(SessionFixture, "fake attach: copies its input, and has no code") {
  provider::ExecOptions options;
  options.stdin_open = true;
  const auto session = make_attach(reactor.timers, options, nullptr);
  REQUIRE(write(*session->input(), "hello"));
  CHECK(read(session->output()) == "hello");
  REQUIRE(reactor.run(session->input()->close_write(in(1s))));
  CHECK(read(session->output()) == "");
  CHECK(code(*session).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(SessionFixture, "fake port: sends back whatever is sent to it") {
  const auto port = make_port(reactor.timers, "hi\n");
  REQUIRE(write(*port, "G"));  // it may become a request yet
  REQUIRE(write(*port, "o on"));
  CHECK(read(*port) == "Go on");
  REQUIRE(write(*port, std::string("\0\xff", 2)));
  CHECK(read(*port) == std::string("\0\xff", 2));
  REQUIRE(reactor.run(port->close_write(in(1s))));
  CHECK(read(*port) == "");

  const auto other = make_port(reactor.timers, "hi\n");
  REQUIRE(write(*other, "GET"));
  REQUIRE(reactor.run(other->close_write(in(1s))));
  CHECK(read(*other) == "GET");
}

TEST_CASE_METHOD(SessionFixture, "fake port: answers a request of HTTP") {
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";
  const auto port = make_port(reactor.timers, "hi\n");
  REQUIRE(write(*port, "GE"));
  REQUIRE(write(*port, "T /healthz HTTP/1.1\r\nHost: x\r\n"));
  CHECK(read(*port).error().kind == ErrorKind::kDeadline);
  REQUIRE(write(*port, "\r\n"));
  CHECK(read(*port) == head + "hi\n");
  CHECK(read(*port) == "");
  REQUIRE(write(*port, "GET / HTTP/1.1\r\n\r\n"));  // after its answer nobody listens
  CHECK(read(*port) == "");
  const auto endless = make_port(reactor.timers, "hi\n");
  REQUIRE(write(*endless, "GET /" + std::string(100'000, 'x')));
  CHECK(read(*endless) == head + "hi\n");
  const auto asked = make_port(reactor.timers, "hi\n");
  REQUIRE(write(*asked, "HEAD / HTTP/1.0\r\n\r\n"));
  CHECK(read(*asked) == head);
}
