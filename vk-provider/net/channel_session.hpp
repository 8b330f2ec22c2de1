// The server's side of a WebSocket that carries numbered channels (*.channel.k8s.io), as byte streams.
//
// Owned by the coroutine that serves the connection; reactor thread only. Nothing moves unless run() does. There is no
// flow control: when a channel has channel_buffer bytes that nobody reads, the connection is not read any more. Streams
// may outlive the session; they then only fail.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/channel_frames.hpp"
#include "vk-provider/net/websocket.hpp"

namespace spillway::net {

struct ChannelLimits {
  ChannelLimits() = default;
  std::size_t channel_buffer = 64 * 1024;  // bytes
  /// The connection ends when so long nothing came from the client and nothing was written for it.
  base::Duration idle_time{std::chrono::hours(4)};
};

class ChannelSession {
 public:
  struct State;

  /// `readable[n]`: what the client sends on channel n is wanted; otherwise it is dropped, as it is on channels that
  /// there are not.
  ChannelSession(WebSocketPtr socket, async::Timers& timers, ChannelFormat format, const std::vector<bool>& readable,
                 ChannelLimits limits);
  ~ChannelSession();
  ChannelSession(const ChannelSession&) = delete;
  ChannelSession& operator=(const ChannelSession&) = delete;

  /// Moves the messages until the client leaves, or close() is done. kInvalid if it breaks the rules, kDeadline if it
  /// was idle for too long, kUnavailable if the connection broke.
  async::Task<void> run();
  /// Of channel n. To be asked for once each; reading ends when the client has ended the channel, and fails when the
  /// connection ends. Our direction has no end of its own.
  async::ByteStreamPtr channel(std::uint8_t n);
  /// Sends a message with nothing in it.
  void announce(std::uint8_t n);
  /// What was written goes out, then a goodbye; run() ends when the client has answered it.
  void close();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace spillway::net
