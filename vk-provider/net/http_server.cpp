#include "vk-provider/net/http_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/net/http_session.hpp"

namespace spillway::net {
namespace asio = boost::asio;
using base::ErrorKind;

namespace {

std::unexpected<base::Error> cannot_listen(const std::string& where, const boost::system::error_code& ec) {
  const bool taken = ec == asio::error::address_in_use;
  return base::fail(taken ? ErrorKind::kConflict : ErrorKind::kInvalid,
                    "cannot listen on " + where + ": " + ec.message());
}

/// Removes what a server that died left behind; a server that lives, and a file that is no socket, are left alone.
boost::system::error_code remove_stale_socket(const asio::any_io_executor& executor, const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return asio::error::address_in_use;
  boost::system::error_code ec;
  asio::local::stream_protocol::socket probe(executor);
  probe.connect(asio::local::stream_protocol::endpoint(path), ec);
  if (!ec) return asio::error::address_in_use;
  if (ec == asio::error::connection_refused) ::unlink(path.c_str());
  return {};
}

template <class Acceptor>
boost::system::error_code listen_on(Acceptor& acceptor, const typename Acceptor::endpoint_type& endpoint) {
  boost::system::error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  return ec;
}

/// Finds out within a minute or two that the peer's machine is gone, also while nothing is said.
void watch_peer(Connection::Socket& socket) {
  const int fd = socket.native_handle();
  const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
}

bool is_loopback(const Connection::Socket& socket) {
  boost::system::error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  if (ec) return false;
  if (remote.protocol().family() == AF_UNIX) return true;
  asio::ip::tcp::endpoint tcp;
  if (remote.size() > tcp.capacity()) return false;
  tcp.resize(remote.size());
  std::copy_n(reinterpret_cast<const char*>(remote.data()), remote.size(), reinterpret_cast<char*>(tcp.data()));
  const asio::ip::address address = tcp.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

}  // namespace

struct HttpServer::State {
  State(asio::any_io_executor e, async::Timers& t, HttpServerConfig c, Handler h)
      : executor(std::move(e)),
        timers(t),
        tcp(executor),
        local(executor),
        permits(timers, c.max_connections),
        group(executor) {
    shared.config = std::move(c);
    shared.handler = std::move(h);
  }

  base::Result<void> listen();
  base::Result<void> use_tls(const ServerTls& tls);

  template <class Acceptor>
  asio::awaitable<void> accept_loop(Acceptor& acceptor);
  asio::awaitable<void> run_session(ConnectionPtr connection, async::Semaphore::Permit permit);

  asio::any_io_executor executor;
  async::Timers& timers;
  HttpSessions shared;
  asio::ip::tcp::acceptor tcp;
  asio::local::stream_protocol::acceptor local;
  async::Semaphore permits;
  std::unordered_set<HttpSession*> sessions;
  bool stopping = false;
  async::Waiter* on_drained = nullptr;
  async::TaskGroup group;
};

base::Result<void> HttpServer::State::use_tls(const ServerTls& tls) {
  auto context = make_server_tls(tls);
  if (!context) return base::fail(std::move(context.error()));
  std::unique_ptr<ClientVerifier> verifier;
  if (!tls.client_ca_pem.empty()) {
    auto made = ClientVerifier::make(tls.client_ca_pem);
    if (!made) return base::fail(std::move(made.error()));
    verifier = std::move(*made);
  }
  shared.tls = std::move(*context);
  shared.verifier = std::move(verifier);
  return {};
}

base::Result<void> HttpServer::State::listen() {
  const HttpServerConfig& config = shared.config;
  if (!config.tls.cert_pem.empty()) {
    const auto used = use_tls(config.tls);
    if (!used) return used;
  }
  boost::system::error_code ec;
  if (!config.unix_path.empty()) {
    const std::string where = "unix:" + config.unix_path;
    if (config.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      return base::fail(ErrorKind::kInvalid, "cannot listen on " + where + ": the path of a socket has at most " +
                                                 std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
    }
    ec = remove_stale_socket(executor, config.unix_path);
    if (!ec) ec = listen_on(local, asio::local::stream_protocol::endpoint(config.unix_path));
    if (ec) return cannot_listen(where, ec);
    group.spawn(accept_loop(local));
    return {};
  }
  const std::string where = config.host + " port " + std::to_string(config.port);
  const asio::ip::address address = asio::ip::make_address(config.host, ec);
  if (!ec) ec = listen_on(tcp, asio::ip::tcp::endpoint(address, config.port));
  if (ec) return cannot_listen(where, ec);
  group.spawn(accept_loop(tcp));
  return {};
}

template <class Acceptor>
asio::awaitable<void> HttpServer::State::accept_loop(Acceptor& acceptor) {
  while (!stopping) {
    async::Semaphore::Permit permit = co_await permits.acquire(base::Deadline::max());
    auto connection = std::make_shared<Connection>(executor, timers);
    const auto [ec] = co_await acceptor.async_accept(connection->socket(), asio::as_tuple(asio::use_awaitable));
    if (!acceptor.is_open()) co_return;
    if (ec) {
      // Out of descriptors, most likely: they come back when connections end.
      co_await timers.sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    boost::system::error_code ignored;
    if (shared.config.unix_path.empty()) {
      connection->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
      watch_peer(connection->socket());
    }
    group.spawn(run_session(std::move(connection), std::move(permit)));
  }
}

asio::awaitable<void> HttpServer::State::run_session(ConnectionPtr connection, async::Semaphore::Permit permit) {
  const bool loopback = is_loopback(connection->socket());
  HttpSession session(std::move(connection), shared, loopback);
  struct Entry {
    State& state;
    HttpSession* session;
    ~Entry() {
      state.sessions.erase(session);
      if (state.sessions.empty() && state.on_drained != nullptr) state.on_drained->wake();
    }
  } entry{*this, &session};
  sessions.insert(&session);
  // A connection that was accepted just before the end is not served any more.
  if (stopping) co_return;
  co_await session.run();
  permit.release();
}

HttpServer::HttpServer(asio::any_io_executor executor, async::Timers& timers, HttpServerConfig config, Handler handler)
    : state_(std::make_unique<State>(std::move(executor), timers, std::move(config), std::move(handler))) {}

HttpServer::~HttpServer() = default;

base::Result<void> HttpServer::start() { return state_->listen(); }

std::uint16_t HttpServer::port() const {
  boost::system::error_code ec;
  return state_->tcp.local_endpoint(ec).port();
}

std::size_t HttpServer::connections() const { return state_->sessions.size(); }

std::size_t HttpServer::streams() const { return state_->shared.streams; }

base::Result<void> HttpServer::replace_tls(ServerTls tls) {
  if (state_->shared.tls) return state_->use_tls(tls);
  return base::fail(ErrorKind::kInvalid, "this server speaks no TLS: it was started without a certificate");
}

asio::awaitable<void> HttpServer::stop(base::Deadline deadline) {
  State& state = *state_;
  state.stopping = true;
  boost::system::error_code ignored;
  state.tcp.close(ignored);
  if (state.local.is_open()) {
    state.local.close(ignored);
    ::unlink(state.shared.config.unix_path.c_str());
  }
  for (HttpSession* const session : state.sessions) session->finish();
  if (!state.sessions.empty()) {
    const std::unique_ptr<async::Waiter> drained = state.timers.make_waiter();
    struct Place {
      State& state;
      ~Place() { state.on_drained = nullptr; }
    } place{state};
    state.on_drained = drained.get();
    co_await drained->wait_until(deadline);
  }
  co_await state.group.stop();
}

}  // namespace spillway::net
