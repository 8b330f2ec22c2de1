// TLS between the client and the server: whom it trusts, and what an untrusted one is called.
#include <catch2/catch.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "test/support/certificates.hpp"
#include "test/support/real_reactor.hpp"
#include "vk-provider/net/http_client.hpp"
#include "vk-provider/net/http_server.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace net = spillway::net;
namespace async = spillway::async;
namespace base = spillway::base;
namespace asio = boost::asio;
using base::ErrorKind;

namespace {

asio::awaitable<net::HttpServerResponse> echo_length(net::HttpServerRequest request) {
  co_return net::HttpServerResponse(200, "text/plain", std::to_string(request.body.size()) + std::string(50000, '.'));
}

/// Takes the connection over: reads to the end of the client's half, then says how much that was, and ends its own.
asio::awaitable<net::HttpServerResponse> count_to_the_end(net::HttpServerRequest) {
  net::HttpServerResponse response;
  response.take_over = [](async::ByteStreamPtr stream) -> asio::awaitable<void> {
    constexpr auto kFar = base::Deadline::max();
    auto begun = co_await stream->write("HTTP/1.1 101 Switching Protocols\r\n\r\n", kFar);
    std::size_t count = 0;
    for (;;) {
      const auto bytes = co_await stream->read(kFar);
      if (!bytes || bytes->empty()) break;
      count += bytes->size();
    }
    if (begun) begun = co_await stream->write("got " + std::to_string(count), kFar);
    if (begun) static_cast<void>(co_await stream->close_write(kFar));
  };
  co_return response;
}

/// A TLS server on 127.0.0.1.
struct TlsFixture {
  TlsFixture() : ca(make_ca("test CA")), other_ca(make_ca("other CA")) {}
  ~TlsFixture() {
    if (server) r.run(server->stop(r.timers.now() + 10s));
  }

  void serve(const std::vector<std::string>& alt_names, net::HttpServer::Handler handler = echo_length) {
    const Certificate leaf = issue(ca, "server", alt_names);
    net::HttpServerConfig config;
    config.tls.cert_pem = leaf.cert_pem;
    config.tls.key_pem = leaf.key_pem;
    server = std::make_unique<net::HttpServer>(r.ctx.get_executor(), r.timers, config, std::move(handler));
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

TEST_CASE_METHOD(TlsFixture, "half of a TLS stream can be ended: what the other side still says comes") {
  serve({"IP:127.0.0.1"}, count_to_the_end);
  auto client = net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
  REQUIRE(client);
  net::HttpRequest request;
  request.method = net::Method::kPost;
  request.target = "/";
  const auto in_time = [this] { return r.timers.now() + 10s; };
  auto stream = r.run((*client)->open(request, in_time()));
  REQUIRE(stream);
  REQUIRE(stream->head.status == 101);
  // More than the socket holds, so that it is written in parts.
  const std::string bytes(8'000'000, 'b');
  REQUIRE(r.run(stream->body->write(bytes, in_time())));
  REQUIRE(r.run(stream->body->close_write(in_time())));
  CHECK(*r.run(stream->body->read(in_time())) == "got 8000000");
  CHECK(r.run(stream->body->read(in_time()))->empty());
}

TEST_CASE_METHOD(TlsFixture, "a TLS peer that has gone is an error, and not the end of the process") {
  serve({"IP:127.0.0.1"}, count_to_the_end);
  auto client = net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
  REQUIRE(client);
  net::HttpRequest request;
  request.method = net::Method::kPost;
  request.target = "/";
  auto stream = r.run((*client)->open(request, r.timers.now() + 10s));
  REQUIRE(stream);
  r.run(server->stop(r.timers.now()));
  base::Result<void> written;
  for (int i = 0; i < 10 && written; ++i) {
    written = r.run(stream->body->write(std::string(1'000'000, 'b'), r.timers.now() + 10s));
  }
  REQUIRE_FALSE(written);
  CHECK(written.error().kind == ErrorKind::kUnavailable);
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

namespace {

/// A TLS server that answers who the client is.
asio::awaitable<net::HttpServerResponse> name_client(net::HttpServerRequest request) {
  net::HttpServerResponse response(200, "text/plain", "nobody");
  if (request.peer_certificate) {
    const net::PeerCertificate& peer = *request.peer_certificate;
    response.body = peer.trusted() ? peer.common_name : "not trusted: " + peer.problem;
    for (const std::string& organization : peer.organizations) response.body += "," + organization;
  }
  co_return response;
}

struct ClientCertificateFixture {
  ClientCertificateFixture()
      : ca(make_ca("server CA")), client_ca(make_ca("client CA")), other_ca(make_ca("other CA")) {
    const Certificate leaf = issue(ca, "server", {"IP:127.0.0.1"});
    config.tls.cert_pem = leaf.cert_pem;
    config.tls.key_pem = leaf.key_pem;
    config.tls.client_ca_pem = client_ca.cert_pem;
    endpoint.host = "127.0.0.1";
    endpoint.ca_pem = ca.cert_pem;
  }
  ~ClientCertificateFixture() {
    if (server) r.run(server->stop(r.timers.now() + 10s));
  }
  base::Result<void> start() {
    server = std::make_unique<net::HttpServer>(r.ctx.get_executor(), r.timers, config, name_client);
    auto started = server->start();
    if (started) endpoint.port = server->port();
    return started;
  }
  void show(const Certificate& certificate) {
    endpoint.client_cert_pem = certificate.cert_pem;
    endpoint.client_key_pem = certificate.key_pem;
  }
  std::unique_ptr<net::HttpClient> connect() {
    return *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
  }
  std::string ask(net::HttpClient& client) {
    net::HttpRequest request;
    request.target = "/";
    const auto answer = r.run(client.send(request, r.timers.now() + 10s));
    return answer ? answer->body : answer.error().message;
  }
  std::string ask() { return ask(*connect()); }

  RealReactor r;
  Certificate ca;
  Certificate client_ca;
  Certificate other_ca;
  net::HttpServerConfig config;
  net::Endpoint endpoint;
  std::unique_ptr<net::HttpServer> server;
};

}  // namespace

TEST_CASE_METHOD(ClientCertificateFixture, "a client is asked for a certificate, and may come without one") {
  REQUIRE(start());
  CHECK(ask() == "nobody");
  show(issue_client(client_ca, "kube-apiserver-kubelet-client", {"system:masters", "more"}));
  CHECK(ask() == "kube-apiserver-kubelet-client,system:masters,more");
  show(issue_client(client_ca, "any usage", {}, ""));
  CHECK(ask() == "any usage");
}

TEST_CASE_METHOD(ClientCertificateFixture, "a certificate that does not verify is told from none, and names nobody") {
  REQUIRE(start());
  show(issue_client(other_ca, "intruder", {"system:masters"}));
  CHECK_THAT(ask(), Catch::StartsWith("not trusted: ") && !Catch::Contains("masters"));
  show(issue_client(client_ca, "late", {}, "clientAuth", -1h));
  CHECK(ask() == "not trusted: certificate has expired");
  show(issue_client(client_ca, "a server's", {}, "serverAuth"));
  CHECK(ask() == "not trusted: unsuitable certificate purpose");
}

TEST_CASE_METHOD(ClientCertificateFixture, "without a CA for them clients are not asked who they are") {
  config.tls.client_ca_pem.clear();
  REQUIRE(start());
  show(issue_client(client_ca, "anybody", {}));
  CHECK(ask() == "nobody");
}

TEST_CASE_METHOD(ClientCertificateFixture, "certificate and CAs are replaced under connections that go on") {
  REQUIRE(start());
  show(issue_client(client_ca, "me", {}));
  const auto before = connect();
  CHECK(ask(*before) == "me");

  const Certificate new_ca = make_ca("new CA");
  const Certificate leaf = issue(new_ca, "server", {"IP:127.0.0.1"});
  net::ServerTls tls = config.tls;
  tls.cert_pem = "rubbish";
  CHECK(server->replace_tls(tls).error().kind == ErrorKind::kInvalid);
  CHECK(ask() == "me");
  tls.cert_pem = leaf.cert_pem;
  tls.key_pem = leaf.key_pem;
  tls.client_ca_pem = client_ca.cert_pem + other_ca.cert_pem;
  REQUIRE(server->replace_tls(tls));
  CHECK(ask(*before) == "me");
  CHECK_THAT(ask(), Catch::Contains("check the configured CA"));
  endpoint.ca_pem = new_ca.cert_pem;
  CHECK(ask() == "me");
  show(issue_client(other_ca, "other", {}));
  CHECK(ask() == "other");
  tls.client_ca_pem = other_ca.cert_pem;
  REQUIRE(server->replace_tls(tls));
  CHECK_THAT(ask(*before), Catch::StartsWith("not trusted: "));
}

namespace {

/// What a client that knows nothing newer than `version` agrees on with the server; empty if they do not agree.
asio::awaitable<std::string> agree(std::uint16_t port, int version) {
  constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
  asio::ssl::context context(asio::ssl::context::tls_client);
  SSL_CTX_set_max_proto_version(context.native_handle(), version);
  asio::ssl::stream<asio::ip::tcp::socket> stream(co_await asio::this_coro::executor, context);
  const asio::ip::tcp::endpoint server(asio::ip::address_v4::loopback(), port);
  co_await stream.next_layer().async_connect(server, kToken);
  const auto [ec] = co_await stream.async_handshake(asio::ssl::stream_base::client, kToken);
  if (ec) co_return "";
  co_return std::string(SSL_get_version(stream.native_handle())) + " " + SSL_get_cipher_name(stream.native_handle());
}

}  // namespace

TEST_CASE_METHOD(ClientCertificateFixture, "versions and ciphers of TLS are what they are set to") {
  std::string newest;
  std::string older;
  SECTION("as they come") {
    newest = "TLSv1.3 TLS_AES_256_GCM_SHA384";
    older = "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384";
  }
  SECTION("TLS 1.3 only") {
    config.tls.min_version = net::TlsVersion::k13;
    config.tls.cipher_suites = {"TLS_AES_128_GCM_SHA256"};
    newest = "TLSv1.3 TLS_AES_128_GCM_SHA256";
  }
  SECTION("one of TLS 1.2") {
    config.tls.cipher_suites = {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"};
    newest = "TLSv1.3 TLS_AES_256_GCM_SHA384";
    older = "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256";
  }
  REQUIRE(start());
  CHECK(r.run(agree(server->port(), TLS1_3_VERSION)) == newest);
  CHECK(r.run(agree(server->port(), TLS1_2_VERSION)) == older);
  CHECK(r.run(agree(server->port(), TLS1_1_VERSION)).empty());
}

TEST_CASE_METHOD(ClientCertificateFixture, "settings of TLS that cannot be used are refused by name") {
  std::string expected;
  SECTION("suite") {
    config.tls.cipher_suites = {"TLS_AES_128_GCM_SHA256", "TLS_OF_TOMORROW"};
    expected = "no cipher suite \"TLS_OF_TOMORROW\"";
  }
  SECTION("CA") {
    config.tls.client_ca_pem = "rubbish";
    expected = "CA of client certificates";
  }
  SECTION("CA that is cut off") {
    config.tls.client_ca_pem.resize(config.tls.client_ca_pem.size() / 2);
    expected = "CA of client certificates";
  }
  const auto started = start();
  REQUIRE_FALSE(started);
  CHECK(started.error().kind == ErrorKind::kInvalid);
  CHECK_THAT(started.error().message, Catch::Contains(expected));
}
