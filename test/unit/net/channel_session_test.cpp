#include "vk-provider/net/channel_session.hpp"

#include <catch2/catch.hpp>

#include "test/support/duplex.hpp"
#include "test/support/one_request.hpp"
#include "test/support/virtual_time.hpp"
#include "test/support/websocket_client.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using base::ErrorKind;

namespace {

struct Served {
  net::WebSocketOptions options;
  net::ChannelFormat format;
  net::ChannelLimits limits;
  std::vector<bool> readable = {true, false};
  async::Timers* timers = nullptr;
  std::unique_ptr<net::ChannelSession> session;
  std::optional<base::Result<void>> ended;
};

async::Loop serve(async::ByteStreamPtr connection, net::HttpServerRequest request, Served* served) {
  auto socket = co_await net::accept_websocket(std::move(connection), request, served->options);
  if (!socket) {
    served->ended = base::fail(socket.error());
    co_return;
  }
  served->session = std::make_unique<net::ChannelSession>(std::move(*socket), *served->timers, served->format,
                                                          served->readable, served->limits);
  served->ended = co_await served->session->run();
}

async::Loop send_into(test::WebSocketClient& client, std::string message, std::optional<base::Result<void>>& out) {
  out.emplace(co_await client.send(std::move(message)));
}

struct ChannelFixture {
  ChannelFixture() : group(r.ctx.get_executor()) { served.timers = &r.timers; }
  ~ChannelFixture() { r.run(group.stop()); }

  base::Result<std::string> start(const std::string& protocols = "v4.channel.k8s.io", size_t capacity = 64 * 1024) {
    auto [ours, theirs] = test::make_duplex(r.timers, capacity);
    client = std::make_unique<test::WebSocketClient>(r.ctx.get_executor(), std::move(theirs));
    Served* const all = &served;
    group.spawn(test::serve_one_request(std::move(ours), [all](net::HttpServerRequest request) {
      net::HttpServerResponse response;
      if (!net::asks_for_websocket(request)) return response;
      response.take_over = [all, request = std::move(request)](async::ByteStreamPtr connection) mutable {
        return serve(std::move(connection), std::move(request), all);
      };
      return response;
    }));
    auto picked = r.run(client->handshake("/exec", protocols));
    r.settle();
    return picked;
  }
  base::Deadline in(base::Duration d) { return r.timers.now() + d; }
  std::string next() {
    auto message = r.run(client->next());
    REQUIRE(message);
    return message->value_or("closed " + std::to_string(client->close_code()));
  }
  base::Result<std::string> read(async::ByteStream& stream) { return r.run(stream.read(in(1s))); }

  test::VirtualReactor r;
  Served served;
  std::unique_ptr<test::WebSocketClient> client;
  std::optional<base::Result<void>> sent;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: each carries its own bytes, the picked protocol is told") {
  served.options.protocol = "v4.channel.k8s.io";
  CHECK(start() == "v4.channel.k8s.io");
  const auto input = served.session->channel(0);
  const auto output = served.session->channel(1);
  REQUIRE(r.run(client->send(std::string("\0hello", 6))));
  CHECK(*read(*input) == "hello");
  served.session->announce(1);
  REQUIRE(r.run(output->write("bye", in(1s))));
  CHECK(next() == "\x01");
  CHECK_FALSE(client->got_text());
  CHECK(next() ==
        "\x01"
        "bye");
  CHECK(read(*output).error().kind == ErrorKind::kUnsupported);
  // Nobody waits for these.
  REQUIRE(r.run(client->send("\x01no")));
  REQUIRE(r.run(client->send("\x07no")));
  REQUIRE(r.run(client->send("")));
  REQUIRE(r.run(client->send(std::string("\0still", 6))));
  CHECK(*read(*input) == "still");
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: base64 travels in text messages") {
  served.format.base64 = true;
  served.options.text = true;
  REQUIRE(start());
  const auto input = served.session->channel(0);
  REQUIRE(r.run(client->send("0aGVsbG8=", /*text=*/true)));
  CHECK(*read(*input) == "hello");
  REQUIRE(r.run(served.session->channel(1)->write("hello", in(1s))));
  CHECK(next() == "1aGVsbG8=");
  CHECK(client->got_text());
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: v5 ends a channel, and the others go on") {
  served.format.half_close = true;
  REQUIRE(start());
  const auto input = served.session->channel(0);
  REQUIRE(r.run(client->send(std::string("\0last", 5))));
  REQUIRE(r.run(client->send(std::string("\xff\0", 2))));
  REQUIRE(r.run(client->send(std::string("\0late", 5))));
  CHECK(*read(*input) == "last");
  CHECK(*read(*input) == "");
  REQUIRE(r.run(served.session->channel(1)->write("out", in(1s))));
  CHECK(next() == "\x01out");
  REQUIRE(r.run(client->send("\xff\x09")));
  r.settle();
  REQUIRE(served.ended);
  CHECK(served.ended->error().message == "there is no channel 9 to end");
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: pings are answered while nothing else is said") {
  REQUIRE(start());
  REQUIRE(r.run(client->ping()));
  served.session->announce(1);
  CHECK(next() == "\x01");
  served.session->announce(1);
  CHECK(next() == "\x01");
  CHECK(client->pongs() == 1);
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: the goodbye comes after what was written, and is answered") {
  REQUIRE(start());
  const auto output = served.session->channel(1);
  served.session->announce(1);
  served.session->close();
  CHECK_FALSE(r.run(output->write("late", in(1s))));
  CHECK(next() == "\x01");
  CHECK(next() == "closed 1000");
  r.settle();
  REQUIRE(served.ended);
  CHECK(served.ended->has_value());
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: a client that leaves, or drops off, ends all") {
  REQUIRE(start());
  const auto input = served.session->channel(0);
  client->drop();
  r.settle();
  REQUIRE(served.ended);
  CHECK(read(*input).error().kind == ErrorKind::kUnavailable);
  CHECK(r.run(served.session->channel(1)->write("x", in(1s))).error().kind == ErrorKind::kUnavailable);
  served.session.reset();
  CHECK(read(*input).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: a message that is too long is refused with a reason") {
  served.options.max_message = 1000;
  REQUIRE(start());
  const auto input = served.session->channel(0);
  REQUIRE(r.run(client->send(std::string(1000, '\0'))));
  CHECK(read(*input)->size() == 999);
  REQUIRE(r.run(client->send(std::string(1001, '\0'))));
  CHECK(next() == "closed 1009");
  r.settle();
  REQUIRE(served.ended);
  CHECK(served.ended->error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: one that nobody reads stops the connection, within bounds") {
  served.limits.channel_buffer = 1000;
  REQUIRE(start("", /*capacity=*/1000));
  const auto input = served.session->channel(0);
  const std::string large(100'000, '\0');
  group.spawn(send_into(*client, large, sent));
  r.run_for(1min);
  CHECK_FALSE(sent);
  std::string got;
  while (got.size() < large.size() - 1) {
    const auto bytes = read(*input);
    REQUIRE(bytes);
    CHECK(bytes->size() <= 1000 + 16 * 1024);
    got += *bytes;
  }
  r.settle();
  CHECK(sent->has_value());
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket channels: an idle connection ends") {
  served.limits.idle_time = 1min;
  REQUIRE(start());
  r.run_for(50s);
  REQUIRE(r.run(client->send(std::string("\0x", 2))));
  r.run_for(50s);
  CHECK_FALSE(served.ended);
  r.run_for(11s);
  REQUIRE(served.ended);
  CHECK(served.ended->error().kind == ErrorKind::kDeadline);
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket: a request that lacks what the handshake needs is told so") {
  auto [ours, theirs] = test::make_duplex(r.timers);
  net::HttpServerRequest request;
  request.method = "POST";
  request.target = "/";
  request.headers = {{"Host", "h"}, {"Upgrade", "websocket"}, {"Connection", "keep-alive, Upgrade"}};
  CHECK(net::asks_for_websocket(request));
  const auto refused = r.run(net::accept_websocket(std::move(ours), request, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kInvalid);
  CHECK_THAT(*r.run(theirs->read(in(1s))), Catch::StartsWith("HTTP/1.1 400 Bad Request"));
}

TEST_CASE_METHOD(ChannelFixture, "WebSocket: one can carry the bytes of another protocol") {
  auto [ours, theirs] = test::make_duplex(r.timers);
  test::WebSocketClient far(r.ctx.get_executor(), std::move(theirs));
  async::ByteStreamPtr bytes;
  async::ByteStreamPtr* const place = &bytes;
  group.spawn(test::serve_one_request(std::move(ours), [place](net::HttpServerRequest request) {
    net::HttpServerResponse response;
    response.take_over = [place, request = std::move(request)](async::ByteStreamPtr connection) mutable {
      return [](async::ByteStreamPtr c, net::HttpServerRequest q, async::ByteStreamPtr* out) -> async::Loop {
        net::WebSocketOptions options;
        options.protocol = "SPDY/3.1+portforward.k8s.io";
        auto socket = co_await net::accept_websocket(std::move(c), q, options);
        *out = net::as_byte_stream(std::move(*socket));
      }(std::move(connection), std::move(request), place);
    };
    return response;
  }));
  CHECK(r.run(far.handshake("/", "SPDY/3.1+portforward.k8s.io")) == "SPDY/3.1+portforward.k8s.io");
  REQUIRE(r.run(far.send("one")));
  CHECK(*r.run(bytes->read(in(1s))) == "one");
  REQUIRE(r.run(bytes->write("two", in(1s))));
  CHECK(**r.run(far.next()) == "two");
}
