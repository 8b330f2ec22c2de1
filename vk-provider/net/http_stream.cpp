#include "vk-provider/net/http_stream.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include "vk-provider/net/http_exchange.hpp"

namespace spillway::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using base::ErrorKind;

struct HttpBodyStream::State {
  ConnectionPtr connection;
  std::unique_ptr<BodyParser> parser;
  std::string peer;
  bool raw = false;

  base::Error failure(const boost::system::error_code& ec, bool expired, bool cancelled) const {
    if (cancelled) return base::Error(ErrorKind::kCancelled, "the stream of " + peer + " was cancelled");
    if (expired) return base::Error(ErrorKind::kDeadline, "the stream of " + peer + " was silent for too long");
    return base::Error(ErrorKind::kUnavailable, "the stream of " + peer + " broke off: " + ec.message());
  }

  /// The bytes of the body among those that have come; empty if there are none yet.
  std::string take(boost::system::error_code& ec) {
    std::string out;
    if (connection->input().size() == 0) return out;
    // The decoded bytes are never more than the encoded ones. With one byte to spare the parser never stops for room.
    out.resize(connection->input().size() + 1);
    auto& body = parser->get().body();
    body.data = out.data();
    body.size = out.size();
    body.more = true;
    ec = parse_input(*connection, *parser);
    out.resize(out.size() - body.size);
    return out;
  }
};

HttpBodyStream::HttpBodyStream(ConnectionPtr connection, std::unique_ptr<BodyParser> parser, std::string peer, bool raw)
    : state_(std::make_shared<State>()) {
  state_->connection = std::move(connection);
  state_->parser = std::move(parser);
  state_->parser->eager(true);
  state_->peer = std::move(peer);
  state_->raw = raw;
}

HttpBodyStream::~HttpBodyStream() { state_->connection->close(); }

async::Task<std::string> HttpBodyStream::read(base::Deadline deadline) {
  const std::shared_ptr<State> state = state_;
  state->connection->watchdog().arm(deadline);
  base::Result<std::string> result = co_await (state->raw ? read_raw(state) : read_body(state));
  state->connection->watchdog().disarm();
  co_return result;
}

async::Task<std::string> HttpBodyStream::read_raw(std::shared_ptr<State> state) {
  Connection& connection = *state->connection;
  if (connection.input().size() == 0) {
    const boost::system::error_code ec = co_await fill(connection);
    if (ec == asio::error::eof) co_return std::string();
    if (ec) {
      co_return base::fail(state->failure(ec, connection.watchdog().expired(),
                                          was_cancelled(co_await asio::this_coro::cancellation_state)));
    }
  }
  const auto bytes = connection.input().data();
  std::string out(static_cast<const char*>(bytes.data()), bytes.size());
  connection.input().consume(out.size());
  co_return out;
}

async::Task<std::string> HttpBodyStream::read_body(std::shared_ptr<State> state) {
  Connection& connection = *state->connection;
  while (!state->parser->is_done()) {
    boost::system::error_code ec;
    std::string out = state->take(ec);
    if (!out.empty()) co_return out;
    if (!ec && state->parser->is_done()) break;
    if (!ec) {
      ec = co_await fill(connection);
      if (ec) ec = parse_end(*state->parser, ec);
    }
    if (ec) {
      co_return base::fail(state->failure(ec, connection.watchdog().expired(),
                                          was_cancelled(co_await asio::this_coro::cancellation_state)));
    }
  }
  co_return std::string();
}

async::Task<void> HttpBodyStream::write(std::string bytes, base::Deadline deadline) {
  const std::shared_ptr<State> state = state_;
  if (!state->raw) co_return base::fail(ErrorKind::kUnsupported, "the body of an answer cannot be written to");
  Connection& connection = *state->connection;
  if (connection.clock().now() >= deadline) {
    co_return base::fail(ErrorKind::kDeadline, "the time to write to " + state->peer + " was over before it began");
  }
  connection.write_watchdog().arm(deadline);
  const auto [ec, n] = co_await asio::async_write(connection, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  connection.write_watchdog().disarm();
  if (!ec) co_return base::Result<void>();
  if (connection.write_watchdog().expired()) {
    co_return base::fail(ErrorKind::kDeadline, state->peer + " did not take what was written to it in time");
  }
  co_return base::fail(state->failure(ec, false, was_cancelled(co_await asio::this_coro::cancellation_state)));
}

async::Task<void> HttpBodyStream::close_write(base::Deadline) {
  if (!state_->raw) co_return base::fail(ErrorKind::kUnsupported, "the body of an answer cannot be written to");
  if (state_->connection->tls() != nullptr) {
    co_return base::fail(ErrorKind::kUnsupported, "half of a TLS stream cannot be closed; close all of it");
  }
  state_->connection->shutdown_send();
  co_return base::Result<void>();
}

}  // namespace spillway::net
