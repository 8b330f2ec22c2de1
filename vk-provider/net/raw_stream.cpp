#include "vk-provider/net/raw_stream.hpp"

#include <utility>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include "vk-provider/net/http_exchange.hpp"

namespace spillway::net {
namespace asio = boost::asio;
using base::ErrorKind;

base::Error stream_failure(const std::string& peer, const boost::system::error_code& ec, bool expired, bool cancelled) {
  if (cancelled) return base::Error(ErrorKind::kCancelled, "the stream of " + peer + " was cancelled");
  if (expired) return base::Error(ErrorKind::kDeadline, "the stream of " + peer + " was silent for too long");
  return base::Error(ErrorKind::kUnavailable, "the stream of " + peer + " broke off: " + ec.message());
}

RawStream::RawStream(ConnectionPtr connection, std::string peer)
    : connection_(std::move(connection)), peer_(std::move(peer)) {}

RawStream::~RawStream() { connection_->close(); }

async::Task<std::string> RawStream::read(base::Deadline deadline) { return read_from(connection_, peer_, deadline); }

async::Task<std::string> RawStream::read_from(ConnectionPtr connection, std::string peer, base::Deadline deadline) {
  boost::beast::flat_buffer& input = connection->input();
  if (input.size() == 0) {
    connection->watchdog().arm(deadline);
    const boost::system::error_code ec = co_await fill(*connection);
    const bool expired = connection->watchdog().expired();
    connection->watchdog().disarm();
    if (ec == asio::error::eof) co_return std::string();
    if (ec) {
      co_return base::fail(
          stream_failure(peer, ec, expired, was_cancelled(co_await asio::this_coro::cancellation_state)));
    }
  }
  std::string out(static_cast<const char*>(input.data().data()), input.size());
  input.consume(out.size());
  co_return out;
}

async::Task<void> RawStream::write(std::string bytes, base::Deadline deadline) {
  return write_to(connection_, peer_, std::move(bytes), deadline);
}

async::Task<void> RawStream::write_to(ConnectionPtr connection, std::string peer, std::string bytes,
                                      base::Deadline deadline) {
  if (connection->clock().now() >= deadline) {
    co_return base::fail(ErrorKind::kDeadline, "the time to write to " + peer + " was over before it began");
  }
  connection->write_watchdog().arm(deadline);
  const auto [ec, n] =
      co_await asio::async_write(*connection, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  const bool expired = connection->write_watchdog().expired();
  connection->write_watchdog().disarm();
  if (!ec) co_return base::Result<void>();
  if (expired) co_return base::fail(ErrorKind::kDeadline, peer + " did not take what was written to it in time");
  co_return base::fail(stream_failure(peer, ec, false, was_cancelled(co_await asio::this_coro::cancellation_state)));
}

async::Task<void> RawStream::close_write(base::Deadline deadline) {
  return close_write_of(connection_, peer_, deadline);
}

async::Task<void> RawStream::close_write_of(ConnectionPtr connection, std::string peer, base::Deadline deadline) {
  if (connection->tls() == nullptr) {
    connection->shutdown_send();
    co_return base::Result<void>();
  }
  connection->write_watchdog().arm(deadline);
  const auto [ec] = co_await connection->tls()->async_end_sending(asio::as_tuple(asio::use_awaitable));
  const bool expired = connection->write_watchdog().expired();
  connection->write_watchdog().disarm();
  if (!ec) co_return base::Result<void>();
  co_return base::fail(stream_failure(peer, ec, expired, was_cancelled(co_await asio::this_coro::cancellation_state)));
}

}  // namespace spillway::net
