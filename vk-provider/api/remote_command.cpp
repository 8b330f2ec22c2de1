#include "vk-provider/api/remote_command.hpp"

#include <utility>

#include "vk-provider/api/remote_status_codec.hpp"
#include "vk-provider/async/side_by_side.hpp"

namespace spillway::api {
namespace {

using base::ErrorKind;

constexpr base::Duration kResizeTime = std::chrono::seconds(10);

/// Everything that `from` says goes to `to`, as far as there is one and it takes it: who reads no more does not stop
/// the one that writes. An error is one of `from`.
async::Task<void> drain(async::ByteStream* from, async::ByteStream* to) {
  while (from != nullptr) {
    auto bytes = co_await from->read(base::Deadline::max());
    if (!bytes) co_return base::fail(std::move(bytes.error()));
    if (bytes->empty()) break;
    if (to == nullptr) continue;
    const auto written = co_await to->write(std::move(*bytes), base::Deadline::max());
    if (!written) to = nullptr;
  }
  co_return base::Result<void>();
}

/// Also when the client has reset its stream, the process sees the end of its input.
async::Task<void> carry_input(async::ByteStream* from, async::ByteStream* to) {
  if (from == nullptr || to == nullptr) co_return base::Result<void>();
  static_cast<void>(co_await drain(from, to));
  static_cast<void>(co_await to->close_write(base::Deadline::max()));
  co_return base::Result<void>();
}

async::Task<void> carry_sizes(async::ByteStream* from, provider::ExecSession* session, async::Timers* timers) {
  SizeDecoder decoder;
  while (from != nullptr) {
    const auto bytes = co_await from->read(base::Deadline::max());
    if (!bytes || bytes->empty()) break;
    const auto sizes = decoder.feed(*bytes);
    if (!sizes) break;
    // Of several that came at once only the last one matters.
    if (!sizes->empty()) static_cast<void>(co_await session->resize(sizes->back(), timers->now() + kResizeTime));
  }
  // Whatever else comes, also a reset, must not stand in the way of the other streams.
  static_cast<void>(co_await drain(from, nullptr));
  co_return base::Result<void>();
}

async::Loop carry_from_client(RemotePeer* peer, provider::ExecSession* session, async::Timers* timers) {
  static_cast<void>(co_await async::all_of(
      async::together(carry_input(peer->input(), session->input()), carry_sizes(peer->sizes(), session, timers))));
}

async::Task<void> carry_to_client(RemotePeer* peer, provider::ExecSession* session) {
  return async::all_of(
      async::together(drain(&session->output(), peer->output()), drain(session->errors(), peer->errors())));
}

/// Until the process has ended and all of its output was taken.
async::Task<void> converse(RemotePeer* peer, provider::ExecSession* session, CommandEnd* end) {
  const auto carried = co_await carry_to_client(peer, session);
  if (!carried) {
    end->failure = carried.error().message;
    co_return base::Result<void>();
  }
  const auto code = co_await session->exit_code(base::Deadline::max());
  if (code) end->exit_code = *code;
  // An attach has no exit code: that of its container is in the pod's status.
  if (!code && code.error().kind != ErrorKind::kUnsupported) end->failure = code.error().message;
  co_return base::Result<void>();
}

async::Task<void> serve(RemotePeer* peer, OpenSession* open, async::Timers* timers, StreamTimes times) {
  CommandEnd end;
  const auto opened = co_await peer->open(timers->now() + times.creation);
  if (opened) {
    auto session = co_await (*open)(timers->now() + times.opening);
    if (session) {
      provider::ExecSession* const process = session->get();
      static_cast<void>(
          co_await async::with_helper(converse(peer, process, &end), carry_from_client(peer, process, timers)));
    } else {
      end.failure = session.error().message;
    }
  } else {
    end.failure = opened.error().message;
  }
  const base::Deadline last = timers->now() + times.farewell;
  const std::string status = encode_end(end, peer->text_status());
  if (peer->status() != nullptr && !status.empty()) static_cast<void>(co_await peer->status()->write(status, last));
  co_await peer->finish(last);
  co_await timers->sleep_until(last);
  co_return base::Result<void>();
}

async::Loop serve_spdy(async::ByteStreamPtr connection, std::string protocol, RemoteStreams wanted, OpenSession open,
                       async::Timers& timers, StreamTimes times) {
  const base::Deadline deadline = timers.now() + times.creation;
  const auto answered = co_await connection->write(spdy_handshake(protocol), deadline);
  if (!answered) co_return;
  co_await serve_remote_command(make_spdy_peer(std::move(connection), timers, wanted, times), std::move(open), timers,
                                times);
}

async::Loop serve_websocket(async::ByteStreamPtr connection, net::HttpServerRequest request, std::string protocol,
                            RemoteStreams wanted, OpenSession open, async::Timers& timers, StreamTimes times) {
  auto peer = co_await accept_websocket_peer(std::move(connection), std::move(request), std::move(protocol), timers,
                                             wanted, times);
  if (peer) co_await serve_remote_command(std::move(*peer), std::move(open), timers, times);
}

}  // namespace

base::Result<RemoteStreams> parse_remote_streams(const net::Query& query) {
  RemoteStreams out;
  out.input = query.find("input") == "1";
  out.output = query.find("output") == "1";
  out.errors = query.find("error") == "1";
  out.tty = query.find("tty") == "1";
  // A terminal has one output: what is written to its standard error comes there.
  if (out.tty) out.errors = false;
  if (out.input || out.output || out.errors) return out;
  return base::fail(ErrorKind::kInvalid, "you must specify at least 1 of stdin, stdout, stderr");
}

net::HttpServerResponse answer_remote_command(net::HttpServerRequest request, RemoteStreams wanted, OpenSession open,
                                              async::Timers& timers, StreamTimes times) {
  auto dialect = choose_dialect(request, remote_command_protocols());
  if (!dialect) return std::move(dialect.error());
  net::HttpServerResponse response;
  if (dialect->websocket) {
    response.take_over = [request = std::move(request), protocol = dialect->protocol, wanted, open = std::move(open),
                          &timers, times](async::ByteStreamPtr connection) mutable {
      return serve_websocket(std::move(connection), std::move(request), std::move(protocol), wanted, std::move(open),
                             timers, times);
    };
  } else {
    response.take_over = [protocol = dialect->protocol, wanted, open = std::move(open), &timers,
                          times](async::ByteStreamPtr connection) mutable {
      return serve_spdy(std::move(connection), std::move(protocol), wanted, std::move(open), timers, times);
    };
  }
  return response;
}

async::Loop serve_remote_command(RemotePeerPtr peer, OpenSession open, async::Timers& timers, StreamTimes times) {
  static_cast<void>(co_await async::first_of(async::together(peer->run(), serve(peer.get(), &open, &timers, times))));
}

}  // namespace spillway::api
