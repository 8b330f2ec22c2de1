#include "providers/docker/exec_wire.hpp"

#include <catch2/catch.hpp>

#include "test/support/docker_stream.hpp"
#include "test/support/says.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using providers::docker::Channel;
using providers::docker::ExecWire;
using providers::docker::FrameSplitter;

namespace {

std::string frame(int type, const std::string& bytes) {
  std::string out(8, '\0');
  out[0] = static_cast<char>(type);
  for (size_t i = 0; i < 4; ++i) out[4 + i] = static_cast<char>((bytes.size() >> (24 - 8 * i)) & 0xff);
  return out + bytes;
}

using ReadResult = std::optional<base::Result<std::string>>;

async::Loop read_into(std::shared_ptr<ExecWire> wire, Channel channel, base::Deadline deadline, ReadResult& out) {
  out.emplace(co_await ExecWire::read(std::move(wire), channel, deadline));
}

struct WireFixture {
  WireFixture() : script(std::make_shared<DockerStreamScript>(reactor.timers)), group(reactor.ctx.get_executor()) {
    make(ExecWire::Framing::kFrames, ExecWire::Errors::kApart);
  }
  ~WireFixture() { reactor.run(group.stop()); }
  WireFixture(const WireFixture&) = delete;
  WireFixture& operator=(const WireFixture&) = delete;

  void make(ExecWire::Framing framing, ExecWire::Errors where) {
    wire.reset();
    script = std::make_shared<DockerStreamScript>(reactor.timers);
    wire = std::make_shared<ExecWire>(std::make_unique<DockerModelStream>(script), reactor.timers, framing, where);
  }
  base::Deadline in(base::Duration d) { return reactor.timers.now() + d; }
  base::Result<std::string> read(Channel channel = Channel::kOutput) {
    return reactor.run(ExecWire::read(wire, channel, in(10s)));
  }
  void begin_read(Channel channel, ReadResult& out, base::Duration time = 10s) {
    group.spawn(read_into(wire, channel, in(time), out));
    reactor.settle();
  }

  VirtualReactor reactor;
  std::shared_ptr<DockerStreamScript> script;
  std::shared_ptr<ExecWire> wire;
  ReadResult output;  // of readers that may outlive a case
  ReadResult errors;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE("docker frames: any cut of the bytes gives the same texts") {
  const std::string bytes = frame(1, "one") + frame(2, "two") + frame(1, "") + frame(3, "engine") + frame(1, "three");
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameSplitter splitter;
    std::string output;
    std::string errors;
    REQUIRE(splitter.feed(bytes.substr(0, cut), {&output, &errors}));
    REQUIRE(splitter.feed(bytes.substr(cut), {&output, &errors}));
    CHECK(output == "onethree");
    CHECK(errors == "twoengine");
    CHECK(splitter.at_boundary());
  }
  FrameSplitter splitter;
  std::string output;
  std::string errors;
  CHECK_FALSE(splitter.feed("HTTP/1.1 200 OK", {&output, &errors}));
}

TEST_CASE_METHOD(WireFixture, "docker wire: each output has its own bytes, whoever takes them off the connection") {
  script->give(frame(2, "err") + frame(1, "out"));
  script->give(frame(2, "or"));
  script->give_end();
  CHECK(*read(Channel::kOutput) == "out");
  CHECK(*read(Channel::kErrors) == "err");
  CHECK(*read(Channel::kOutput) == "");
  CHECK(*read(Channel::kErrors) == "or");
  CHECK(*read(Channel::kErrors) == "");
}

TEST_CASE_METHOD(WireFixture, "docker wire: two readers wait, and each gets its own") {
  begin_read(Channel::kOutput, output);
  begin_read(Channel::kErrors, errors);
  script->give(frame(2, "err"));
  reactor.settle();
  REQUIRE(errors);
  CHECK(**errors == "err");
  CHECK_FALSE(output);
  script->give(frame(1, "out"));
  reactor.settle();
  REQUIRE(output);
  CHECK(**output == "out");
}

TEST_CASE_METHOD(WireFixture, "docker wire: an output that nobody reads stops the connection") {
  const std::string piece = frame(2, std::string(16 * 1024, 'e'));
  for (int i = 0; i < 100; ++i) script->give(piece);
  begin_read(Channel::kOutput, output, 1s);
  CHECK(script->reads == 4);
  reactor.run_for(2s);
  REQUIRE(output);
  REQUIRE_FALSE(*output);
  CHECK(output->error().kind == ErrorKind::kDeadline);
  CHECK(says(output->error().message, "both of its outputs are to be read"));
  // A reader of the other one sets it going again.
  begin_read(Channel::kOutput, output);
  CHECK(read(Channel::kErrors)->size() == 4 * 16 * 1024);
  reactor.settle();
  CHECK(script->reads == 8);
}

TEST_CASE_METHOD(WireFixture, "docker wire: bytes that come before an error are read before it") {
  script->give(frame(1, "last words"));
  script->give_error(base::Error(ErrorKind::kUnavailable, "connection reset"));
  CHECK(*read(Channel::kOutput) == "last words");
  CHECK(read(Channel::kOutput).error().message == "connection reset");
  CHECK(read(Channel::kErrors).error().message == "connection reset");
}

TEST_CASE_METHOD(WireFixture, "docker wire: an end in the middle of a frame is none") {
  script->give(frame(1, "whole").substr(0, 10));
  script->give_end();
  CHECK(*read() == "wh");
  CHECK(read().error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(WireFixture, "docker wire: with a terminal the bytes are as they come") {
  make(ExecWire::Framing::kRaw, ExecWire::Errors::kWithOutput);
  script->give(frame(2, "x"));
  CHECK(*read() == frame(2, "x"));
}

TEST_CASE_METHOD(WireFixture, "docker wire: errors go with the output, or nowhere") {
  make(ExecWire::Framing::kFrames, ExecWire::Errors::kWithOutput);
  script->give(frame(1, "a") + frame(2, "b") + frame(1, "c"));
  CHECK(*read() == "abc");
  make(ExecWire::Framing::kFrames, ExecWire::Errors::kNowhere);
  script->give(frame(2, std::string(100'000, 'b')) + frame(1, "c"));
  CHECK(*read() == "c");
}

TEST_CASE_METHOD(WireFixture, "docker wire: closing tells who waits, and closes the connection") {
  begin_read(Channel::kOutput, output);
  begin_read(Channel::kErrors, errors);
  wire->close();
  reactor.settle();
  CHECK(script->destroyed);
  REQUIRE(output);
  REQUIRE(errors);
  CHECK(output->error().kind == ErrorKind::kCancelled);
  CHECK(errors->error().kind == ErrorKind::kCancelled);
  CHECK(reactor.run(ExecWire::write(wire, "x", in(1s))).error().kind == ErrorKind::kCancelled);
}

TEST_CASE_METHOD(WireFixture, "docker wire: a reader that is cancelled leaves the turn to the other") {
  async::TaskGroup other(reactor.ctx.get_executor());
  other.spawn(read_into(wire, Channel::kOutput, in(10s), output));
  reactor.settle();
  begin_read(Channel::kErrors, errors);
  reactor.run(other.stop());
  CHECK_FALSE(output);
  reactor.settle();
  script->give(frame(2, "err"));
  reactor.settle();
  REQUIRE(errors);
  CHECK(**errors == "err");
}
