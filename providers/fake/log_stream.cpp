#include "providers/fake/log_stream.hpp"

#include <algorithm>
#include <utility>

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;

constexpr base::Duration kAskAgain = std::chrono::milliseconds(500);

std::unexpected<base::Error> refused() { return base::fail(ErrorKind::kUnsupported, "a log cannot be written to"); }

}  // namespace

struct LogStream::State {
  FakeCloudApi& api;
  async::Timers& timers;
  std::string id;
  LogRequest next;
  bool follow;
  provider::LogFilter filter;
  LogPage page;
  bool drained = false;  // the last page had nothing: there are no more lines yet

  /// What of the page is wanted.
  std::string show() {
    std::string out;
    for (const LogLine& line : std::exchange(page.lines, {})) {
      const std::string time = provider::to_log_time(line.at);
      const std::string bytes = line.text + "\n";
      provider::LogPiece piece;
      piece.channel = line.channel;
      piece.time = time;
      piece.bytes = bytes;
      filter.take(piece, out);
    }
    return out;
  }
};

LogStream::LogStream(FakeCloudApi& api, async::Timers& timers, std::string id, const provider::LogOptions& options,
                     LogPage first) {
  LogRequest next;
  next.container = options.container;
  next.previous = options.previous;
  const bool drained = first.lines.empty();
  state_ = std::make_shared<State>(State{api, timers, std::move(id), std::move(next), options.follow,
                                         provider::LogFilter(options), std::move(first), drained});
}

async::Task<std::string> LogStream::read(base::Deadline deadline) { return read_from(state_, deadline); }

async::Task<std::string> LogStream::read_from(std::shared_ptr<State> state, base::Deadline deadline) {
  for (;;) {
    std::string out = state->show();
    if (!out.empty() || state->filter.full()) co_return out;
    if (state->drained && (state->page.ended || !state->follow)) co_return out;
    if (state->drained) {
      const base::TimePoint again = state->timers.now() + kAskAgain;
      co_await state->timers.sleep_until(std::min(again, deadline));
      if (again > deadline) co_return base::fail(ErrorKind::kDeadline, "no line came in time");
    }
    state->next.from = state->page.next;
    auto page = co_await state->api.read_log(state->id, state->next, deadline);
    // With the instance its log is gone, and nothing more will come.
    if (!page && page.error().kind == ErrorKind::kNotFound) co_return std::string();
    if (!page) co_return base::fail(std::move(page.error()));
    state->page = std::move(*page);
    state->drained = state->page.lines.empty();
  }
}

async::Task<void> LogStream::write(std::string, base::Deadline) { co_return refused(); }
async::Task<void> LogStream::close_write(base::Deadline) { co_return refused(); }

async::Task<async::ByteStreamPtr> open_log(FakeCloudApi& api, async::Timers& timers, std::string id,
                                           provider::LogOptions options, base::Deadline deadline) {
  LogRequest request;
  request.container = options.container;
  request.previous = options.previous;
  if (options.tail_lines) request.tail = static_cast<std::uint64_t>(std::max<std::int64_t>(*options.tail_lines, 0));
  auto page = co_await api.read_log(id, std::move(request), deadline);
  if (!page) co_return base::fail(std::move(page.error()));
  co_return std::make_unique<LogStream>(api, timers, std::move(id), options, std::move(*page));
}

}  // namespace spillway::providers::fake
