#include "vk-provider/net/spdy_session.hpp"

#include <catch2/catch.hpp>

#include "test/support/duplex.hpp"
#include "test/support/spdy_client.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::net::spdy;
using base::ErrorKind;
using test::SpdyFrame;

namespace {

async::Loop run_session(Session& session, std::optional<base::Result<void>>& out) {
  out.emplace(co_await session.run());
}

async::Loop write_into(async::ByteStream& stream, std::string bytes, std::optional<base::Result<void>>& out) {
  out.emplace(co_await stream.write(std::move(bytes), base::Deadline::max()));
}

/// A session on one end of a connection in memory, and a client on the other.
struct SpdyFixture {
  SpdyFixture() : group(r.ctx.get_executor()) {}
  ~SpdyFixture() { r.run(group.stop()); }

  void start(Limits limits = {}, size_t capacity = 64 * 1024) {
    auto [ours, theirs] = test::make_duplex(r.timers, capacity);
    session = std::make_unique<Session>(std::move(ours), r.timers, limits);
    client = std::make_unique<test::SpdyClient>(std::move(theirs));
    group.spawn(run_session(*session, ended));
    r.settle();
  }
  base::Deadline in(base::Duration d) { return r.timers.now() + d; }
  std::uint32_t open(std::vector<net::Header> headers = {}) { return *r.run(client->open(std::move(headers))); }
  StreamPtr accept() {
    auto stream = r.run(session->accept(in(1s)));
    return stream ? std::move(*stream) : nullptr;
  }
  /// Opened and replied to.
  StreamPtr connect() {
    open();
    StreamPtr stream = accept();
    stream->reply();
    CHECK(next().type == FrameType::kReply);
    return stream;
  }
  SpdyFrame next() {
    auto frame = r.run(client->next(in(1s)));
    REQUIRE(frame);
    return *frame;
  }
  bool silent() {
    const auto frame = r.run(client->next(in(1s)));
    return !frame && frame.error().kind == ErrorKind::kDeadline;
  }
  base::Result<std::string> read(Stream& stream) { return r.run(stream.read(in(1s))); }

  test::VirtualReactor r;
  std::unique_ptr<Session> session;
  std::unique_ptr<test::SpdyClient> client;
  std::optional<base::Result<void>> ended;
  std::optional<base::Result<void>> written;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE_METHOD(SpdyFixture, "SPDY: a stream is opened, answered, and carries bytes both ways to both ends") {
  start();
  CHECK(open({{"streamType", "data"}, {"port", "80"}}) == 1);
  const StreamPtr stream = accept();
  REQUIRE(stream);
  CHECK(stream->id() == 1);
  CHECK(net::find_header(stream->headers(), "port") == "80");
  CHECK(silent());
  stream->reply();
  CHECK(next().type == FrameType::kReply);

  REQUIRE(r.run(client->data(1, "hello")));
  CHECK(*read(*stream) == "hello");
  REQUIRE(r.run(stream->write("bye", in(1s))));
  CHECK(next().data == "bye");
  REQUIRE(r.run(client->data(1, "last", true)));
  CHECK(*read(*stream) == "last");
  CHECK(*read(*stream) == "");
  REQUIRE(r.run(stream->write("more", in(1s))));
  CHECK(next().data == "more");
  REQUIRE(r.run(stream->close_write(in(1s))));
  const SpdyFrame end = next();
  CHECK(end.data.empty());
  CHECK(end.last);
  CHECK(r.run(stream->write("late", in(1s))).error().kind != ErrorKind::kDeadline);
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: large writes come as frames that let others in between") {
  start();
  const StreamPtr stream = connect();
  const std::string large(100'000, 'x');
  group.spawn(write_into(*stream, large, written));
  std::string got;
  while (got.size() < large.size()) {
    const SpdyFrame frame = next();
    CHECK(frame.data.size() <= 32 * 1024);
    got += frame.data;
  }
  CHECK(got == large);
  r.settle();
  CHECK(written->has_value());
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: pings are answered, answers to ours are not") {
  start();
  REQUIRE(r.run(client->ping(1)));
  const SpdyFrame pong = next();
  CHECK(pong.type == FrameType::kPing);
  CHECK(pong.number == 1);
  REQUIRE(r.run(client->ping(2)));
  CHECK(silent());
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: a reset ends both directions at once") {
  start();
  const StreamPtr stream = connect();
  SECTION("of the client") {
    REQUIRE(r.run(client->reset(1)));
    CHECK(read(*stream).error().kind == ErrorKind::kUnavailable);
    CHECK(r.run(stream->write("x", in(1s))).error().kind == ErrorKind::kUnavailable);
    stream->reset();
    CHECK(silent());
  }
  SECTION("of ours") {
    stream->reset();
    const SpdyFrame reset = next();
    CHECK(reset.type == FrameType::kReset);
    CHECK(reset.number == kCancel);
    REQUIRE(r.run(client->data(1, "dropped")));
    CHECK(silent());
  }
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: a stream that dies before its ends is reset, one that had them is not") {
  start();
  StreamPtr stream = connect();
  SECTION("before") {
    stream.reset();
    CHECK(next().type == FrameType::kReset);
  }
  SECTION("after") {
    REQUIRE(r.run(client->data(1, "", true)));
    CHECK(*read(*stream) == "");
    REQUIRE(r.run(stream->close_write(in(1s))));
    CHECK(next().last);
    stream.reset();
    CHECK(silent());
  }
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: ids that are not new and odd are refused, and so are too many") {
  Limits limits;
  limits.streams = 2;
  start(limits);
  FrameEncoder encoder;
  const auto refusal = [this](const std::string& frame) {
    REQUIRE(r.run(client->send(frame)));
    const SpdyFrame answer = next();
    CHECK(answer.type == FrameType::kReset);
    return answer.number;
  };
  REQUIRE(r.run(client->send(encoder.open(5, {}))));
  CHECK(refusal(encoder.open(5, {})) == kProtocolError);
  CHECK(refusal(encoder.open(3, {})) == kProtocolError);
  CHECK(refusal(encoder.open(8, {})) == kProtocolError);
  REQUIRE(r.run(client->send(encoder.open(9, {}))));
  CHECK(refusal(encoder.open(11, {})) == kRefusedStream);
  CHECK(accept()->id() == 5);  // dies at once, and makes room
  CHECK(next().type == FrameType::kReset);
  REQUIRE(r.run(client->send(encoder.open(13, {}))));
  CHECK(accept()->id() == 9);
  CHECK(accept()->id() == 13);
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: a stream that nobody reads stops the connection, within bounds") {
  Limits limits;
  limits.stream_buffer = 1000;
  start(limits, /*capacity=*/1000);
  const StreamPtr stream = connect();
  const std::string large(100'000, 'x');
  group.spawn([](test::SpdyClient& c, std::string bytes, std::optional<base::Result<void>>& out) -> async::Loop {
    out.emplace(co_await c.data(1, std::move(bytes), true));
  }(*client, large, written));
  // The client is asked for a sign, again and again.
  for (int i = 1; i <= 3; ++i) {
    r.run_for(15s);
    CHECK(next().number == static_cast<std::uint32_t>(2 * i));
  }
  CHECK_FALSE(written);
  std::string got;
  for (;;) {
    const auto bytes = read(*stream);
    REQUIRE(bytes);
    if (bytes->empty()) break;
    CHECK(bytes->size() <= 1000 + 16 * 1024);
    got += *bytes;
  }
  CHECK(got == large);
  CHECK(written->has_value());
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: when the client leaves, everything ends") {
  start();
  const StreamPtr stream = connect();
  SECTION("with a goodbye") { REQUIRE(r.run(client->go_away())); }
  SECTION("without one") { client->close(); }
  r.settle();
  REQUIRE(ended);
  CHECK(ended->has_value());
  CHECK(read(*stream).error().kind == ErrorKind::kUnavailable);
  CHECK(r.run(stream->write("x", in(1s))).error().kind == ErrorKind::kUnavailable);
  CHECK(r.run(stream->close_write(in(1s))).error().kind == ErrorKind::kUnavailable);
  CHECK(accept() == nullptr);
  session.reset();
  CHECK(read(*stream).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: who breaks the rules is put out") {
  start();
  REQUIRE(r.run(client->send("GET / HTTP/1.1\r\n\r\n" + std::string(1, '\x80'))));
  r.settle();
  CHECK_FALSE(ended);  // so far it is a data frame of a stream that there is not
  client->close();
  r.settle();
  start();
  REQUIRE(r.run(client->send(std::string("\x80\x02\x00\x06\x00\x00\x00\x04", 8))));
  r.settle();
  REQUIRE(ended);
  CHECK(ended->error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: an idle connection ends, one that is used does not") {
  Limits limits;
  limits.idle_time = 1min;
  start(limits);
  const StreamPtr stream = connect();
  for (int i = 0; i < 3; ++i) {
    r.run_for(40s);
    REQUIRE(r.run(client->ping(1)));
    r.run_for(40s);
    REQUIRE(r.run(stream->write("x", in(1s))));
  }
  CHECK_FALSE(ended);
  r.run_for(61s);
  REQUIRE(ended);
  CHECK(ended->error().kind == ErrorKind::kDeadline);
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: a client that asks and does not listen cannot fill the memory") {
  start({}, /*capacity=*/1000);
  const std::string pings = [] {
    std::string out;
    for (int i = 0; i < 10'000; ++i) out += FrameEncoder::ping(1);
    return out;
  }();
  group.spawn([](test::SpdyClient& c, std::string bytes, std::optional<base::Result<void>>& out) -> async::Loop {
    out.emplace(co_await c.send(std::move(bytes)));
  }(*client, pings, written));
  r.run_for(1h);
  CHECK_FALSE(written);  // it is not read from any more
  for (int i = 0; i < 10'000; ++i) CHECK(next().number == 1);
  CHECK(written->has_value());
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: a stream that the client has reset before it was accepted leaves nothing behind") {
  Limits limits;
  limits.streams = 2;
  start(limits);
  for (int i = 0; i < 100; ++i) REQUIRE(r.run(client->reset(open())));
  r.settle();
  CHECK(accept() == nullptr);
  const std::uint32_t id = open();
  CHECK(accept()->id() == id);
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: a stream whose input is dropped does not stop the connection, and still ends") {
  Limits limits;
  limits.stream_buffer = 1000;
  start(limits, /*capacity=*/1000);
  const StreamPtr dropped = connect();
  const StreamPtr other = connect();
  dropped->drop_input();
  for (int i = 0; i < 100; ++i) REQUIRE(r.run(client->data(1, std::string(1000, 'x'))));
  REQUIRE(r.run(client->data(3, "still there")));
  CHECK(*read(*other) == "still there");
  CHECK(*read(*dropped) == "");
  REQUIRE(r.run(client->data(1, "", true)));
  REQUIRE(r.run(dropped->write("x", in(1s))));
  CHECK(next().data == "x");
  REQUIRE(r.run(dropped->close_write(in(1s))));
  CHECK(next().last);
  dropped->reset();
  CHECK(silent());
}

TEST_CASE_METHOD(SpdyFixture, "SPDY: five hundred idle streams are open side by side") {
  start();
  std::vector<StreamPtr> streams;
  for (int i = 0; i < 500; ++i) streams.push_back(connect());
  REQUIRE(r.run(client->data(999, "x")));
  CHECK(*read(*streams.back()) == "x");
  r.run_for(1h);
  CHECK_FALSE(ended);
}
