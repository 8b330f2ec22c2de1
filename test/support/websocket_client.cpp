#include "test/support/websocket_client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "vk-provider/net/byte_stream_layer.hpp"

namespace spillway::test {
namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using base::ErrorKind;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

}  // namespace

struct WebSocketClient::State {
  State(const asio::any_io_executor& executor, async::ByteStreamPtr connection)
      : stream(executor, std::move(connection)) {}
  websocket::stream<net::ByteStreamLayer, /*deflate=*/false> stream;
  int pongs = 0;
};

WebSocketClient::WebSocketClient(asio::any_io_executor executor, async::ByteStreamPtr connection)
    : state_(std::make_unique<State>(executor, std::move(connection))) {
  state_->stream.auto_fragment(false);
  state_->stream.control_callback([state = state_.get()](websocket::frame_type kind, boost::beast::string_view) {
    if (kind == websocket::frame_type::pong) ++state->pongs;
  });
}

WebSocketClient::~WebSocketClient() = default;

async::Task<std::string> WebSocketClient::handshake(std::string target, std::string protocols) {
  state_->stream.set_option(websocket::stream_base::decorator([protocols](websocket::request_type& request) {
    if (!protocols.empty()) request.set("Sec-WebSocket-Protocol", protocols);
  }));
  websocket::response_type response;
  const auto [ec] = co_await state_->stream.async_handshake(response, "server", target, kToken);
  if (!ec) co_return std::string(response["Sec-WebSocket-Protocol"]);
  co_return base::fail(ErrorKind::kUnavailable, std::to_string(response.result_int()) + " " + response.body());
}

async::Task<void> WebSocketClient::send(std::string message, bool text) {
  state_->stream.text(text);
  const auto [ec, n] = co_await state_->stream.async_write(asio::buffer(message), kToken);
  if (ec) co_return base::fail(ErrorKind::kUnavailable, ec.message());
  co_return base::Result<void>();
}

async::Task<void> WebSocketClient::ping() {
  const auto [ec] = co_await state_->stream.async_ping({}, kToken);
  if (ec) co_return base::fail(ErrorKind::kUnavailable, ec.message());
  co_return base::Result<void>();
}

async::Task<std::optional<std::string>> WebSocketClient::next() {
  boost::beast::flat_buffer buffer;
  const auto [ec, n] = co_await state_->stream.async_read(buffer, kToken);
  if (ec == websocket::error::closed) co_return std::optional<std::string>();
  if (ec) co_return base::fail(ErrorKind::kUnavailable, ec.message());
  co_return boost::beast::buffers_to_string(buffer.data());
}

bool WebSocketClient::got_text() const { return state_->stream.got_text(); }

int WebSocketClient::pongs() const { return state_->pongs; }

int WebSocketClient::close_code() const { return state_->stream.reason().code; }

void WebSocketClient::drop() { state_->stream.next_layer().close(); }

}  // namespace spillway::test
