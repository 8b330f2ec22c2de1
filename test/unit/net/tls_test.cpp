// TLS between the client and the server: whom it trusts, and what an untrusted one is called.
#include <catch2/catch.hpp>

#include "test/support/certificates.hpp"
#include "test/support/real_reactor.hpp"
#include "vk-provider/net/http_client.hpp"
#include "vk-provider/net/http_server.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace net = spillway::net;
namespace base = spillway::base;
namespace asio = boost::asio;
using base::ErrorKind;

namespace {

asio::awaitable<net::HttpServerResponse> echo_length(net::HttpServerRequest request) {
  co_return net::HttpServerResponse(200, "text/plain", std::to_string(request.body.size()) + std::string(50000, '.'));
}

/// A TLS server on 127.0.0.1.
struct TlsFixture {
  TlsFixture() : ca(make_ca("test CA")), other_ca(make_ca("other CA")) {}
  ~TlsFixture() {
    if (server) r.run(server->stop(r.timers.now() + 10s));
  }

  void serve(const std::vector<std::string>& alt_names) {
    const Certificate leaf = issue(ca, "server", alt_names);
    net::HttpServerConfig config;
    config.cert_pem = leaf.cert_pem;
    config.key_pem = leaf.key_pem;
    server = std::make_unique<net::HttpServer>(r.ctx.get_executor(), r.timers, config, echo_length);
    REQUIRE(server->start());
    endpoint.scheme = net::Endpoint::Scheme::kHttps;
    endpoint.host = "127.0.0.1";
    endpoint.port = server->port();
    endpoint.ca_pem = ca.cert_pem;
  }

  base::Result<net::HttpResponse> post() {
    auto client = net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
    if (!client) return base::fail(client.error());
    net::HttpRequest request;
    request.method = net::Method::kPost;
    request.target = "/";
    request.body = std::string(100000, 'b');
    auto first = r.run((*client)->send(request, r.timers.now() + 10s));
    if (!first) return first;
    CHECK(server->connections() == 1);
    return r.run((*client)->send(request, r.timers.now() + 10s));
  }

  RealReactor r;
  Certificate ca;
  Certificate other_ca;
  std::unique_ptr<net::HttpServer> server;
  net::Endpoint endpoint;
};

}  // namespace

TEST_CASE_METHOD(TlsFixture, "a server with the right name or address is trusted, and its connection kept") {
  SECTION("by its address") { serve({"IP:127.0.0.1"}); }
  SECTION("by its name, where the connection goes to an address") {
    serve({"DNS:api.cluster.test"});
    endpoint.server_name = "api.cluster.test";
  }
  SECTION("by a wildcard") {
    serve({"DNS:*.cluster.test"});
    endpoint.server_name = "api.cluster.test";
  }
  const auto answer = post();
  REQUIRE(answer);
  CHECK(answer->body == "100000" + std::string(50000, '.'));
}

TEST_CASE_METHOD(TlsFixture, "a server that cannot be verified is unavailable, and gets nothing") {
  SECTION("another CA") {
    serve({"IP:127.0.0.1"});
    endpoint.ca_pem = other_ca.cert_pem;
  }
  SECTION("the system's CAs") {
    serve({"IP:127.0.0.1"});
    endpoint.ca_pem.clear();
  }
  SECTION("another address") { serve({"IP:127.0.0.2", "DNS:127.0.0.1"}); }
  SECTION("another name") {
    serve({"DNS:other.test", "IP:127.0.0.1"});
    endpoint.server_name = "api.cluster.test";
  }
  SECTION("part of a wildcard") {
    serve({"DNS:a*.cluster.test"});
    endpoint.server_name = "api.cluster.test";
  }
  const auto answer = post();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::kUnavailable);
  CHECK_THAT(answer.error().message, Catch::Contains("check the configured CA and server name"));
}

TEST_CASE_METHOD(TlsFixture, "a bundle of CAs is read whole") {
  serve({"IP:127.0.0.1"});
  endpoint.ca_pem = other_ca.cert_pem + ca.cert_pem;
  CHECK(post());
}

TEST_CASE_METHOD(TlsFixture, "plain text is no TLS") {
  serve({"IP:127.0.0.1"});
  endpoint.scheme = net::Endpoint::Scheme::kHttp;
  CHECK_FALSE(post());
}

TEST_CASE_METHOD(TlsFixture, "certificates and keys that cannot be used are refused by name") {
  const Certificate mine = issue(ca, "client", {});
  const Certificate other = issue(ca, "client", {});
  net::Endpoint bad;
  bad.host = "h";
  std::string expected;
  SECTION("CA") {
    bad.ca_pem = "rubbish";
    expected = "CA certificate";
  }
  SECTION("certificate") {
    bad.client_cert_pem = "rubbish";
    bad.client_key_pem = mine.key_pem;
    expected = "client certificate cannot be read";
  }
  SECTION("key") {
    bad.client_cert_pem = mine.cert_pem;
    bad.client_key_pem = base::Secret("rubbish");
    expected = "client key cannot be read";
  }
  SECTION("another key") {
    bad.client_cert_pem = mine.cert_pem;
    bad.client_key_pem = other.key_pem;
    expected = "does not belong";
  }
  SECTION("no key") {
    bad.client_cert_pem = mine.cert_pem;
    expected = "no client key";
  }
  SECTION("no certificate") {
    bad.client_key_pem = mine.key_pem;
    expected = "no client certificate";
  }
  const auto made = net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(bad);
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == ErrorKind::kInvalid);
  CHECK_THAT(made.error().message, Catch::Contains(expected));
  CHECK_THAT(made.error().message, !Catch::Contains("PRIVATE KEY"));
}
