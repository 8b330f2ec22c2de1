// Connections to ports of containers, through a real engine, and through one that is reached over TCP.
#include <memory>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include "test/integration/docker_exec_fixture.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace async = spillway::async;
namespace base = spillway::base;
namespace net = spillway::net;
namespace provider = spillway::provider;
namespace providers = spillway::providers;
using base::ErrorKind;

namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

template <class From, class To>
async::Loop copy(std::shared_ptr<From> from, std::shared_ptr<To> to) {
  std::string room(64 * 1024, '\0');
  for (;;) {
    const auto [failed, n] = co_await from->async_read_some(asio::buffer(room), asio::as_tuple(asio::use_awaitable));
    if (failed) break;
    const auto [lost, written] =
        co_await asio::async_write(*to, asio::buffer(room, n), asio::as_tuple(asio::use_awaitable));
    if (lost) break;
  }
  boost::system::error_code ignored;
  to->shutdown(To::shutdown_send, ignored);
}

/// An engine's socket as a port of this machine, as another machine would offer it.
async::Loop offer(Tcp::acceptor& door, std::string socket_path, async::TaskGroup& group) {
  for (;;) {
    const auto outer = std::make_shared<Tcp::socket>(door.get_executor());
    const auto [failed] = co_await door.async_accept(*outer, asio::as_tuple(asio::use_awaitable));
    if (failed) co_return;
    const auto inner = std::make_shared<Local::socket>(door.get_executor());
    inner->connect(socket_path);
    group.spawn(copy(outer, inner));
    group.spawn(copy(inner, outer));
  }
}

class RemoteFixture : public ExecFixture {
 public:
  RemoteFixture() : door(reactor.ctx, Tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    group.spawn(offer(door, engine_socket(), group));
    providers::docker::HostConfig host = host_config();
    host.endpoint = net::Endpoint();
    host.endpoint.scheme = net::Endpoint::Scheme::kHttp;
    host.endpoint.host = "127.0.0.1";
    host.endpoint.port = door.local_endpoint().port();
    restart_daemon(std::move(host));
  }
  /// While the door is there.
  ~RemoteFixture() {
    if (!pod_ref.id.empty()) end(std::exchange(pod_ref, spillway::model::InstanceRef()));
  }

  Tcp::acceptor door;
};

}  // namespace

TEST_CASE_METHOD(ExecFixture, "docker dial: a port that listens on 127.0.0.1 alone", "[docker]") {
  start_pod("spw-it-dial-1", pod("echo hello > /tmp/index.html; exec httpd -f -p 127.0.0.1:8080 -h /tmp"));
  const auto stream = dial_soon(8080);
  REQUIRE(reactor.run(stream->write("GET /index.html HTTP/1.0\r\n\r\n", soon())));
  const auto answer = reactor.run(read_all(*stream, soon()));
  REQUIRE(answer);
  CHECK(answer->starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer->ends_with("hello\n"));
}

TEST_CASE_METHOD(ExecFixture, "docker dial: 20 MB go both ways, and each half ends by itself", "[docker]") {
  start_pod("spw-it-dial-3", pod("exec nc -ll -p 8082 -e cat"));
  const auto stream = dial_soon(8082);
  const size_t before = peak_memory();
  check_copied(*stream, *stream, 20'000'000);
  CHECK(peak_memory() - before < 8'000'000);
}

TEST_CASE_METHOD(ExecFixture, "docker dial: refusals and impossible ports", "[docker]") {
  start_pod("spw-it-dial-4");
  const auto refused = dial(1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kConflict);
  CHECK(refused.error().message == "port 1 of instance spw-it-dial-4 cannot be connected to: nothing listens on it");
  CHECK(dial(0).error().kind == ErrorKind::kInvalid);
  CHECK(dial(70000).error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(ExecFixture, "docker dial: the death of a stream ends its relay, also with a peer that never ends",
                 "[docker]") {
  start_pod("spw-it-dial-5", pod("exec nc -ll -p 8083 -e sleep 60"));
  const auto relays = [&] {
    const auto top = nlohmann::json::parse(api(net::Method::kGet, "/containers/spw-it-dial-5/top").body);
    return top.at("Processes").size() - 1;
  };
  {
    const auto open_stream = dial_soon(8083);
    CHECK(relays() == 1);
    const auto half_closed = dial_soon(8083);
    REQUIRE(reactor.run(half_closed->close_write(soon())));
    CHECK(relays() == 2);
  }
  for (int i = 0; i < 100 && relays() > 0; ++i) reactor.run(reactor.timers.sleep_for(50ms));
  CHECK(relays() == 0);
}

TEST_CASE_METHOD(RemoteFixture, "docker dial: an engine that is reached over TCP connects to its pods, too",
                 "[docker]") {
  start_pod("spw-it-dial-6", pod("echo started; exec nc -ll -p 8086 -e cat"));
  const auto stream = dial_soon(8086);
  check_copied(*stream, *stream, 20'000'000);

  provider::ExecOptions cat = shell("cat; exit 9");
  cat.stdin_open = true;
  auto session = open(cat);
  REQUIRE(session);
  REQUIRE(reactor.run((*session)->input()->write("over TCP", soon())));
  REQUIRE(reactor.run((*session)->input()->close_write(soon())));
  const Finished finished = finish(**session);
  CHECK(finished.output == "over TCP");
  CHECK(finished.exit_code == 9);

  provider::LogOptions options;
  options.container = "main";
  const auto log = reactor.run(daemon->open_logs(pod_ref, options, soon()));
  REQUIRE(log);
  const auto text = reactor.run(read_all(**log, soon()));
  CHECK(text.value_or("") == "started\n");
}
