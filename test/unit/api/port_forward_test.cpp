#include "vk-provider/api/port_forward.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <map>

#include "test/support/duplex.hpp"
#include "test/support/one_request.hpp"
#include "test/support/spdy_client.hpp"
#include "test/support/virtual_time.hpp"
#include "test/support/websocket_client.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using base::ErrorKind;
using net::spdy::FrameType;

namespace {

/// A connection of the client: the ids of its two streams.
struct Pair {
  std::uint32_t errors = 0;
  std::uint32_t data = 0;
};

async::Loop note_end(async::Loop task, bool& ended) {
  co_await std::move(task);
  ended = true;
}

async::Loop write_into(async::ByteStream& stream, std::string bytes, std::optional<base::Result<void>>& out) {
  out.emplace(co_await stream.write(std::move(bytes), base::Deadline::max()));
}

/// The bytes of a WebSocket, for a client that tunnels.
class TunnelBytes final : public async::ByteStream {
 public:
  explicit TunnelBytes(test::WebSocketClient& socket) : socket_(socket) {}
  async::Task<std::string> read(base::Deadline) override {
    auto message = co_await socket_.next();
    if (!message) co_return base::fail(message.error());
    co_return message->value_or("");
  }
  async::Task<void> write(std::string bytes, base::Deadline) override { return socket_.send(std::move(bytes)); }
  async::Task<void> close_write(base::Deadline) override { co_return base::Result<void>(); }

 private:
  test::WebSocketClient& socket_;
};

/// A connection of which half cannot be closed, as with TLS.
class WholeStream final : public async::ByteStream {
 public:
  explicit WholeStream(async::ByteStreamPtr inner) : inner_(std::move(inner)) {}
  async::Task<std::string> read(base::Deadline deadline) override { return inner_->read(deadline); }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    return inner_->write(std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline) override {
    co_return base::fail(ErrorKind::kUnsupported, "half of it cannot be closed");
  }

 private:
  async::ByteStreamPtr inner_;
};

struct ForwardFixture {
  ForwardFixture() : group(r.ctx.get_executor()) {}
  ~ForwardFixture() { r.run(group.stop()); }

  static async::Task<async::ByteStreamPtr> dial(ForwardFixture* self, int port) {
    ++self->dialled;
    if (port == 1) co_return base::fail(ErrorKind::kConflict, "nothing listens on it");
    auto [ours, theirs] = test::make_duplex(self->r.timers);
    self->targets[port] = std::move(theirs);
    if (self->whole_ends) co_return std::make_unique<WholeStream>(std::move(ours));
    co_return std::move(ours);
  }

  async::ByteStreamPtr connect() {
    auto [ours, theirs] = test::make_duplex(r.timers);
    group.spawn(note_end(test::serve_one_request(std::move(ours),
                                                 [this](net::HttpServerRequest request) {
                                                   return api::answer_port_forward(
                                                       std::move(request), "default/web",
                                                       [this](int port, base::Deadline) { return dial(this, port); },
                                                       r.timers, times);
                                                 }),
                         left));
    return std::move(theirs);
  }
  base::Deadline in(base::Duration d) { return r.timers.now() + d; }

  void start() {
    async::ByteStreamPtr connection = connect();
    REQUIRE(
        r.run(connection->write("POST /portForward HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                                "X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n",
                                in(1s))));
    CHECK_THAT(*r.run(connection->read(in(1s))),
               Catch::StartsWith("HTTP/1.1 101") && Catch::Contains("portforward.k8s.io"));
    client = std::make_unique<test::SpdyClient>(std::move(connection));
  }
  std::uint32_t open(std::vector<net::Header> headers) { return *r.run(client->open(std::move(headers))); }
  std::uint32_t open(const std::string& type, const std::string& port, const std::string& request) {
    return open({{"streamType", type}, {"port", port}, {"requestID", request}});
  }
  /// As kubectl does it.
  Pair forward(const std::string& port, const std::string& request) {
    Pair pair;
    pair.errors = open("error", port, request);
    CHECK(next().type == FrameType::kReply);
    REQUIRE(r.run(client->data(pair.errors, "", true)));
    pair.data = open("data", port, request);
    CHECK(next().type == FrameType::kReply);
    r.settle();
    return pair;
  }
  test::SpdyFrame next() {
    auto frame = r.run(client->next(in(1h)));
    REQUIRE(frame);
    return *frame;
  }
  bool silent() {
    const auto frame = r.run(client->next(in(1s)));
    return !frame && frame.error().kind == ErrorKind::kDeadline;
  }
  std::string heard(int port) { return r.run(targets.at(port)->read(in(1s))).value_or("nothing"); }
  void say(int port, std::string bytes) { REQUIRE(r.run(targets.at(port)->write(std::move(bytes), in(1s)))); }

  test::VirtualReactor r;
  api::StreamTimes times;
  std::map<int, async::ByteStreamPtr> targets;
  std::unique_ptr<test::WebSocketClient> socket;
  std::unique_ptr<test::SpdyClient> client;
  bool whole_ends = false;
  int dialled = 0;
  bool left = false;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: a connection carries bytes and half ends") {
  start();
  const Pair pair = forward("80", "0");
  REQUIRE(r.run(client->data(pair.data, "request")));
  CHECK(heard(80) == "request");
  REQUIRE(r.run(client->data(pair.data, "", true)));
  CHECK(heard(80) == "");
  say(80, "response");
  auto frame = next();
  CHECK(frame.stream == pair.data);
  CHECK(frame.data == "response");
  targets.at(80).reset();
  frame = next();
  CHECK(frame.stream == pair.data);
  CHECK(frame.last);
  frame = next();
  CHECK(frame.stream == pair.errors);
  CHECK(frame.last);
  CHECK(frame.data.empty());
  CHECK(silent());
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: what kubectl does when its target has ended is no error") {
  start();
  const Pair pair = forward("80", "0");
  say(80, "all");
  CHECK(next().data == "all");
  targets.at(80).reset();
  CHECK(next().last);
  SECTION("it resets the stream") { REQUIRE(r.run(client->reset(pair.data))); }
  SECTION("it has still sent something") {
    REQUIRE(r.run(client->data(pair.data, "late")));
    REQUIRE(r.run(client->reset(pair.data)));
  }
  const auto end = next();
  CHECK(end.stream == pair.errors);
  CHECK(end.last);
  CHECK(end.data.empty());
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: a connection that the client resets ends at its target") {
  start();
  const Pair pair = forward("80", "0");
  REQUIRE(r.run(client->reset(pair.data)));
  const auto end = next();
  CHECK(end.stream == pair.errors);
  CHECK(end.last);
  CHECK(heard(80) == "");
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: a port that cannot be reached is an error in words") {
  start();
  const Pair pair = forward("1", "0");
  auto frame = next();
  CHECK(frame.stream == pair.data);
  CHECK(frame.type == FrameType::kReset);
  frame = next();
  CHECK(frame.stream == pair.errors);
  CHECK(frame.data == "error forwarding port 1 to pod default/web: nothing listens on it");
  CHECK(next().last);
  // The others go on.
  const Pair other = forward("80", "1");
  say(80, "x");
  CHECK(next().stream == other.data);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: many connections to several ports, in any order of streams") {
  start();
  const Pair first = forward("80", "a");
  const Pair second = forward("443", "b");
  Pair third;
  third.data = open("data", "8080", "c");
  CHECK(next().type == FrameType::kReply);
  third.errors = open("error", "8080", "c");
  CHECK(next().type == FrameType::kReply);
  r.settle();
  CHECK(dialled == 3);
  say(443, "two");
  CHECK(next().stream == second.data);
  say(8080, "three");
  CHECK(next().stream == third.data);
  say(80, "one");
  CHECK(next().stream == first.data);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: a client of old names no connections") {
  start();
  open({{"streamType", "error"}, {"port", "80"}});
  CHECK(next().type == FrameType::kReply);
  const auto data = open({{"streamType", "data"}, {"port", "80"}});
  CHECK(next().type == FrameType::kReply);
  r.settle();
  say(80, "x");
  CHECK(next().stream == data);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: streams that say too little, or twice the same, are reset") {
  start();
  CHECK(open("error", "80", "0") == 1);
  CHECK(next().type == FrameType::kReply);
  for (const auto& [type, port] : std::vector<std::pair<std::string, std::string>>{
           {"error", "80"}, {"data", "0"}, {"data", "65536"}, {"data", "80x"}, {"data", ""}, {"nonsense", "80"}}) {
    INFO(type << " " << port);
    const auto id = open(type, port, "0");
    const auto frame = next();
    CHECK(frame.type == FrameType::kReset);
    CHECK(frame.stream == id);
  }
  CHECK(dialled == 0);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: the second stream of a connection is waited for, not long") {
  start();
  const auto errors = open("error", "80", "0");
  CHECK(next().type == FrameType::kReply);
  const auto data = open("data", "80", "1");
  CHECK(next().type == FrameType::kReply);
  r.run_for(28s);
  CHECK(silent());
  auto frame = next();
  CHECK(frame.stream == data);
  CHECK(frame.type == FrameType::kReset);
  frame = next();
  CHECK(frame.stream == errors);
  CHECK(frame.data == "the client did not open both streams of a connection in time");
  CHECK(dialled == 0);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: who begins connections without end is not followed") {
  start();
  for (int i = 0; i < 512; ++i) {
    const auto id = open("error", "80", std::to_string(i));
    CHECK(next().type == FrameType::kReply);
    REQUIRE(r.run(client->reset(id)));
  }
  open("error", "80", "512");
  CHECK(next().type == FrameType::kReset);
  // One that was begun may still be completed.
  open("data", "80", "0");
  CHECK(next().type == FrameType::kReply);
  r.run_for(31s);
  open("error", "80", "513");
  while (next().type != FrameType::kReply) continue;
}

TEST_CASE_METHOD(ForwardFixture, "port-forward: a target that cannot be told of half an end is heard to its own") {
  whole_ends = true;
  start();
  const Pair pair = forward("80", "0");
  REQUIRE(r.run(client->data(pair.data, "request", true)));
  CHECK(heard(80) == "request");
  say(80, "response");
  CHECK(next().data == "response");
  targets.at(80).reset();
  CHECK(next().last);
  const auto end = next();
  CHECK(end.stream == pair.errors);
  CHECK(end.last);
  CHECK(end.data.empty());
}

TEST_CASE_METHOD(ForwardFixture, "port-forward: when the client leaves, its connections end") {
  start();
  forward("80", "0");
  forward("443", "1");
  SECTION("it closes") { client->close(); }
  SECTION("it says goodbye") { REQUIRE(r.run(client->go_away())); }
  r.settle();
  CHECK(left);
  CHECK(heard(80) == "");
  CHECK(heard(443) == "");
}

TEST_CASE_METHOD(ForwardFixture, "port-forward: a server that stops takes its connections along") {
  start();
  forward("80", "0");
  r.run(group.stop());
  CHECK(heard(80) == "");
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: two hundred connections, each with its own bytes") {
  start();
  std::vector<Pair> pairs;
  for (int i = 0; i < 200; ++i) pairs.push_back(forward(std::to_string(1000 + i), std::to_string(i)));
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = "connection " + std::to_string(i);
    REQUIRE(r.run(client->data(pairs[static_cast<size_t>(i)].data, bytes)));
    CHECK(heard(1000 + i) == bytes);
  }
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over SPDY: large transfers are intact") {
  start();
  forward("80", "0");
  std::string large(3'000'000, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 251);
  std::optional<base::Result<void>> written;
  group.spawn(write_into(*targets.at(80), large, written));
  std::string got;
  while (got.size() < large.size()) got += next().data;
  CHECK((got == large));
  CHECK(written->has_value());
}

TEST_CASE_METHOD(ForwardFixture, "port-forward through a WebSocket tunnel is SPDY") {
  socket = std::make_unique<test::WebSocketClient>(r.ctx.get_executor(), connect());
  CHECK(r.run(socket->handshake("/portForward", "SPDY/3.1+portforward.k8s.io")) == "SPDY/3.1+portforward.k8s.io");
  client = std::make_unique<test::SpdyClient>(std::make_unique<TunnelBytes>(*socket));
  const Pair pair = forward("80", "0");
  REQUIRE(r.run(client->data(pair.data, "request")));
  CHECK(heard(80) == "request");
  say(80, "response");
  CHECK(next().data == "response");
  socket->drop();
  r.settle();
  CHECK(left);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over WebSocket channels: two for each port, and the port first") {
  const bool base64 = GENERATE(false, true);
  socket = std::make_unique<test::WebSocketClient>(r.ctx.get_executor(), connect());
  const std::string protocol = base64 ? "v4.base64.channel.k8s.io" : "v4.channel.k8s.io";
  CHECK(r.run(socket->handshake("/portForward?port=80,443", protocol)) == protocol);
  const auto message = [this] { return r.run(socket->next())->value_or("closed"); };
  std::vector<std::string> begin;
  for (int i = 0; i < 4; ++i) begin.push_back(message());
  std::ranges::sort(begin);
  if (base64) {
    CHECK(begin == std::vector<std::string>{"0UAA=", "1UAA=", "2uwE=", "3uwE="});
    REQUIRE(r.run(socket->send("0aGk=", /*text=*/true)));
    REQUIRE(r.run(socket->send("2aGV5", /*text=*/true)));
  } else {
    using namespace std::string_literals;
    CHECK(begin == std::vector<std::string>{"\0P\0"s, "\1P\0"s, "\2\xbb\1"s, "\3\xbb\1"s});
    REQUIRE(r.run(socket->send("\0hi"s)));
    REQUIRE(r.run(socket->send("\2hey"s)));
  }
  CHECK(heard(80) == "hi");
  CHECK(heard(443) == "hey");
  say(443, "hello");
  CHECK(message() == (base64 ? "2aGVsbG8=" : "\2hello"));
  targets.at(443).reset();
  r.settle();
  CHECK_FALSE(left);
  targets.at(80).reset();
  CHECK(message() == "closed");
  r.settle();
  CHECK(left);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over WebSocket channels: errors are words on the second channel") {
  socket = std::make_unique<test::WebSocketClient>(r.ctx.get_executor(), connect());
  REQUIRE(r.run(socket->handshake("/portForward?port=1", "v4.channel.k8s.io")));
  for (int i = 0; i < 2; ++i) REQUIRE(r.run(socket->next()));
  CHECK(*r.run(socket->next()) == "\1error forwarding port 1 to pod default/web: nothing listens on it");
  CHECK(*r.run(socket->next()) == std::nullopt);
}

TEST_CASE_METHOD(ForwardFixture, "port-forward over WebSocket channels: the ports must be ports, and not too many") {
  const auto refusal = [this](const std::string& query, const std::string& protocol) {
    socket = std::make_unique<test::WebSocketClient>(r.ctx.get_executor(), connect());
    auto picked = r.run(socket->handshake("/portForward" + query, protocol));
    if (picked) return "picked " + *picked;
    const std::string& said = picked.error().message;  // the code, a space, a metav1.Status
    return said.substr(0, 4) + nlohmann::json::parse(said.substr(4))["message"].get<std::string>();
  };
  const std::string v4 = "v4.channel.k8s.io";
  CHECK(refusal("", v4) == "400 query parameter \"port\" is required");
  CHECK(refusal("?port=80,x", v4) == "400 unable to parse \"80,x\" as a port from 1 to 65535");
  CHECK(refusal("?port=0", v4) == "400 unable to parse \"0\" as a port from 1 to 65535");
  CHECK(refusal("?port=1&port=2,3,4,5,6", "v4.base64.channel.k8s.io") == "400 at most 5 ports with this sub-protocol");
  CHECK_THAT(refusal("?port=80", "v5.channel.k8s.io"), Catch::StartsWith("403 "));
  CHECK(dialled == 0);
}
