#include "vk-provider/net/tcp_stream.hpp"

#include <catch2/catch.hpp>

#include "test/support/certificates.hpp"
#include "test/support/real_reactor.hpp"
#include "test/support/scripted_peer.hpp"
#include "vk-provider/net/http_server.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using test::RealReactor;

namespace {

boost::asio::awaitable<net::HttpServerResponse> no_content(net::HttpServerRequest request) {
  co_return net::HttpServerResponse(request.target == "/up" ? 204 : 503, "text/plain", "");
}

net::HttpRequest get(std::string target) {
  net::HttpRequest request;
  request.target = std::move(target);
  return request;
}

}  // namespace

TEST_CASE("a TCP connection is a plain stream of bytes") {
  RealReactor r;
  test::ScriptedPeer peer(r, {{test::echo_then("bye")}});
  auto stream =
      r.run(net::connect_tcp(r.ctx.get_executor(), r.timers, "127.0.0.1", peer.endpoint().port, r.timers.now() + 5s));
  REQUIRE(stream);
  REQUIRE(r.run((*stream)->write("hello", r.timers.now() + 5s)));
  CHECK(r.run((*stream)->read(r.timers.now() + 5s)) == "hello");
  REQUIRE(r.run((*stream)->close_write(r.timers.now() + 5s)));
  CHECK(r.run((*stream)->read(r.timers.now() + 5s)) == "bye");
  CHECK(r.run((*stream)->read(r.timers.now() + 5s)) == "");
}

TEST_CASE("nobody listens: the connection is refused") {
  RealReactor r;
  const auto stream = r.run(net::connect_tcp(r.ctx.get_executor(), r.timers, "127.0.0.1", 1, r.timers.now() + 5s));
  REQUIRE_FALSE(stream);
  CHECK(stream.error().kind == base::ErrorKind::kUnavailable);
}

TEST_CASE("TLS without verification: whoever answers is spoken to") {
  RealReactor r;
  const test::Certificate ca = test::make_ca("nobody's CA");
  const test::Certificate leaf = test::issue(ca, "server", {"DNS:somebody.else"});
  net::HttpServerConfig config;
  config.tls.cert_pem = leaf.cert_pem;
  config.tls.key_pem = leaf.key_pem;
  net::HttpServer server(r.ctx.get_executor(), r.timers, config, no_content);
  REQUIRE(server.start());
  for (const auto& [path, status] : std::vector<std::pair<std::string, int>>{{"/up", 204}, {"/down", 503}}) {
    auto stream =
        r.run(net::connect_tcp(r.ctx.get_executor(), r.timers, "127.0.0.1", server.port(), r.timers.now() + 5s));
    REQUIRE(stream);
    auto tls = r.run(net::start_unverified_tls(std::move(*stream), "127.0.0.1", r.timers.now() + 5s));
    REQUIRE(tls);
    const auto answer = r.run(net::exchange_head(**tls, get(path), "127.0.0.1", r.timers.now() + 5s));
    REQUIRE(answer);
    CHECK(answer->status == status);
  }
  r.run(server.stop(r.timers.now() + 1s));
}

TEST_CASE("a peer that does not speak TLS is told so") {
  RealReactor r;
  test::ScriptedPeer peer(r, {{test::send_bytes("SSH-2.0-OpenSSH_9\r\n"), test::wait_for_close()}});
  auto stream =
      r.run(net::connect_tcp(r.ctx.get_executor(), r.timers, "127.0.0.1", peer.endpoint().port, r.timers.now() + 5s));
  REQUIRE(stream);
  const auto tls = r.run(net::start_unverified_tls(std::move(*stream), "127.0.0.1", r.timers.now() + 5s));
  REQUIRE_FALSE(tls);
  CHECK(tls.error().message == "the peer does not speak TLS");
}
