// The server's answers that come piece by piece, and connections that are taken over.
#include <catch2/catch.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "test/support/certificates.hpp"
#include "test/support/docker_stream.hpp"
#include "test/support/real_reactor.hpp"
#include "vk-provider/net/http_client.hpp"
#include "vk-provider/net/http_server.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
namespace asio = boost::asio;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

/// What the handler gives out as a body, and what becomes of it.
using Script = std::shared_ptr<DockerStreamScript>;

asio::awaitable<void> echo_until_end(async::ByteStreamPtr connection, bool* ended) {
  struct End {
    bool* ended;
    ~End() { *ended = true; }
  } end{ended};
  static_cast<void>(co_await connection->write("HTTP/1.1 101 Switching Protocols\r\n\r\n", base::Deadline::max()));
  for (;;) {
    const auto bytes = co_await connection->read(base::Deadline::max());
    if (!bytes || bytes->empty()) co_return;
    static_cast<void>(co_await connection->write("<" + *bytes + ">", base::Deadline::max()));
  }
}

async::Loop stop_server(net::HttpServer& server, base::Deadline deadline) { co_await server.stop(deadline); }

struct StreamServer {
  ~StreamServer() {
    if (server) r.run(server->stop(r.timers.now() + 10ms));
  }

  void start() {
    server = std::make_unique<net::HttpServer>(
        r.ctx.get_executor(), r.timers, config,
        [this](net::HttpServerRequest request) { return handle(this, std::move(request)); });
    REQUIRE(server->start());
    endpoint.scheme = config.tls.cert_pem.empty() ? net::Endpoint::Scheme::kHttp : net::Endpoint::Scheme::kHttps;
    endpoint.host = "127.0.0.1";
    endpoint.port = server->port();
    client = *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
  }

  static asio::awaitable<net::HttpServerResponse> handle(StreamServer* self, net::HttpServerRequest request) {
    net::HttpServerResponse response(200, "text/plain", "plain");
    if (request.path() == "/stream") {
      self->script = std::make_shared<DockerStreamScript>(self->r.timers);
      for (const std::string& piece : self->prepared) self->script->give(piece);
      response.stream = std::make_unique<DockerModelStream>(self->script);
    }
    if (request.path() == "/upgrade") {
      bool* const ended = &self->upgrade_ended;
      response.take_over = [ended](async::ByteStreamPtr connection) {
        return echo_until_end(std::move(connection), ended);
      };
    }
    co_return response;
  }

  base::Result<net::HttpStream> open(std::string target = "/stream") {
    net::HttpRequest request;
    request.target = std::move(target);
    return r.run(client->open(std::move(request), in(10s)));
  }
  base::Result<net::HttpResponse> get(std::string target) {
    net::HttpRequest request;
    request.target = std::move(target);
    return r.run(client->send(std::move(request), in(10s)));
  }
  base::Result<std::string> read(net::HttpStream& stream) { return r.run(stream.body->read(in(10s))); }
  base::Deadline in(base::Duration d) { return r.timers.now() + d; }

  /// A connection that says only what it is told to, and closes when it dies.
  asio::ip::tcp::socket connect() {
    asio::ip::tcp::socket socket(r.ctx);
    socket.connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), server->port()));
    return socket;
  }
  void say(asio::ip::tcp::socket& socket, const std::string& bytes) { asio::write(socket, asio::buffer(bytes)); }
  /// Up to the end of the connection.
  std::string hear(asio::ip::tcp::socket& socket) {
    std::string all;
    r.run(hear_into(&socket, &all));
    return all;
  }
  static asio::awaitable<void> hear_into(asio::ip::tcp::socket* socket, std::string* all) {
    co_await asio::async_read(*socket, asio::dynamic_buffer(*all), kToken);
  }

  RealReactor r;
  net::HttpServerConfig config;
  net::Endpoint endpoint;
  std::vector<std::string> prepared;
  Script script;
  bool upgrade_ended = false;
  std::unique_ptr<net::HttpServer> server;
  std::unique_ptr<net::HttpClient> client;
};

}  // namespace

TEST_CASE_METHOD(StreamServer, "a streamed answer goes out piece by piece, as soon as each is there") {
  start();
  auto stream = open();
  REQUIRE(stream);
  CHECK(stream->head.status == 200);
  CHECK(stream->head.header("transfer-encoding") == "chunked");
  CHECK(server->streams() == 1);
  for (const std::string& piece : {std::string("one\n"), std::string("two\n"), std::string(100'000, 'x')}) {
    script->give(piece);
    std::string got;
    while (got.size() < piece.size()) got += *read(*stream);
    CHECK(got == piece);
  }
  script->give_end();
  CHECK(*read(*stream) == "");
  r.run_until([&] { return server->streams() == 0; });
  CHECK(script->destroyed);
}

TEST_CASE_METHOD(StreamServer, "the connection of a streamed answer serves the next request") {
  prepared = {"a", "bc", ""};
  start();
  CHECK(get("/stream")->body == "abc");
  CHECK(get("/plain")->body == "plain");
  CHECK(get("/stream")->body == "abc");
  CHECK(server->connections() == 1);
}

TEST_CASE_METHOD(StreamServer, "what is asked while an answer streams is answered after it") {
  prepared = {"a", ""};
  start();
  auto socket = connect();
  say(socket, "GET /stream HTTP/1.1\r\n\r\nGET /plain HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = hear(socket);
  const size_t first = all.find("1\r\na\r\n0\r\n\r\n");
  REQUIRE(first != std::string::npos);
  CHECK(all.find("plain", first) != std::string::npos);
}

TEST_CASE_METHOD(StreamServer, "a client that leaves is noticed while nothing is written") {
  SECTION("plain") {}
  SECTION("TLS") {
    const Certificate ca = make_ca("CA");
    const Certificate leaf = issue(ca, "server", {"IP:127.0.0.1"});
    config.tls.cert_pem = leaf.cert_pem;
    config.tls.key_pem = leaf.key_pem;
    endpoint.ca_pem = ca.cert_pem;
  }
  start();
  auto stream = open();
  REQUIRE(stream);
  script->give("one");
  CHECK(*read(*stream) == "one");
  CHECK_FALSE(script->destroyed);
  stream->body.reset();
  r.run_until([&] { return script->destroyed && server->connections() == 0; });
}

TEST_CASE_METHOD(StreamServer, "a stream that breaks is cut, and does not look whole") {
  start();
  auto stream = open();
  REQUIRE(stream);
  script->give("one");
  CHECK(*read(*stream) == "one");
  script->give_error(base::Error(ErrorKind::kUnavailable, "broken"));
  CHECK(read(*stream).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(StreamServer, "a slow reader holds back the stream, and only its own") {
  start();
  auto socket = connect();
  say(socket, "GET /stream HTTP/1.1\r\nConnection: close\r\n\r\n");
  r.run_until([&] { return script != nullptr; });
  const Script slow = script;
  const std::string piece(64 * 1024, 'x');
  constexpr int kPieces = 1000;  // more than any socket buffers
  for (int i = 0; i < kPieces; ++i) slow->give(piece);
  slow->give_end();
  auto other = open();
  REQUIRE(other);
  script->give("quick");
  CHECK(*read(*other) == "quick");
  const int read_so_far = slow->reads;
  CHECK(read_so_far < kPieces);
  const std::string all = hear(socket);
  CHECK(slow->reads > read_so_far);
  CHECK(all.size() > kPieces * piece.size());
  CHECK_THAT(all, Catch::EndsWith("\r\n0\r\n\r\n"));
}

TEST_CASE_METHOD(StreamServer, "a reader that takes nothing for too long is cut off") {
  config.stall_time = 50ms;
  start();
  auto socket = connect();
  say(socket, "GET /stream HTTP/1.1\r\n\r\n");
  r.run_until([&] { return script != nullptr; });
  for (int i = 0; i < 1000; ++i) script->give(std::string(64 * 1024, 'x'));
  r.run_until([&] { return server->connections() == 0; });
  CHECK(script->destroyed);
}

TEST_CASE_METHOD(StreamServer, "HTTP/1.0 knows no chunks: the end of the connection is that of the answer") {
  prepared = {"a", "bc", ""};
  start();
  auto socket = connect();
  say(socket, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string all = hear(socket);
  CHECK_THAT(all, Catch::EndsWith("\r\n\r\nabc"));
  CHECK_THAT(all, Catch::Contains("Connection: close"));
  CHECK_THAT(all, !Catch::Contains("chunked"));
}

TEST_CASE_METHOD(StreamServer, "HEAD of a stream is its head") {
  start();
  auto socket = connect();
  say(socket, "HEAD /stream HTTP/1.1\r\nConnection: close\r\n\r\n");
  CHECK_THAT(hear(socket), Catch::EndsWith("\r\n\r\n"));
  CHECK(script->destroyed);
}

TEST_CASE_METHOD(StreamServer, "a connection that is taken over keeps what the client said ahead") {
  start();
  auto socket = connect();
  say(socket, "GET /upgrade HTTP/1.1\r\n\r\nearly");
  std::string got;
  const std::string expected = "HTTP/1.1 101 Switching Protocols\r\n\r\n<early>";
  got.resize(expected.size());
  r.run([](asio::ip::tcp::socket& s, std::string& buffer) -> asio::awaitable<void> {
    co_await asio::async_read(s, asio::buffer(buffer), kToken);
  }(socket, got));
  CHECK(got == expected);
  CHECK(server->streams() == 1);
  CHECK_FALSE(upgrade_ended);
  socket.close();
  r.run_until([&] { return upgrade_ended && server->connections() == 0; });
  CHECK(server->streams() == 0);
}

TEST_CASE_METHOD(StreamServer, "a connection that is taken over is not idle, nor too slow") {
  config.idle_time = 10ms;
  config.header_time = 10ms;
  config.transfer_time = 10ms;
  start();
  auto stream = open("/upgrade");
  REQUIRE(stream);
  r.run(r.timers.sleep_for(50ms));
  REQUIRE(r.run(stream->body->write("x", in(10s))));
  CHECK(*read(*stream) == "<x>");
}

TEST_CASE_METHOD(StreamServer, "streams over the limit are refused, requests are not") {
  config.max_streams = 1;
  start();
  auto stream = open();
  REQUIRE(stream);
  CHECK(get("/upgrade")->status == 503);
  CHECK(get("/stream")->status == 503);
  CHECK(get("/plain")->status == 200);
  stream->body.reset();
  r.run_until([&] { return server->streams() == 0; });
  CHECK(open()->head.status == 200);
}

TEST_CASE_METHOD(StreamServer, "a stop leaves streams until its deadline, and then ends them") {
  start();
  auto stream = open();
  auto upgraded = open("/upgrade");
  REQUIRE(stream);
  REQUIRE(upgraded);
  async::TaskGroup group(r.ctx.get_executor());
  group.spawn(stop_server(*server, in(100ms)));
  script->give("still there");
  CHECK(*read(*stream) == "still there");
  r.run(group.join());
  CHECK(script->destroyed);
  CHECK(upgrade_ended);
  CHECK(server->connections() == 0);
  CHECK(server->streams() == 0);
  CHECK(read(*stream).error().kind == ErrorKind::kUnavailable);
  CHECK(*read(*upgraded) == "");
}
