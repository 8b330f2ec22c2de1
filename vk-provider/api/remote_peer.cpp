#include "vk-provider/api/remote_peer.hpp"

#include <array>
#include <optional>
#include <utility>

#include "vk-provider/net/channel_session.hpp"
#include "vk-provider/net/spdy_session.hpp"

namespace spillway::api {
namespace {

using base::ErrorKind;

// The numbers are those of the channels of a WebSocket.
enum Role : std::uint8_t { kInput = 0, kOutput = 1, kErrors = 2, kStatus = 3, kSizes = 4 };
constexpr std::size_t kRoles = 5;
constexpr std::array<std::string_view, kRoles> kTypes = {"stdin", "stdout", "stderr", "error", "resize"};

std::array<bool, kRoles> wanted_roles(const RemoteStreams& wanted) {
  return {wanted.input, wanted.output, wanted.errors && !wanted.tty, true, wanted.tty};
}

/// Which stream a client opens; empty if it does not say, or says what is not known.
std::optional<Role> role_of(const std::vector<net::Header>& headers) {
  const auto type = net::find_header(headers, "streamtype");
  for (std::size_t i = 0; i < kRoles && type; ++i) {
    if (*type == kTypes.at(i)) return static_cast<Role>(i);
  }
  return std::nullopt;
}

class SpdyPeer final : public RemotePeer {
 public:
  SpdyPeer(async::ByteStreamPtr connection, async::Timers& timers, const RemoteStreams& wanted,
           const net::spdy::Limits& limits)
      : session_(std::move(connection), timers, limits), wanted_(wanted_roles(wanted)) {}

  async::Task<void> run() override { return session_.run(); }

  async::Task<void> open(base::Deadline deadline) override {
    while (!complete()) {
      auto stream = co_await session_.accept(deadline);
      if (!stream) co_return base::fail(std::move(stream.error()));
      if (!*stream) co_return base::fail(ErrorKind::kUnavailable, "the client left before it opened its streams");
      const std::optional<Role> role = role_of((*stream)->headers());
      // One that was not asked for, or comes twice, is reset.
      if (!role || !wanted_.at(*role) || streams_.at(*role)) continue;
      if (*role != kInput && *role != kSizes) (*stream)->drop_input();
      (*stream)->reply();
      streams_.at(*role) = std::move(*stream);
    }
    co_return base::Result<void>();
  }

  async::ByteStream* input() override { return streams_[kInput].get(); }
  async::ByteStream* output() override { return streams_[kOutput].get(); }
  async::ByteStream* errors() override { return streams_[kErrors].get(); }
  async::ByteStream* sizes() override { return streams_[kSizes].get(); }
  async::ByteStream* status() override { return streams_[kStatus].get(); }
  bool text_status() const override { return false; }

  boost::asio::awaitable<void> finish(base::Deadline deadline) override {
    for (const Role role : {kInput, kSizes}) {
      if (streams_.at(role)) streams_.at(role)->reset();
    }
    for (const Role role : {kOutput, kErrors, kStatus}) {
      if (streams_.at(role)) static_cast<void>(co_await streams_.at(role)->close_write(deadline));
    }
  }

 private:
  bool complete() const {
    for (std::size_t i = 0; i < kRoles; ++i) {
      if (wanted_.at(i) && !streams_.at(i)) return false;
    }
    return true;
  }

  net::spdy::Session session_;
  std::array<bool, kRoles> wanted_;
  std::array<net::spdy::StreamPtr, kRoles> streams_;
};

class ChannelPeer final : public RemotePeer {
 public:
  ChannelPeer(net::WebSocketPtr socket, async::Timers& timers, net::ChannelFormat format, const RemoteStreams& wanted,
              bool text_status, const net::ChannelLimits& limits)
      : session_(std::move(socket), timers, format, {wanted.input, false, false, false, wanted.tty}, limits),
        wanted_(wanted_roles(wanted)),
        text_status_(text_status) {
    for (std::uint8_t i = 0; i < kRoles; ++i) {
      if (wanted_.at(i)) channels_.at(i) = session_.channel(i);
    }
  }

  async::Task<void> run() override { return session_.run(); }

  async::Task<void> open(base::Deadline) override {
    // So that the client knows that somebody listens.
    session_.announce(wanted_[kOutput] ? kOutput : wanted_[kErrors] ? kErrors : kStatus);
    co_return base::Result<void>();
  }

  async::ByteStream* input() override { return channels_[kInput].get(); }
  async::ByteStream* output() override { return channels_[kOutput].get(); }
  async::ByteStream* errors() override { return channels_[kErrors].get(); }
  async::ByteStream* sizes() override { return channels_[kSizes].get(); }
  async::ByteStream* status() override { return channels_[kStatus].get(); }
  bool text_status() const override { return text_status_; }

  boost::asio::awaitable<void> finish(base::Deadline) override {
    channels_[kInput].reset();
    channels_[kSizes].reset();
    session_.close();
    co_return;
  }

 private:
  net::ChannelSession session_;
  std::array<bool, kRoles> wanted_;
  bool text_status_;
  std::array<async::ByteStreamPtr, kRoles> channels_;
};

}  // namespace

StreamProtocols remote_command_protocols() {
  StreamProtocols out;
  out.spdy = {"v4.channel.k8s.io"};
  out.websocket = {"v5.channel.k8s.io", "v4.channel.k8s.io",     "v4.base64.channel.k8s.io",
                   "channel.k8s.io",    "base64.channel.k8s.io", ""};
  return out;
}

RemotePeerPtr make_spdy_peer(async::ByteStreamPtr connection, async::Timers& timers, RemoteStreams wanted,
                             const StreamTimes& times) {
  net::spdy::Limits limits;
  limits.streams = 2 * kRoles;
  limits.idle_time = times.idle;
  limits.stall_time = times.idle;
  return std::make_unique<SpdyPeer>(std::move(connection), timers, wanted, limits);
}

async::Task<RemotePeerPtr> accept_websocket_peer(async::ByteStreamPtr connection, net::HttpServerRequest request,
                                                 std::string protocol, async::Timers& timers, RemoteStreams wanted,
                                                 StreamTimes times) {
  net::ChannelFormat format;
  format.base64 = protocol.find("base64.") != std::string::npos;
  format.half_close = protocol.starts_with("v5.");
  const bool text_status = !protocol.starts_with("v4.") && !protocol.starts_with("v5.");
  net::WebSocketOptions options;
  options.protocol = std::move(protocol);
  options.text = format.base64;
  auto socket = co_await net::accept_websocket(std::move(connection), request, std::move(options));
  if (!socket) co_return base::fail(std::move(socket.error()));
  net::ChannelLimits limits;
  limits.idle_time = times.idle;
  co_return std::make_unique<ChannelPeer>(std::move(*socket), timers, format, wanted, text_status, limits);
}

}  // namespace spillway::api
