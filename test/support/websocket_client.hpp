// A WebSocket client over any stream: whole messages, and what it is told about the handshake.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vk-provider/async/byte_stream.hpp"

namespace spillway::test {

class WebSocketClient {
 public:
  WebSocketClient(boost::asio::any_io_executor executor, async::ByteStreamPtr connection);
  ~WebSocketClient();
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;

  /// `protocols` as in Sec-WebSocket-Protocol. The one that was picked, or the status and the body of a refusal.
  async::Task<std::string> handshake(std::string target, std::string protocols);
  async::Task<void> send(std::string message, bool text = false);
  async::Task<void> ping();
  /// The next message; empty when the server has said goodbye, which is answered.
  async::Task<std::optional<std::string>> next();
  /// Whether the last message was text.
  bool got_text() const;
  int pongs() const;
  /// The code of the server's goodbye.
  int close_code() const;
  /// The connection closes without a word.
  void drop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::test
