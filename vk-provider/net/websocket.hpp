// The server's side of a WebSocket.
//
// Owned by the coroutine that serves the connection; reactor thread only. One read and one write may wait at a time.
// Pings are answered while somebody reads. Takes no deadlines: whoever serves the connection ends it when it was idle
// for too long.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::net {

/// A piece of a message: however long a message is, it is never collected.
struct MessagePart {
  MessagePart() = default;
  std::string bytes;
  bool last = false;  // the message ends with it
};

class WebSocket {
 public:
  virtual ~WebSocket() = default;

  /// The next part; an empty optional when the client has closed. kInvalid if it breaks the rules (it is then told so),
  /// kUnavailable if the connection broke.
  virtual async::Task<std::optional<MessagePart>> read() = 0;
  virtual async::Task<void> write(std::string message) = 0;
  /// Asks the client for a sign, without waiting for it: to one that is gone, writing fails. May wait beside a write.
  virtual async::Task<void> ping() = 0;
  /// Says goodbye, and waits until the client has answered or is gone. What somebody reads then ends.
  virtual async::Task<void> close() = 0;
};
using WebSocketPtr = std::unique_ptr<WebSocket>;

struct WebSocketOptions {
  WebSocketOptions() = default;
  std::string protocol;                        // that was picked from the client's; empty: none
  bool text = false;                           // our messages are text, not binary
  std::size_t max_message = 32 * 1024 * 1024;  // bytes; a longer one ends the connection
};

/// True if the request asks for a WebSocket.
bool asks_for_websocket(const HttpServerRequest& request);

/// Answers the handshake on a connection that was taken over. kInvalid if the request is none that asks for a
/// WebSocket; the client was told so.
async::Task<WebSocketPtr> accept_websocket(async::ByteStreamPtr connection, const HttpServerRequest& request,
                                           WebSocketOptions options);

/// A WebSocket that carries the bytes of another protocol: bounds of messages mean nothing. Deadlines are not kept.
async::ByteStreamPtr as_byte_stream(WebSocketPtr socket);

}  // namespace spillway::net
