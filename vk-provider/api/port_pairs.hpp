// port-forward over SPDY: each connection of the client is a pair of streams, its bytes and its errors. Of api/ alone.
//
// Owned by the coroutine that serves the client; reactor thread only.
#pragma once

#include <map>
#include <string>

#include "vk-provider/api/port_forward.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/net/spdy_session.hpp"

namespace spillway::api {

/// What carrying a connection needs to know.
struct PortForwardContext {
  PortForwardContext() = default;
  std::string pod;  // for messages
  DialPort dial;
  async::Timers* timers = nullptr;
  StreamTimes times;
};

/// What the client is told when a connection to a port cannot be had, or breaks.
std::string forwarding_failure(const PortForwardContext& context, int port, const base::Error& error);
/// Until both sides have ended, or one breaks. kCancelled if that was the client, which needs not be told.
async::Task<void> carry_both_ways(async::ByteStream* client, async::ByteStream* target);
/// The same, but until the target has ended: for a client that cannot say that it has.
async::Task<void> carry_until_target_ends(async::ByteStream* client, async::ByteStream* target);

class PortPairs {
 public:
  /// `connection` is what an HTTP connection is after the handshake of SPDY.
  PortPairs(async::ByteStreamPtr connection, PortForwardContext context, boost::asio::any_io_executor executor);

  /// Until the client has left. Awaits its connections, also when the caller is cancelled.
  async::Loop run();

 private:
  struct Pair {
    Pair() = default;
    net::spdy::StreamPtr data;
    net::spdy::StreamPtr errors;
    int port = 0;
    base::TimePoint since;
  };

  async::Task<void> accept_streams();
  void take(net::spdy::StreamPtr stream);
  void drop_old();
  base::Deadline next_look() const;
  async::Loop forward(Pair pair);

  PortForwardContext context_;
  net::spdy::Session session_;
  std::map<std::string, Pair> pairs_;  // that are not complete, by the client's id of the connection
  async::TaskGroup connections_;
};

}  // namespace spillway::api
