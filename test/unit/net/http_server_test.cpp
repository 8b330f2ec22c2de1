// The server: limits, keep-alive, and how it stops.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

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
using net::Method;

namespace {

struct Seen {
  std::vector<net::HttpServerRequest> requests;
  int status = 200;
  async::Waiter* hold = nullptr;  // set: the handler waits for it
};

asio::awaitable<net::HttpServerResponse> note(Seen* seen, net::HttpServerRequest request) {
  seen->requests.push_back(request);
  if (seen->hold != nullptr) co_await seen->hold->wait();
  net::HttpServerResponse response(seen->status, "text/plain",
                                   request.method + " " + request.target + " " + request.body);
  response.headers.emplace_back("X-One", "1");
  response.headers.emplace_back("X-Forged", "a\r\nX-Two: 2");
  co_return response;
}

/// Sends raw bytes and reads until the server closes.
asio::awaitable<std::string> talk_raw(std::uint16_t port, std::string bytes) {
  constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  co_await socket.async_connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port), kToken);
  co_await asio::async_write(socket, asio::buffer(bytes), kToken);
  std::string all;
  co_await asio::async_read(socket, asio::dynamic_buffer(all), kToken);
  co_return all;
}

async::Loop keep(async::Task<net::HttpResponse> task, std::optional<base::Result<net::HttpResponse>>& out) {
  out.emplace(co_await std::move(task));
}

async::Loop stop_server(net::HttpServer& server, base::Deadline deadline, bool& stopped) {
  co_await server.stop(deadline);
  stopped = true;
}

struct ServerFixture {
  ServerFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "spillway-XXXXXX").string();
    directory = ::mkdtemp(name.data());
  }
  ~ServerFixture() {
    if (server) r.run(server->stop(r.timers.now() + 10s));
    std::filesystem::remove_all(directory);
  }

  base::Result<void> start() {
    server = std::make_unique<net::HttpServer>(r.ctx.get_executor(), r.timers, config, handler());
    const auto started = server->start();
    endpoint.scheme = config.unix_path.empty() ? net::Endpoint::Scheme::kHttp : net::Endpoint::Scheme::kUnix;
    endpoint.host = "127.0.0.1";
    endpoint.port = server->port();
    endpoint.unix_path = config.unix_path;
    client = *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
    return started;
  }
  net::HttpServer::Handler handler() {
    return [this](net::HttpServerRequest request) { return note(&seen, std::move(request)); };
  }
  base::Result<net::HttpResponse> send(Method method, std::string body = {}) {
    return r.run(client->send(request(method, std::move(body)), r.timers.now() + 10s));
  }
  static net::HttpRequest request(Method method, std::string body = {}) {
    net::HttpRequest out;
    out.method = method;
    out.target = "/a/b?c=d";
    out.body = std::move(body);
    return out;
  }

  RealReactor r;
  Seen seen;
  std::filesystem::path directory;
  net::HttpServerConfig config;
  net::Endpoint endpoint;
  std::unique_ptr<net::HttpServer> server;
  std::unique_ptr<net::HttpClient> client;
};

}  // namespace

TEST_CASE_METHOD(ServerFixture, "a request is handed over whole, and its answer sent back") {
  SECTION("TCP") {}
  SECTION("Unix") { config.unix_path = directory / "s.sock"; }
  REQUIRE(start());
  const auto answer = send(Method::kPost, "body");
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->body == "POST /a/b?c=d body");
  CHECK(answer->header("x-one") == "1");
  CHECK_FALSE(answer->header("X-Two"));
  REQUIRE(seen.requests.size() == 1);
  CHECK(seen.requests[0].path() == "/a/b");
  CHECK(seen.requests[0].query() == "c=d");
  CHECK(seen.requests[0].from_loopback);
  CHECK(seen.requests[0].header("content-length") == "4");
  CHECK(send(Method::kGet)->body == "GET /a/b?c=d ");
  CHECK(send(Method::kHead)->body.empty());
  CHECK(server->connections() == 1);
}

TEST_CASE_METHOD(ServerFixture, "an answer that may have no body has none") {
  REQUIRE(start());
  seen.status = 204;
  CHECK(send(Method::kGet)->status == 204);
  seen.status = 200;
  CHECK(send(Method::kGet)->body == "GET /a/b?c=d ");
  CHECK(server->connections() == 1);
}

TEST_CASE_METHOD(ServerFixture, "two requests in one packet are answered in order") {
  REQUIRE(start());
  const std::string answer = r.run(talk_raw(
      server->port(), "POST /1 HTTP/1.1\r\nContent-Length: 1\r\n\r\nxGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n"));
  const size_t first = answer.find("POST /1 x");
  REQUIRE(first != std::string::npos);
  CHECK(answer.find("GET /2 ") > first);
}

TEST_CASE_METHOD(ServerFixture, "who asks first is told to go on") {
  REQUIRE(start());
  const std::string answer = r.run(talk_raw(server->port(),
                                            "POST /1 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: "
                                            "4\r\nConnection: close\r\n\r\nbody"));
  CHECK_THAT(answer, Catch::EndsWith("POST /1 body"));
}

TEST_CASE_METHOD(ServerFixture, "what is too large or no HTTP is refused") {
  config.max_body = 10;
  config.max_header = 200;
  REQUIRE(start());
  CHECK(send(Method::kPost, "0123456789")->status == 200);
  CHECK(send(Method::kPost, "0123456789a")->status == 413);
  CHECK_THAT(r.run(talk_raw(server->port(), "GET / HTTP/1.1\r\nX: " + std::string(300, 'x') + "\r\n\r\n")),
             Catch::StartsWith("HTTP/1.1 431 "));
  CHECK_THAT(r.run(talk_raw(server->port(), "rubbish\r\n\r\n")), Catch::StartsWith("HTTP/1.1 400 "));
  CHECK(seen.requests.size() == 1);
}

TEST_CASE_METHOD(ServerFixture, "a client that dawdles is cut off") {
  SECTION("idle") { config.idle_time = 30ms; }
  SECTION("in the headers") { config.header_time = 30ms; }
  SECTION("in the body") { config.transfer_time = 30ms; }
  REQUIRE(start());
  const std::string bytes = config.idle_time == 30ms     ? ""
                            : config.header_time == 30ms ? "GET / HT"
                                                         : "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab";
  CHECK(r.run(talk_raw(server->port(), bytes)).empty());
  CHECK(seen.requests.empty());
}

TEST_CASE_METHOD(ServerFixture, "connections over the limit wait their turn") {
  config.max_connections = 1;
  REQUIRE(start());
  const auto waiter = r.timers.make_waiter();
  seen.hold = waiter.get();
  std::optional<base::Result<net::HttpResponse>> first;
  std::optional<base::Result<net::HttpResponse>> second;
  const auto other = *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
  async::TaskGroup group(r.ctx.get_executor());
  group.spawn(keep(client->send(request(Method::kPost), r.timers.now() + 10s), first));
  r.run_until([&] { return seen.requests.size() == 1; });
  group.spawn(keep(other->send(request(Method::kPost), r.timers.now() + 10s), second));
  seen.hold = nullptr;
  waiter->wake();
  r.run_until([&] { return first.has_value(); });
  CHECK(seen.requests.size() == 1);
  client.reset();  // closes the idle connection
  r.run(group.join());
  CHECK((*second)->status == 200);
}

TEST_CASE_METHOD(ServerFixture, "a stop ends idle connections at once and lets an answer out") {
  REQUIRE(start());
  CHECK(send(Method::kGet));  // leaves an idle connection
  const auto waiter = r.timers.make_waiter();
  seen.hold = waiter.get();
  const auto other = *net::BeastHttpClientFactory(r.ctx.get_executor(), r.timers).make(endpoint);
  std::optional<base::Result<net::HttpResponse>> answer;
  bool stopped = false;
  async::TaskGroup group(r.ctx.get_executor());
  group.spawn(keep(other->send(request(Method::kPost), r.timers.now() + 10s), answer));
  r.run_until([&] { return seen.requests.size() == 2; });
  group.spawn(stop_server(*server, r.timers.now() + 20s, stopped));
  r.run_until([&] { return server->connections() == 1; });
  CHECK_FALSE(stopped);
  waiter->wake();
  r.run(group.join());
  CHECK(stopped);
  REQUIRE(*answer);
  CHECK((*answer)->header("connection") == "close");
  CHECK(send(Method::kPost).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(ServerFixture, "a stop does not wait past its deadline") {
  REQUIRE(start());
  const auto waiter = r.timers.make_waiter();
  seen.hold = waiter.get();
  std::optional<base::Result<net::HttpResponse>> answer;
  async::TaskGroup group(r.ctx.get_executor());
  group.spawn(keep(client->send(request(Method::kPost), r.timers.now() + 10s), answer));
  r.run_until([&] { return seen.requests.size() == 1; });
  r.run(server->stop(r.timers.now() + 20ms));
  r.run(group.join());
  CHECK(answer->error().kind == ErrorKind::kUnknownOutcome);
  CHECK(server->connections() == 0);
}

TEST_CASE_METHOD(ServerFixture, "an address that is taken is a conflict, one that is none is invalid") {
  REQUIRE(start());
  net::HttpServerConfig again = config;
  again.port = server->port();
  net::HttpServer second(r.ctx.get_executor(), r.timers, again, handler());
  CHECK(second.start().error().kind == ErrorKind::kConflict);
  again.host = "localhost";
  net::HttpServer named(r.ctx.get_executor(), r.timers, again, handler());
  CHECK(named.start().error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(ServerFixture, "a stale Unix socket is replaced, one in use is not") {
  config.unix_path = directory / "s.sock";
  {
    asio::local::stream_protocol::acceptor left_behind(r.ctx, asio::local::stream_protocol::endpoint(config.unix_path));
  }
  REQUIRE(std::filesystem::exists(config.unix_path));
  REQUIRE(start());
  net::HttpServer second(r.ctx.get_executor(), r.timers, config, handler());
  CHECK(second.start().error().kind == ErrorKind::kConflict);
  CHECK(send(Method::kGet));
  r.run(server->stop(r.timers.now() + 10s));
  CHECK_FALSE(std::filesystem::exists(config.unix_path));

  std::filesystem::path file = directory / "file";
  std::fclose(std::fopen(file.c_str(), "w"));
  config.unix_path = file;
  net::HttpServer third(r.ctx.get_executor(), r.timers, config, handler());
  CHECK(third.start().error().kind == ErrorKind::kConflict);
  CHECK(std::filesystem::exists(file));
  config.unix_path = directory / std::string(200, 'x');
  net::HttpServer fourth(r.ctx.get_executor(), r.timers, config, handler());
  CHECK_THAT(fourth.start().error().message, Catch::Contains("107 bytes"));
}
