// send(): what each way of failing is called, and when a connection is used again.
#include <catch2/catch.hpp>

#include <algorithm>

#include "test/support/scripted_peer.hpp"
#include "vk-provider/net/http_client.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace net = spillway::net;
namespace async = spillway::async;
namespace base = spillway::base;
using base::ErrorKind;
using net::Method;

namespace {

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct ClientFixture {
  RealReactor r;
  std::unique_ptr<net::HttpClient> make(net::Endpoint endpoint) {
    return *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(std::move(endpoint));
  }
  base::Result<net::HttpResponse> send(net::HttpClient& client, net::HttpRequest request, base::Duration time = 10s) {
    return r.run(client.send(std::move(request), r.timers.now() + time));
  }
  /// Lets what the peer did arrive.
  void wait_for_closed(const ScriptedPeer& peer, int count) {
    r.run_until([&] { return peer.closed() >= count; });
  }
};

net::HttpRequest a_request(Method method, std::string body = {}) {
  net::HttpRequest out;
  out.method = method;
  out.target = "/x?y=1";
  out.body = std::move(body);
  if (!out.body.empty()) out.content_type = "application/json";
  return out;
}

async::Loop keep(async::Task<net::HttpResponse> task, std::optional<base::Result<net::HttpResponse>>& out) {
  out.emplace(co_await std::move(task));
}

}  // namespace

TEST_CASE_METHOD(ClientFixture, "a request has its headers, its token and its body") {
  ScriptedPeer peer(r,
                    {{take_request(),
                      send_bytes("HTTP/1.1 201 Created\r\nX-A: 1\r\nretry-after: 7\r\nContent-Length: 3\r\n\r\nyes")}});
  const auto client = make(peer.endpoint());
  net::HttpRequest request = a_request(Method::kPost, "{}");
  request.headers.emplace_back("Accept", "text/plain");
  request.bearer = base::Secret("abc");
  const auto answer = send(*client, request);
  REQUIRE(answer);
  CHECK(answer->status == 201);
  CHECK(answer->body == "yes");
  CHECK(answer->header("x-a") == "1");
  CHECK(answer->retry_after() == 7s);
  CHECK_FALSE(answer->header("x-b"));
  CHECK(peer.requests() ==
        std::vector<std::string>{
            "POST /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(peer.endpoint().port) +
            "\r\nAccept: text/plain\r\nAuthorization: Bearer abc\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\n\r\n{}"});
}

TEST_CASE_METHOD(ClientFixture, "a GET has no body headers, an empty POST has a length") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  REQUIRE(send(*client, a_request(Method::kPost)));
  CHECK_THAT(peer.requests()[0], !Catch::Contains("Content-"));
  CHECK_THAT(peer.requests()[1], Catch::Contains("Content-Length: 0\r\n") && !Catch::Contains("Content-Type"));
}

TEST_CASE_METHOD(ClientFixture, "a connection is kept alive") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request(), send_bytes(kOk), wait_for_close()}});
  const auto client = make(peer.endpoint());
  CHECK(send(*client, a_request(Method::kGet))->body == "ok");
  CHECK(send(*client, a_request(Method::kPatch, "{}"))->body == "ok");
  CHECK(peer.connections() == 1);
}

TEST_CASE_METHOD(ClientFixture, "a connection that the server wants closed is not kept") {
  ScriptedPeer peer(r,
                    {{take_request(), send_bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
                      wait_for_close()}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  wait_for_closed(peer, 1);
  REQUIRE(send(*client, a_request(Method::kGet)));
  CHECK(peer.connections() == 2);
}

TEST_CASE_METHOD(ClientFixture, "a pooled connection that the server has closed is found out before a write") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk)}, {take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  wait_for_closed(peer, 1);
  CHECK(send(*client, a_request(Method::kPost, "{}"))->status == 200);
  CHECK(peer.requests().size() == 2);
}

TEST_CASE_METHOD(ClientFixture, "a read is repeated once if its pooled connection dies without an answer") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request()}, {take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  CHECK(send(*client, a_request(Method::kGet))->status == 200);
  CHECK(peer.requests().size() == 3);
  CHECK(peer.connections() == 2);
}

TEST_CASE_METHOD(ClientFixture, "a read is not repeated twice") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request()}, {take_request()}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  const auto answer = send(*client, a_request(Method::kGet));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::kUnavailable);
  CHECK(peer.requests().size() == 3);
}

TEST_CASE_METHOD(ClientFixture, "a read whose answer has begun is not repeated") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request(), send_bytes("HTTP/1.1 200 OK\r\n")},
                        {take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  const auto answer = send(*client, a_request(Method::kGet));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::kUnavailable);
  CHECK(peer.connections() == 1);
}

TEST_CASE_METHOD(ClientFixture, "a write that was sent and not answered is never repeated and has an unknown outcome") {
  const bool with_reset = GENERATE(false, true);
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request(), with_reset ? reset() : send_bytes("")},
                        {take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  REQUIRE(send(*client, a_request(Method::kGet)));
  const Method method = GENERATE(Method::kPost, Method::kPut, Method::kPatch, Method::kDelete);
  const auto answer = send(*client, a_request(method));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::kUnknownOutcome);
  CHECK(peer.requests().size() == 2);
}

TEST_CASE_METHOD(ClientFixture, "silence is a deadline for a read and an unknown outcome for a write") {
  ScriptedPeer peer(r, {{take_request(), wait_for_close()}});
  const auto client = make(peer.endpoint());
  const auto read = send(*client, a_request(Method::kGet), 50ms);
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::kDeadline);
  const auto write = send(*client, a_request(Method::kPost, "{}"), 50ms);
  REQUIRE_FALSE(write);
  CHECK(write.error().kind == ErrorKind::kUnknownOutcome);
  wait_for_closed(peer, 2);  // neither connection is kept
}

TEST_CASE_METHOD(ClientFixture, "a deadline that has passed sends nothing") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk), take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  CHECK(send(*client, a_request(Method::kPost, "{}"), -1s).error().kind == ErrorKind::kDeadline);
  CHECK(peer.connections() == 0);
  REQUIRE(send(*client, a_request(Method::kGet)));
  CHECK(send(*client, a_request(Method::kPost, "{}"), -1s).error().kind == ErrorKind::kDeadline);
  CHECK(peer.requests().size() == 1);
}

namespace {

/// Time that jumps after so many looks at it, as for a process that was stopped.
class JumpingTimers final : public async::Timers {
 public:
  JumpingTimers(async::Timers& real, int looks) : real_(real), looks_left_(looks) {}
  base::TimePoint now() const override { return real_.now() + (looks_left_-- > 0 ? 0h : 1h); }
  base::WallTime wall() const override { return real_.wall(); }
  std::unique_ptr<async::Waiter> make_waiter() override { return real_.make_waiter(); }

 private:
  async::Timers& real_;
  mutable int looks_left_;
};

}  // namespace

TEST_CASE_METHOD(ClientFixture, "a process that was stopped past the deadline sends nothing when it goes on") {
  int refused = 0;
  int answered = 0;
  for (int looks = 0; looks < 8; ++looks) {
    CAPTURE(looks);
    ScriptedPeer peer(r, {{take_request(), send_bytes(kOk)}});
    JumpingTimers timers(r.timers, looks);
    const auto client = *net::BeastHttpClientFactory(r.ctx.get_executor(), timers).make(peer.endpoint());
    const auto answer = r.run(client->send(a_request(Method::kPost, "{}"), r.timers.now() + 10s));
    if (answer) {
      ++answered;
      continue;
    }
    ++refused;
    const bool sent = !peer.requests().empty();
    CHECK(answer.error().kind == (sent ? ErrorKind::kUnknownOutcome : ErrorKind::kDeadline));
    CHECK_FALSE(sent);
  }
  CHECK(refused >= 2);  // before the connection, and between connection and write
  CHECK(answered >= 1);
}

TEST_CASE_METHOD(ClientFixture, "who cannot be reached is unavailable, for writes, too") {
  net::Endpoint nobody;
  {
    ScriptedPeer peer(r, {{}});
    nobody = peer.endpoint();
  }
  const auto client = make(nobody);
  const auto answer = send(*client, a_request(Method::kPost, "{}"));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::kUnavailable);
  CHECK_THAT(answer.error().message, Catch::Contains("127.0.0.1:" + std::to_string(nobody.port)));

  net::Endpoint no_socket;
  no_socket.scheme = net::Endpoint::Scheme::kUnix;
  no_socket.unix_path = "/nonexistent/engine.sock";
  const auto local = send(*make(no_socket), a_request(Method::kPost, "{}"));
  REQUIRE_FALSE(local);
  CHECK(local.error().kind == ErrorKind::kUnavailable);
  CHECK_THAT(local.error().message, Catch::Contains("/nonexistent/engine.sock"));
}

TEST_CASE_METHOD(ClientFixture, "an endpoint that can never be reached is refused when the client is made") {
  net::BeastHttpClientFactory factory(r.ctx.get_executor(), r.timers);
  net::Endpoint endpoint;
  CHECK(factory.make(endpoint).error().kind == ErrorKind::kInvalid);
  endpoint.scheme = net::Endpoint::Scheme::kUnix;
  CHECK(factory.make(endpoint).error().kind == ErrorKind::kInvalid);
  endpoint.unix_path = "/" + std::string(107, 'x');
  CHECK_THAT(factory.make(endpoint).error().message, Catch::Contains("107 bytes"));
  endpoint.unix_path.pop_back();
  CHECK(factory.make(endpoint));
}

TEST_CASE_METHOD(ClientFixture, "names are resolved") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk)}});
  net::Endpoint endpoint = peer.endpoint();
  endpoint.host = "localhost";
  CHECK(send(*make(endpoint), a_request(Method::kGet))->body == "ok");
}

TEST_CASE_METHOD(ClientFixture, "a body that is cut off is unavailable for a read and unknown for a write") {
  const std::string cut =
      GENERATE("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1 20", "rubbish\r\n\r\n");
  ScriptedPeer peer(r, {{take_request(), send_bytes(cut)}});
  const auto client = make(peer.endpoint());
  const auto read = send(*client, a_request(Method::kGet));
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::kUnavailable);
  CHECK(send(*client, a_request(Method::kPost, "{}")).error().kind == ErrorKind::kUnknownOutcome);
}

TEST_CASE_METHOD(ClientFixture, "an answer may come in pieces of one byte") {
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\nTrailer: "
      "x\r\n\r\n";
  Script script = {take_request()};
  for (const char c : text) script.push_back(send_bytes(std::string(1, c)));
  script.push_back(take_request());
  script.push_back(send_bytes(kOk));
  ScriptedPeer peer(r, {script});
  const auto client = make(peer.endpoint());
  CHECK(send(*client, a_request(Method::kGet))->body == "hello, world");
  CHECK(send(*client, a_request(Method::kGet))->body == "ok");
  CHECK(peer.connections() == 1);
}

TEST_CASE_METHOD(ClientFixture, "an answer over the limit is refused") {
  const std::string large =
      GENERATE("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
               "HTTP/1.1 200 OK\r\n\r\n01234567890");
  ScriptedPeer peer(r, {{take_request(), send_bytes(large)}});
  const auto client = make(peer.endpoint());
  net::HttpRequest request = a_request(Method::kGet);
  request.max_response = 11;
  CHECK(send(*client, request)->body == "01234567890");
  request.max_response = 10;
  CHECK(send(*client, request).error().kind == ErrorKind::kInvalid);
  // The write may well have happened.
  request.method = Method::kPost;
  CHECK(send(*client, request).error().kind == ErrorKind::kUnknownOutcome);
}

TEST_CASE_METHOD(ClientFixture, "answers without a body, with an open end, and interim answers are understood") {
  ScriptedPeer peer(r, {{take_request(), send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"), take_request(),
                         send_bytes("HTTP/1.1 204 No Content\r\n\r\n"), take_request(),
                         send_bytes("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
                         send_bytes("HTTP/1.1 404 Not Found\r\n\r\nuntil the end")}});
  const auto client = make(peer.endpoint());
  CHECK(send(*client, a_request(Method::kHead))->body.empty());
  CHECK(send(*client, a_request(Method::kDelete))->status == 204);
  const auto last = send(*client, a_request(Method::kGet));
  CHECK(last->status == 404);
  CHECK(last->body == "until the end");
  CHECK(peer.connections() == 1);
}

TEST_CASE_METHOD(ClientFixture, "connections are limited, and waiting for one respects the deadline") {
  ScriptedPeer peer(
      r, {{take_request(), send_bytes(kOk), take_request(), send_bytes(kOk), take_request(), wait_for_close()}});
  net::Endpoint endpoint = peer.endpoint();
  endpoint.max_connections = 1;
  const auto client = make(endpoint);
  async::TaskGroup group(r.ctx.get_executor());
  std::optional<base::Result<net::HttpResponse>> first;
  std::optional<base::Result<net::HttpResponse>> second;
  group.spawn(keep(client->send(a_request(Method::kPost), r.timers.now() + 10s), first));
  group.spawn(keep(client->send(a_request(Method::kPost), r.timers.now() + 10s), second));
  r.run(group.join());
  CHECK((*first)->status == 200);
  CHECK((*second)->status == 200);
  CHECK(peer.connections() == 1);

  std::optional<base::Result<net::HttpResponse>> busy;
  async::TaskGroup blocked(r.ctx.get_executor());
  blocked.spawn(keep(client->send(a_request(Method::kGet), r.timers.now() + 10s), busy));
  r.run_until([&] { return peer.requests().size() == 3; });
  const auto late = send(*client, a_request(Method::kPost), 50ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().kind == ErrorKind::kDeadline);
  CHECK(peer.requests().size() == 3);
  r.run(blocked.stop());
}

TEST_CASE_METHOD(ClientFixture, "a task that is cancelled closes its connection and gives its place back") {
  ScriptedPeer peer(r, {{take_request(), wait_for_close()}, {take_request(), send_bytes(kOk)}});
  net::Endpoint endpoint = peer.endpoint();
  endpoint.max_connections = 1;
  const auto client = make(endpoint);
  async::TaskGroup group(r.ctx.get_executor());
  std::optional<base::Result<net::HttpResponse>> out;
  group.spawn(keep(client->send(a_request(Method::kGet), r.timers.now() + 10s), out));
  r.run_until([&] { return peer.requests().size() == 1; });
  r.run(group.stop());
  wait_for_closed(peer, 1);
  CHECK(send(*client, a_request(Method::kGet))->status == 200);
}

TEST_CASE_METHOD(ClientFixture, "nothing can be smuggled into a request") {
  ScriptedPeer peer(r, {{take_request(), send_bytes(kOk)}});
  const auto client = make(peer.endpoint());
  net::HttpRequest target = a_request(Method::kGet);
  target.target = "/a HTTP/1.1\r\nX: y";
  CHECK(send(*client, target).error().kind == ErrorKind::kInvalid);
  net::HttpRequest header = a_request(Method::kGet);
  header.headers.emplace_back("X", "a\r\nY: b");
  CHECK(send(*client, header).error().kind == ErrorKind::kInvalid);
  net::HttpRequest token = a_request(Method::kGet);
  token.bearer = base::Secret("tok\nen");
  const auto answer = send(*client, token);
  CHECK(answer.error().kind == ErrorKind::kInvalid);
  CHECK_THAT(answer.error().message, !Catch::Contains("tok\nen"));
  CHECK(peer.requests().empty());
}
