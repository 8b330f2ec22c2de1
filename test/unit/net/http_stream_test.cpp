// open(): bodies that come piece by piece, and raw streams.
#include <catch2/catch.hpp>

#include "test/support/scripted_peer.hpp"
#include "vk-provider/net/http_client.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace net = spillway::net;
namespace async = spillway::async;
namespace base = spillway::base;
using base::ErrorKind;

namespace {

struct StreamFixture {
  RealReactor r;
  base::Result<net::HttpStream> open(const ScriptedPeer& peer, net::Method method = net::Method::kGet,
                                     base::Duration time = 10s) {
    client = *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(peer.endpoint());
    net::HttpRequest request;
    request.method = method;
    request.target = "/watch";
    return r.run(client->open(std::move(request), r.timers.now() + time));
  }
  base::Result<std::string> read(net::HttpStream& stream, base::Duration time = 10s) {
    return r.run(stream.body->read(r.timers.now() + time));
  }
  /// All pieces up to the end.
  std::string read_all(net::HttpStream& stream) {
    std::string all;
    for (;;) {
      const auto piece = read(stream);
      REQUIRE(piece);
      if (piece->empty()) return all;
      all += *piece;
    }
  }
  std::unique_ptr<net::HttpClient> client;
};

const std::string kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

async::Loop read_into(async::ByteStream& stream, base::Deadline deadline,
                      std::optional<base::Result<std::string>>& out) {
  out.emplace(co_await stream.read(deadline));
}

}  // namespace

TEST_CASE_METHOD(StreamFixture, "a chunked body comes piece by piece") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kChunked + "3\r\none\r\n"), take_request()}});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(stream->head.status == 200);
  CHECK(*read(*stream) == "one");
  const auto silent = read(*stream, 30ms);
  REQUIRE_FALSE(silent);
  CHECK(silent.error().kind == ErrorKind::kDeadline);
}

TEST_CASE_METHOD(StreamFixture, "bodies of every framing end with an empty piece") {
  const std::string body(100000, 'x');
  const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body;
  const std::string open_end = "HTTP/1.1 200 OK\r\n\r\n" + body;
  const std::string chunks = kChunked + "186a0\r\n" + body + "\r\n0\r\n\r\n";
  const std::string text = GENERATE_COPY(as<std::string>{}, sized, open_end, chunks);
  ScriptedPeer peer(r, {{take_request(), send_bytes(text)}});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(read_all(*stream) == body);
  CHECK(*read(*stream) == "");
}

TEST_CASE_METHOD(StreamFixture, "a chunked body may come byte by byte") {
  const std::string text = kChunked + "5\r\nhello\r\n6;q=1\r\n world\r\n0\r\n\r\n";
  Script script = {take_request()};
  for (const char c : text) script.push_back(send_bytes(std::string(1, c)));
  ScriptedPeer peer(r, {script});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(read_all(*stream) == "hello world");
}

TEST_CASE_METHOD(StreamFixture, "a stream that is cut is an error, not an end") {
  const std::string cut = GENERATE_COPY(as<std::string>{}, kChunked + "5\r\nhe", kChunked + "2\r\nhe\r\n",
                                        std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"));
  ScriptedPeer peer(r, {{take_request(), send_bytes(cut)}});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(*read(*stream) == "he");
  const auto rest = read(*stream);
  REQUIRE_FALSE(rest);
  CHECK(rest.error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(StreamFixture, "an error comes with its body and without a stream") {
  ScriptedPeer peer(r,
                    {{take_request(), send_bytes("HTTP/1.1 410 Gone\r\nContent-Length: 7\r\nRetry-After: 2\r\n\r\ntoo"),
                      send_bytes(" old")}});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(stream->head.status == 410);
  CHECK(stream->head.body == "too old");
  CHECK(stream->head.retry_after() == 2s);
  CHECK(stream->body == nullptr);
}

TEST_CASE_METHOD(StreamFixture, "an endless error body is cut at 64 KiB") {
  ScriptedPeer peer(r, {{take_request(), send_bytes("HTTP/1.1 500 Oops\r\n\r\n" + std::string(200000, 'e'))}});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(stream->head.body == std::string(64 * 1024, 'e'));
}

TEST_CASE_METHOD(StreamFixture, "headers that do not come are a deadline for a read and unknown for a write") {
  ScriptedPeer peer(r, {{take_request(), wait_for_close()}});
  CHECK(open(peer, net::Method::kGet, 50ms).error().kind == ErrorKind::kDeadline);
  CHECK(open(peer, net::Method::kPost, 50ms).error().kind == ErrorKind::kUnknownOutcome);
}

TEST_CASE_METHOD(StreamFixture, "after a 101 the stream is raw, in both directions, and half of it can be closed") {
  ScriptedPeer peer(
      r, {{take_request(), send_bytes("HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\nearly"),
           echo_then("last")}});
  auto stream = open(peer, net::Method::kPost);
  REQUIRE(stream);
  CHECK(stream->head.status == 101);
  CHECK(*read(*stream) == "early");
  REQUIRE(r.run(stream->body->write(std::string("5\r\nraw\0", 7), r.timers.now() + 10s)));
  CHECK(*read(*stream) == std::string("5\r\nraw\0", 7));
  REQUIRE(r.run(stream->body->close_write(r.timers.now() + 10s)));
  CHECK(*read(*stream) == "last");
  CHECK(*read(*stream) == "");
}

TEST_CASE_METHOD(StreamFixture, "a raw stream can be written to while a read waits") {
  ScriptedPeer peer(r, {{take_request(), send_bytes("HTTP/1.1 101 S\r\n\r\n"), echo_then("")}});
  auto stream = open(peer, net::Method::kPost);
  REQUIRE(stream);
  async::TaskGroup group(r.ctx.get_executor());
  std::optional<base::Result<std::string>> got;
  group.spawn(read_into(*stream->body, r.timers.now() + 10s, got));
  REQUIRE(r.run(stream->body->write("ping", r.timers.now() + 10s)));
  r.run(group.join());
  CHECK(**got == "ping");
}

TEST_CASE_METHOD(StreamFixture, "a body of an answer cannot be written to") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kChunked), wait_for_close()}});
  auto stream = open(peer);
  REQUIRE(stream);
  CHECK(r.run(stream->body->write("x", r.timers.now() + 10s)).error().kind == ErrorKind::kUnsupported);
  CHECK(r.run(stream->body->close_write(r.timers.now() + 10s)).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(StreamFixture,
                 "a stream closes its connection when it dies, also under a read, and after its client") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kChunked), wait_for_close()}});
  auto stream = open(peer);
  REQUIRE(stream);
  client.reset();
  async::TaskGroup group(r.ctx.get_executor());
  std::optional<base::Result<std::string>> got;
  group.spawn(read_into(*stream->body, r.timers.now() + 10s, got));
  r.ctx.restart();
  r.ctx.poll();
  stream->body.reset();
  r.run(group.join());
  CHECK_FALSE(got->has_value());
  r.run_until([&] { return peer.closed() == 1; });
  CHECK(peer.closed() == 1);
}
