#include "providers/docker/log_stream.hpp"

#include <array>
#include <optional>
#include <utility>

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;
using provider::LogPiece;

std::unexpected<base::Error> refused() { return base::fail(ErrorKind::kUnsupported, "a log cannot be written to"); }

std::unexpected<base::Error> torn() {
  return base::fail(ErrorKind::kUnavailable, "the engine broke off in the middle of a log");
}

}  // namespace

struct LogStream::State {
  async::ByteStreamPtr body;  // null once it is over
  LogReader reader;
  provider::LogFilter filter;
  std::optional<base::Error> failed;
};

LogStream::LogStream(async::ByteStreamPtr body, LogReader reader, provider::LogFilter filter)
    : state_(std::make_shared<State>(State{std::move(body), std::move(reader), filter, std::nullopt})) {}

LogStream::~LogStream() { state_->body.reset(); }

async::Task<std::string> LogStream::read(base::Deadline deadline) { return read_from(state_, deadline); }

async::Task<std::string> LogStream::read_from(std::shared_ptr<State> state, base::Deadline deadline) {
  while (!state->filter.full() && !state->failed && state->body) {
    const auto bytes = co_await state->body->read(deadline);
    if (!bytes) co_return base::fail(bytes.error());
    if (bytes->empty()) {
      state->body.reset();
      if (!state->reader.at_boundary()) co_return torn();
      break;
    }
    std::string out;
    out.reserve(bytes->size());
    const auto fed = state->reader.feed(*bytes, [&](const LogPiece& piece) { state->filter.take(piece, out); });
    if (!fed) state->failed = fed.error();
    if (!out.empty()) co_return out;
  }
  state->body.reset();
  if (state->failed) co_return base::fail(*state->failed);
  co_return std::string();
}

async::Task<void> LogStream::write(std::string, base::Deadline) { co_return refused(); }
async::Task<void> LogStream::close_write(base::Deadline) { co_return refused(); }

async::Task<std::uint64_t> count_lines(async::ByteStreamPtr body, LogReader reader, base::Deadline deadline) {
  std::uint64_t lines = 0;
  std::array<bool, 2> open{};
  const auto look = [&](const LogPiece& piece) {
    if (piece.bytes.empty()) return;
    bool& is_open = open.at(static_cast<size_t>(piece.channel));
    if (!is_open) ++lines;
    is_open = !piece.bytes.ends_with('\n');
  };
  for (;;) {
    const auto bytes = co_await body->read(deadline);
    if (!bytes) co_return base::fail(bytes.error());
    if (bytes->empty()) break;
    const auto fed = reader.feed(*bytes, look);
    if (!fed) co_return base::fail(fed.error());
  }
  if (!reader.at_boundary()) co_return torn();
  co_return lines;
}

}  // namespace spillway::providers::docker
