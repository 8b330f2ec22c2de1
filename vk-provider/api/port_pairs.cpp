#include "vk-provider/api/port_pairs.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "vk-provider/async/side_by_side.hpp"

namespace spillway::api {
namespace {

using base::ErrorKind;
using net::spdy::StreamPtr;

// For the client to take why a connection failed.
constexpr base::Duration kErrorTime = std::chrono::minutes(1);
// Connections of one client: so many that wait for their second stream, and so many that are carried. The limit of the
// session does not bound them: a stream that the client has reset counts there no more.
constexpr std::size_t kMaxConnections = 512;

net::spdy::Limits limits_of(const StreamTimes& times) {
  net::spdy::Limits limits;
  limits.idle_time = times.idle;
  limits.stall_time = times.idle;
  return limits;
}

std::unexpected<base::Error> client_left() { return base::fail(ErrorKind::kCancelled, "the client broke off"); }

async::Task<void> carry_to_target(async::ByteStream* client, async::ByteStream* target,
                                  std::shared_ptr<bool> target_ended) {
  for (;;) {
    auto bytes = co_await client->read(base::Deadline::max());
    if (!bytes) co_return client_left();
    const bool last = bytes->empty();
    auto sent = last ? co_await target->close_write(base::Deadline::max())
                     : co_await target->write(std::move(*bytes), base::Deadline::max());
    // To what has said its last it cannot matter that it hears no more; and who cannot be told that the client has
    // ended its direction may still have something to say.
    const bool unheard = !sent && (*target_ended || (last && sent.error().kind == ErrorKind::kUnsupported));
    if (unheard) co_return base::Result<void>();
    if (!sent || last) co_return sent;
  }
}

async::Task<void> carry_to_client(async::ByteStream* target, async::ByteStream* client,
                                  std::shared_ptr<bool> target_ended) {
  for (;;) {
    auto bytes = co_await target->read(base::Deadline::max());
    if (!bytes) co_return base::fail(std::move(bytes.error()));
    *target_ended = bytes->empty();
    const auto sent = *target_ended ? co_await client->close_write(base::Deadline::max())
                                    : co_await client->write(std::move(*bytes), base::Deadline::max());
    if (!sent) co_return client_left();
    if (*target_ended) co_return base::Result<void>();
  }
}

std::optional<int> port_of(const net::spdy::Stream& stream) {
  const auto text = net::find_header(stream.headers(), "port");
  if (!text) return std::nullopt;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc() || end != text->data() + text->size() || port == 0) return std::nullopt;
  return port;
}

/// A client of old names no connections: its error stream comes first, its data stream is the next one.
std::string connection_of(const net::spdy::Stream& stream, bool is_data) {
  const auto id = net::find_header(stream.headers(), "requestid");
  if (id && !id->empty()) return std::string(*id);
  return std::to_string(is_data ? static_cast<std::int64_t>(stream.id()) - 2 : stream.id());
}

async::Loop tell(StreamPtr errors, std::string message, base::Deadline deadline) {
  if (!errors) co_return;
  static_cast<void>(co_await errors->write(std::move(message), deadline));
  static_cast<void>(co_await errors->close_write(deadline));
}

}  // namespace

std::string forwarding_failure(const PortForwardContext& context, int port, const base::Error& error) {
  return "error forwarding port " + std::to_string(port) + " to pod " + context.pod + ": " + error.message;
}

async::Task<void> carry_both_ways(async::ByteStream* client, async::ByteStream* target) {
  const auto target_ended = std::make_shared<bool>(false);
  return async::all_of(
      async::together(carry_to_target(client, target, target_ended), carry_to_client(target, client, target_ended)));
}

async::Task<void> carry_until_target_ends(async::ByteStream* client, async::ByteStream* target) {
  const auto target_ended = std::make_shared<bool>(false);
  return async::first_of(
      async::together(carry_to_client(target, client, target_ended), carry_to_target(client, target, target_ended)));
}

PortPairs::PortPairs(async::ByteStreamPtr connection, PortForwardContext context, boost::asio::any_io_executor executor)
    : context_(std::move(context)),
      session_(std::move(connection), *context_.timers, limits_of(context_.times)),
      connections_(std::move(executor)) {}

async::Loop PortPairs::run() {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  static_cast<void>(co_await async::first_of(async::together(session_.run(), accept_streams())));
  co_await connections_.stop();
}

async::Task<void> PortPairs::accept_streams() {
  for (;;) {
    auto stream = co_await session_.accept(next_look());
    if (!stream && stream.error().kind != ErrorKind::kDeadline) co_return base::fail(std::move(stream.error()));
    if (stream && !*stream) co_return base::Result<void>();
    if (stream) take(std::move(*stream));
    drop_old();
  }
}

/// One that says too little, or is one too many, is reset.
void PortPairs::take(StreamPtr stream) {
  const auto type = net::find_header(stream->headers(), "streamtype");
  const std::optional<int> port = port_of(*stream);
  if (!port || (type != "data" && type != "error")) return;
  const bool is_data = type == "data";
  const std::string connection = connection_of(*stream, is_data);
  const bool begins = !pairs_.contains(connection);
  if (begins && (pairs_.size() >= kMaxConnections || connections_.size() >= kMaxConnections)) return;
  Pair& pair = pairs_[connection];
  StreamPtr& place = is_data ? pair.data : pair.errors;
  if (place) return;
  if (begins) pair.since = context_.timers->now();
  if (!is_data) stream->drop_input();
  stream->reply();
  place = std::move(stream);
  if (is_data) pair.port = *port;
  if (!pair.data || !pair.errors) return;
  connections_.spawn(forward(std::move(pair)));
  pairs_.erase(connection);
}

base::Deadline PortPairs::next_look() const {
  base::Deadline next = base::Deadline::max();
  for (const auto& [id, pair] : pairs_) next = std::min(next, pair.since + context_.times.creation);
  return next;
}

void PortPairs::drop_old() {
  const base::TimePoint now = context_.timers->now();
  for (auto it = pairs_.begin(); it != pairs_.end();) {
    if (it->second.since + context_.times.creation > now) {
      ++it;
      continue;
    }
    connections_.spawn(tell(std::move(it->second.errors),
                            "the client did not open both streams of a connection in time", now + kErrorTime));
    it = pairs_.erase(it);
  }
}

async::Loop PortPairs::forward(Pair pair) {
  auto target = co_await context_.dial(pair.port, context_.timers->now() + context_.times.opening);
  base::Result<void> carried;
  if (target) {
    carried = co_await carry_both_ways(pair.data.get(), target->get());
  } else {
    carried = base::fail(std::move(target.error()));
  }
  // What breaks off must not look like an end. A client that has reset its stream waits for the end of its errors.
  if (!carried) pair.data->reset();
  if (!carried && carried.error().kind != ErrorKind::kCancelled) {
    const base::Deadline deadline = context_.timers->now() + kErrorTime;
    co_await tell(std::move(pair.errors), forwarding_failure(context_, pair.port, carried.error()), deadline);
    co_return;
  }
  static_cast<void>(co_await pair.errors->close_write(base::Deadline::max()));
}

}  // namespace spillway::api
