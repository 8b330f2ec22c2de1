#include "vk-provider/net/dialer.hpp"

#include <algorithm>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "vk-provider/net/url.hpp"

namespace spillway::net {
namespace asio = boost::asio;
using base::ErrorKind;

namespace {

constexpr base::Duration kResolutionLife = std::chrono::seconds(60);
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

std::string describe(const Endpoint& endpoint) {
  switch (endpoint.scheme) {
    case Endpoint::Scheme::kUnix: return "unix:" + endpoint.unix_path;
    case Endpoint::Scheme::kHttp: return "http://" + host_header(endpoint);
    case Endpoint::Scheme::kHttps: return "https://" + host_header(endpoint);
  }
  return endpoint.host;
}

}  // namespace

/// What the resolver said. Shared with its callback, because a look-up cannot be cut short: it may end after those who
/// waited for it, and after the dialer.
struct Dialer::Resolution {
  explicit Resolution(const asio::any_io_executor& executor) : resolver(executor) {}

  asio::ip::tcp::resolver resolver;
  bool running = false;
  std::vector<Address> found;
  boost::system::error_code error;  // of the last look-up
  base::TimePoint fresh_until{};
  std::vector<async::Waiter*> waiting;
};

Dialer::Dialer(asio::any_io_executor executor, async::Timers& timers, Endpoint endpoint,
               std::unique_ptr<TlsContext> tls)
    : executor_(std::move(executor)),
      timers_(timers),
      endpoint_(std::move(endpoint)),
      tls_(std::move(tls)),
      name_(describe(endpoint_)),
      resolution_(std::make_shared<Resolution>(executor_)) {
  boost::system::error_code not_literal;
  const asio::ip::address literal = asio::ip::make_address(endpoint_.host, not_literal);
  if (endpoint_.scheme == Endpoint::Scheme::kUnix) {
    resolution_->found.emplace_back(asio::local::stream_protocol::endpoint(endpoint_.unix_path));
    resolution_->fresh_until = base::TimePoint::max();
  } else if (!not_literal) {
    resolution_->found.emplace_back(asio::ip::tcp::endpoint(literal, endpoint_.port));
    resolution_->fresh_until = base::TimePoint::max();
  }
}

Dialer::~Dialer() = default;

async::Task<std::vector<Dialer::Address>> Dialer::addresses(base::Deadline deadline) {
  const std::shared_ptr<Resolution> r = resolution_;
  if (timers_.now() < r->fresh_until) co_return r->found;

  if (!r->running) {
    r->running = true;
    r->resolver.async_resolve(endpoint_.host, std::to_string(endpoint_.port), asio::ip::resolver_base::numeric_service,
                              [r, &timers = timers_](const boost::system::error_code& ec,
                                                     const asio::ip::tcp::resolver::results_type& results) {
                                r->running = false;
                                r->error = ec;
                                if (!ec && !results.empty()) {
                                  r->found.clear();
                                  for (const auto& entry : results) r->found.emplace_back(entry.endpoint());
                                  r->fresh_until = timers.now() + kResolutionLife;
                                }
                                for (async::Waiter* const waiter : r->waiting) waiter->wake();
                              });
  }
  {
    const std::unique_ptr<async::Waiter> waiter = timers_.make_waiter();
    struct Place {
      Resolution& r;
      async::Waiter* waiter;
      ~Place() { std::erase(r.waiting, waiter); }
    } place{*r, waiter.get()};
    r->waiting.push_back(waiter.get());
    co_await waiter->wait_until(deadline);
  }
  if (!r->found.empty()) co_return r->found;
  if (r->running) co_return base::fail(ErrorKind::kDeadline, "the name of " + name_ + " was not resolved in time");
  co_return base::fail(ErrorKind::kUnavailable, "the name of " + name_ + " cannot be resolved: " + r->error.message());
}

async::Task<ConnectionPtr> Dialer::connect(base::Deadline deadline) {
  if (timers_.now() >= deadline) {
    co_return base::fail(ErrorKind::kDeadline, "the time to reach " + name_ + " was over before a connection was made");
  }
  const base::Result<std::vector<Address>> found = co_await addresses(deadline);
  if (!found) co_return base::fail(found.error());

  base::Error last(ErrorKind::kUnavailable, name_ + " has no address");
  for (size_t i = 0; i < found->size(); ++i) {
    // A first address that swallows packets must leave time for the others.
    const base::TimePoint now = timers_.now();
    const bool is_last = i + 1 == found->size();
    const base::Deadline limit = is_last || deadline == base::Deadline::max() || now >= deadline
                                     ? deadline
                                     : now + (deadline - now) / static_cast<base::Duration::rep>(found->size() - i);
    base::Result<ConnectionPtr> made = co_await connect_to((*found)[i], limit);
    if (made) co_return made;
    last = made.error();
    if (last.kind == ErrorKind::kCancelled) break;
  }
  co_return base::fail(std::move(last));
}

async::Task<ConnectionPtr> Dialer::connect_to(Address address, base::Deadline limit) {
  ConnectionLease lease(std::make_shared<Connection>(executor_, timers_));
  lease->watchdog().arm(limit);
  const auto [ec] = co_await lease->socket().async_connect(address, kToken);
  lease->watchdog().disarm();
  if (ec) {
    if (lease->expired()) co_return base::fail(ErrorKind::kDeadline, "could not connect to " + name_ + " in time");
    if (was_cancelled(co_await asio::this_coro::cancellation_state))
      co_return base::fail(ErrorKind::kCancelled, "connecting was cancelled");
    co_return base::fail(ErrorKind::kUnavailable, "cannot connect to " + name_ + ": " + ec.message());
  }
  if (endpoint_.scheme != Endpoint::Scheme::kUnix) {
    boost::system::error_code ignored;
    lease->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    lease->socket().set_option(asio::socket_base::keep_alive(true), ignored);
  }
  ConnectionPtr connection = lease.release();
  if (tls_) {
    const base::Result<void> secured = co_await shake_hands(connection, limit);
    if (!secured) co_return base::fail(secured.error());
  }
  co_return connection;
}

async::Task<void> Dialer::shake_hands(ConnectionPtr connection, base::Deadline limit) {
  ConnectionLease lease(std::move(connection));
  TlsStream& tls = lease->start_tls(*tls_);
  const std::string& server = endpoint_.server_name.empty() ? endpoint_.host : endpoint_.server_name;
  const base::Result<void> named = expect_server_name(tls.native_handle(), server);
  if (!named) co_return base::fail(named.error());

  lease->watchdog().arm(limit);
  const auto [ec] = co_await tls.async_handshake(TlsStream::Role::kClient, kToken);
  lease->watchdog().disarm();
  if (!ec) {
    lease.release();
    co_return base::Result<void>();
  }
  if (lease->expired()) co_return base::fail(ErrorKind::kDeadline, "no TLS handshake with " + name_ + " in time");
  if (was_cancelled(co_await asio::this_coro::cancellation_state))
    co_return base::fail(ErrorKind::kCancelled, "connecting was cancelled");
  const std::string problem = verification_problem(tls.native_handle());
  if (problem.empty()) {
    co_return base::fail(ErrorKind::kUnavailable, "the TLS handshake with " + name_ + " failed: " + ec.message());
  }
  co_return base::fail(ErrorKind::kUnavailable, "the certificate of " + name_ + " does not hold for \"" + server +
                                                    "\": " + problem + "; check the configured CA and server name");
}

}  // namespace spillway::net
