// The client of an exec or attach and its streams, the same over SPDY and WebSocket.
//
// Owned by the coroutine that serves it; reactor thread only. Nothing moves unless run() does. Knows no process.
#pragma once

#include <memory>

#include "vk-provider/api/stream_request.hpp"
#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/websocket.hpp"

namespace spillway::api {

/// Which streams the client asked for.
struct RemoteStreams {
  RemoteStreams() = default;
  bool input = false;
  bool output = false;
  bool errors = false;
  bool tty = false;  // then there are no errors apart, and sizes of the terminal come
};

class RemotePeer {
 public:
  virtual ~RemotePeer() = default;

  /// Until the client has left; why, if that was not in order.
  virtual async::Task<void> run() = 0;
  /// Returns when all streams are there. kDeadline if the client has not opened them in time.
  virtual async::Task<void> open(base::Deadline deadline) = 0;

  // After open(): null for what was not asked for.
  virtual async::ByteStream* input() = 0;
  virtual async::ByteStream* output() = 0;
  virtual async::ByteStream* errors() = 0;
  virtual async::ByteStream* sizes() = 0;
  /// How the command ended; may be there, and told, before open() is done.
  virtual async::ByteStream* status() = 0;
  /// The protocol wants the status as a text, not as JSON.
  virtual bool text_status() const = 0;

  /// What the client still sends is dropped. What was written to it goes out, and then the client sees the end.
  virtual boost::asio::awaitable<void> finish(base::Deadline deadline) = 0;
};
using RemotePeerPtr = std::unique_ptr<RemotePeer>;

/// Which sub-protocols of exec and attach are spoken.
StreamProtocols remote_command_protocols();

/// `connection` is what an HTTP connection is after the handshake of SPDY.
RemotePeerPtr make_spdy_peer(async::ByteStreamPtr connection, async::Timers& timers, RemoteStreams wanted,
                             const StreamTimes& times);
/// Answers the handshake of the WebSocket. The errors of net::accept_websocket.
async::Task<RemotePeerPtr> accept_websocket_peer(async::ByteStreamPtr connection, net::HttpServerRequest request,
                                                 std::string protocol, async::Timers& timers, RemoteStreams wanted,
                                                 StreamTimes times);

}  // namespace spillway::api
