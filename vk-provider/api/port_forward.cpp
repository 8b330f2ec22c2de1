#include "vk-provider/api/port_forward.hpp"

#include <charconv>
#include <cstdint>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "vk-provider/api/port_pairs.hpp"
#include "vk-provider/async/side_by_side.hpp"
#include "vk-provider/net/channel_session.hpp"

namespace spillway::api {
namespace {

using base::ErrorKind;

constexpr std::string_view kTunnel = "SPDY/3.1+";
constexpr std::string_view kProtocol = "portforward.k8s.io";
// A channel's number is one byte, with base64 one digit; each port takes two.
constexpr std::size_t kMaxPorts = 127;
constexpr std::size_t kMaxPortsBase64 = 5;

StreamProtocols protocols() {
  StreamProtocols out;
  out.spdy = {std::string(kProtocol)};
  out.websocket = {std::string(kTunnel) + std::string(kProtocol), "v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""};
  return out;
}

async::Loop serve_pairs(async::ByteStreamPtr connection, PortForwardContext context) {
  PortPairs pairs(std::move(connection), std::move(context), co_await boost::asio::this_coro::executor);
  co_await pairs.run();
}

async::Loop serve_spdy(async::ByteStreamPtr connection, PortForwardContext context) {
  const base::Deadline deadline = context.timers->now() + context.times.creation;
  const auto answered = co_await connection->write(spdy_handshake(kProtocol), deadline);
  if (answered) co_await serve_pairs(std::move(connection), std::move(context));
}

async::Loop serve_tunnel(async::ByteStreamPtr connection, net::HttpServerRequest request, std::string protocol,
                         PortForwardContext context) {
  net::WebSocketOptions options;
  options.protocol = std::move(protocol);
  auto socket = co_await net::accept_websocket(std::move(connection), request, std::move(options));
  if (socket) co_await serve_pairs(net::as_byte_stream(std::move(*socket)), std::move(context));
}

std::string little_endian(int port) { return {static_cast<char>(port & 0xff), static_cast<char>((port >> 8) & 0xff)}; }

/// One connection to one port. The client cannot say that it has ended its direction: the target's end counts.
async::Task<void> serve_channels(async::ByteStreamPtr data, async::ByteStreamPtr errors, int port,
                                 const PortForwardContext* context) {
  const std::string begin = little_endian(port);
  for (async::ByteStream* const stream : {data.get(), errors.get()}) {
    auto begun = co_await stream->write(begin, base::Deadline::max());
    if (!begun) co_return begun;
  }
  auto target = co_await context->dial(port, context->timers->now() + context->times.opening);
  base::Result<void> carried;
  if (target) {
    carried = co_await carry_until_target_ends(data.get(), target->get());
  } else {
    carried = base::fail(std::move(target.error()));
  }
  if (carried || carried.error().kind == ErrorKind::kCancelled) co_return base::Result<void>();
  co_return co_await errors->write(forwarding_failure(*context, port, carried.error()), base::Deadline::max());
}

/// Until all connections have ended; then the client is seen off.
async::Task<void> serve_ports(net::ChannelSession* session, std::vector<int> ports, PortForwardContext context) {
  std::vector<async::Task<void>> connections;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto channel = static_cast<std::uint8_t>(2 * i);
    connections.push_back(serve_channels(session->channel(channel),
                                         session->channel(static_cast<std::uint8_t>(channel + 1)), ports[i], &context));
  }
  static_cast<void>(co_await async::all_of(std::move(connections)));
  session->close();
  co_await context.timers->sleep_for(context.times.farewell);
  co_return base::Result<void>();
}

async::Loop serve_websocket(async::ByteStreamPtr connection, net::HttpServerRequest request, std::string protocol,
                            std::vector<int> ports, PortForwardContext context) {
  net::ChannelFormat format;
  format.base64 = protocol.find("base64.") != std::string::npos;
  net::WebSocketOptions options;
  options.protocol = std::move(protocol);
  options.text = format.base64;
  auto socket = co_await net::accept_websocket(std::move(connection), request, std::move(options));
  if (!socket) co_return;
  std::vector<bool> readable;
  for (std::size_t i = 0; i < ports.size(); ++i) readable.insert(readable.end(), {true, false});
  net::ChannelLimits limits;
  limits.idle_time = context.times.idle;
  net::ChannelSession session(std::move(*socket), *context.timers, format, readable, limits);
  static_cast<void>(
      co_await async::first_of(async::together(session.run(), serve_ports(&session, std::move(ports), context))));
}

}  // namespace

base::Result<std::vector<int>> parse_forwarded_ports(const net::Query& query) {
  std::vector<int> ports;
  for (const std::string& list : query.all("port")) {
    for (std::string_view rest = list;;) {
      const std::size_t comma = rest.find(',');
      const std::string_view text = rest.substr(0, comma);
      std::uint16_t port = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
      if (error != std::errc() || end != text.data() + text.size() || port == 0) {
        return base::fail(ErrorKind::kInvalid, "unable to parse \"" + list + "\" as a port from 1 to 65535");
      }
      ports.push_back(port);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  if (ports.empty()) return base::fail(ErrorKind::kInvalid, "query parameter \"port\" is required");
  return ports;
}

net::HttpServerResponse answer_port_forward(net::HttpServerRequest request, std::string pod, DialPort dial,
                                            async::Timers& timers, StreamTimes times) {
  auto dialect = choose_dialect(request, protocols());
  if (!dialect) return std::move(dialect.error());
  PortForwardContext context;
  context.pod = std::move(pod);
  context.dial = std::move(dial);
  context.timers = &timers;
  context.times = times;
  net::HttpServerResponse response;
  if (!dialect->websocket) {
    response.take_over = [context = std::move(context)](async::ByteStreamPtr connection) mutable {
      return serve_spdy(std::move(connection), std::move(context));
    };
    return response;
  }
  std::string protocol = std::move(dialect->protocol);
  if (protocol.starts_with(kTunnel)) {
    response.take_over = [context = std::move(context), request = std::move(request),
                          protocol = std::move(protocol)](async::ByteStreamPtr connection) mutable {
      return serve_tunnel(std::move(connection), std::move(request), std::move(protocol), std::move(context));
    };
    return response;
  }
  auto ports = parse_forwarded_ports(net::Query(request.query()));
  if (!ports) return refuse_stream(400, ports.error().message);
  const bool base64 = protocol.find("base64.") != std::string::npos;
  const std::size_t most = base64 ? kMaxPortsBase64 : kMaxPorts;
  if (ports->size() > most)
    return refuse_stream(400, "at most " + std::to_string(most) + " ports with this sub-protocol");
  response.take_over = [context = std::move(context), request = std::move(request), protocol = std::move(protocol),
                        ports = std::move(*ports)](async::ByteStreamPtr connection) mutable {
    return serve_websocket(std::move(connection), std::move(request), std::move(protocol), std::move(ports),
                           std::move(context));
  };
  return response;
}

}  // namespace spillway::api
