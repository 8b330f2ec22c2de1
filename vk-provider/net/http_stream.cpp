#include "vk-provider/net/http_stream.hpp"

#include <boost/asio/this_coro.hpp>

#include "vk-provider/net/http_exchange.hpp"
#include "vk-provider/net/raw_stream.hpp"

namespace spillway::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using base::ErrorKind;

struct HttpBodyStream::State {
  ConnectionPtr connection;
  std::unique_ptr<BodyParser> parser;
  std::string peer;

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

HttpBodyStream::HttpBodyStream(ConnectionPtr connection, std::unique_ptr<BodyParser> parser, std::string peer)
    : state_(std::make_shared<State>()) {
  state_->connection = std::move(connection);
  state_->parser = std::move(parser);
  state_->parser->eager(true);
  state_->peer = std::move(peer);
}

HttpBodyStream::~HttpBodyStream() { state_->connection->close(); }

async::Task<std::string> HttpBodyStream::read(base::Deadline deadline) {
  const std::shared_ptr<State> state = state_;
  state->connection->watchdog().arm(deadline);
  base::Result<std::string> result = co_await read_body(state);
  state->connection->watchdog().disarm();
  co_return result;
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
      co_return base::fail(stream_failure(state->peer, ec, connection.watchdog().expired(),
                                          was_cancelled(co_await asio::this_coro::cancellation_state)));
    }
  }
  co_return std::string();
}

async::Task<void> HttpBodyStream::write(std::string, base::Deadline) {
  co_return base::fail(ErrorKind::kUnsupported, "the body of an answer cannot be written to");
}

async::Task<void> HttpBodyStream::close_write(base::Deadline) {
  co_return base::fail(ErrorKind::kUnsupported, "the body of an answer cannot be written to");
}

}  // namespace spillway::net
