#include "vk-provider/net/websocket.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "vk-provider/net/byte_stream_layer.hpp"
#include "vk-provider/net/connection.hpp"

namespace spillway::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using base::ErrorKind;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr size_t kPart = 16 * 1024;

using Stream = websocket::stream<ByteStreamLayer, /*deflate=*/false>;

class BeastWebSocket final : public WebSocket {
 public:
  BeastWebSocket(const asio::any_io_executor& executor, async::ByteStreamPtr connection,
                 const WebSocketOptions& options)
      : stream_(executor, std::move(connection)) {
    stream_.read_message_max(options.max_message);
    stream_.auto_fragment(false);
    stream_.text(options.text);
  }

  async::Task<void> accept(http::request<http::string_body> request, std::string protocol) {
    stream_.set_option(websocket::stream_base::decorator([protocol](websocket::response_type& response) {
      response.set(http::field::server, "spillway");
      if (!protocol.empty() && response.result() == http::status::switching_protocols) {
        response.set(http::field::sec_websocket_protocol, protocol);
      }
    }));
    const auto [ec] = co_await stream_.async_accept(request, kToken);
    if (!ec) co_return base::Result<void>();
    co_return base::fail(failure(ec, was_cancelled(co_await asio::this_coro::cancellation_state)));
  }

  async::Task<std::optional<MessagePart>> read() override {
    // Not a string: that would be written to before anything comes, and most sockets are silent most of the time.
    const auto room = std::make_unique_for_overwrite<char[]>(kPart);
    const auto [ec, n] = co_await stream_.async_read_some(asio::buffer(room.get(), kPart), kToken);
    const bool cancelled = was_cancelled(co_await asio::this_coro::cancellation_state);
    // Aborted without a cancellation: our own goodbye was answered meanwhile.
    const bool over = ec == websocket::error::closed || (ec == asio::error::operation_aborted && !cancelled);
    if (over) co_return std::optional<MessagePart>();
    if (ec) co_return base::fail(failure(ec, cancelled));
    MessagePart part;
    part.bytes.assign(room.get(), n);
    part.last = stream_.is_message_done();
    co_return part;
  }

  async::Task<void> write(std::string message) override {
    const auto [ec, n] = co_await stream_.async_write(asio::buffer(message), kToken);
    if (!ec) co_return base::Result<void>();
    co_return base::fail(failure(ec, was_cancelled(co_await asio::this_coro::cancellation_state)));
  }

  async::Task<void> ping() override {
    const auto [ec] = co_await stream_.async_ping({}, kToken);
    if (!ec) co_return base::Result<void>();
    co_return base::fail(failure(ec, was_cancelled(co_await asio::this_coro::cancellation_state)));
  }

  async::Task<void> close() override {
    const auto [ec] = co_await stream_.async_close(websocket::close_code::normal, kToken);
    if (!ec) co_return base::Result<void>();
    co_return base::fail(failure(ec, was_cancelled(co_await asio::this_coro::cancellation_state)));
  }

 private:
  base::Error failure(const boost::system::error_code& ec, bool cancelled) const {
    if (cancelled) return base::Error(ErrorKind::kCancelled, "the WebSocket was cancelled");
    if (stream_.next_layer().failure()) return *stream_.next_layer().failure();
    const bool rules = ec.category() == websocket::make_error_code(websocket::error::closed).category();
    return base::Error(rules ? ErrorKind::kInvalid : ErrorKind::kUnavailable, "WebSocket: " + ec.message());
  }

  Stream stream_;
};

/// Bytes of messages, one after the other.
class WebSocketBytes final : public async::ByteStream {
 public:
  explicit WebSocketBytes(WebSocketPtr socket) : socket_(std::move(socket)) {}

  async::Task<std::string> read(base::Deadline) override {
    for (;;) {
      auto part = co_await socket_->read();
      if (!part) co_return base::fail(std::move(part.error()));
      if (!*part) co_return std::string();
      if (!(*part)->bytes.empty()) co_return std::move((*part)->bytes);
    }
  }
  async::Task<void> write(std::string bytes, base::Deadline) override { return socket_->write(std::move(bytes)); }
  async::Task<void> close_write(base::Deadline) override { return socket_->close(); }

 private:
  WebSocketPtr socket_;
};

}  // namespace

bool asks_for_websocket(const HttpServerRequest& request) {
  const auto lists = [&request](std::string_view header, std::string_view word) {
    return std::ranges::any_of(list_header(request.headers, header),
                               [word](const std::string& item) { return same_word(item, word); });
  };
  return lists("Upgrade", "websocket") && lists("Connection", "upgrade");
}

async::Task<WebSocketPtr> accept_websocket(async::ByteStreamPtr connection, const HttpServerRequest& request,
                                           WebSocketOptions options) {
  http::request<http::string_body> head;
  head.version(11);
  head.method_string(request.method);
  head.target(request.target);
  for (const auto& [name, value] : request.headers) head.insert(name, value);
  auto socket = std::make_unique<BeastWebSocket>(co_await asio::this_coro::executor, std::move(connection), options);
  auto accepted = co_await socket->accept(std::move(head), std::move(options.protocol));
  if (!accepted) co_return base::fail(std::move(accepted.error()));
  co_return socket;
}

async::ByteStreamPtr as_byte_stream(WebSocketPtr socket) { return std::make_unique<WebSocketBytes>(std::move(socket)); }

}  // namespace spillway::net
