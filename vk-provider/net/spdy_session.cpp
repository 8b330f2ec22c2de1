#include "vk-provider/net/spdy_session.hpp"

#include <deque>
#include <unordered_map>
#include <utility>

#include "vk-provider/async/outbox.hpp"
#include "vk-provider/async/pipe.hpp"
#include "vk-provider/async/side_by_side.hpp"
#include "vk-provider/net/spdy_frames.hpp"

namespace spillway::net::spdy {
namespace {

using base::ErrorKind;

// So that streams take turns.
constexpr std::size_t kLargestData = 32 * 1024;
// Frames that a client may make us say before it must have taken some: answers to pings, resets.
constexpr std::size_t kMaxUnsaid = 64;
// How often a client that we do not read from is asked for a sign.
constexpr base::Duration kProbeEvery = std::chrono::seconds(15);

base::Error ended() { return base::Error(ErrorKind::kUnavailable, "the connection of the client has ended"); }

}  // namespace

struct Stream::State {
  std::weak_ptr<Session::State> session;
  std::uint32_t id = 0;
  std::vector<Header> headers;
  async::PipePtr input;
  bool written = false;  // our direction has ended
  bool gone = false;     // reset, by either side

  bool over() const { return gone || (written && input->ended()); }
};

struct Session::State : std::enable_shared_from_this<Session::State> {
  State(async::ByteStreamPtr c, async::Timers& t, Limits l)
      : connection(std::move(c)),
        timers(t),
        limits(l),
        outbox(std::make_shared<async::Outbox>(t)),
        active_at(t.now()) {}

  void touch() { active_at = timers.now(); }
  /// Acts on a frame; the pipe that is now full, if one is.
  async::PipePtr handle(Frame frame);
  void open(Frame& frame);
  /// Removes it if both directions have ended.
  void settle(const Stream::State& stream) {
    if (stream.over()) streams.erase(stream.id);
  }
  void finish(const base::Error& why);

  static async::Task<void> read_frames(std::shared_ptr<State> state);
  static async::Task<void> write_frames(std::shared_ptr<State> state);
  static async::Task<void> watch_idle(std::shared_ptr<State> state);
  static async::Task<void> run(std::shared_ptr<State> state);
  static boost::asio::awaitable<void> wait_for_room(std::shared_ptr<State> state, async::PipePtr pipe);
  static async::Task<StreamPtr> accept(std::shared_ptr<State> state, base::Deadline deadline);
  static async::Task<void> write(std::shared_ptr<Stream::State> stream, std::string bytes, base::Deadline deadline);
  static async::Task<void> close_write(std::shared_ptr<Stream::State> stream, base::Deadline deadline);

  async::ByteStreamPtr connection;
  async::Timers& timers;
  Limits limits;
  FrameDecoder decoder;
  FrameEncoder encoder;
  async::OutboxPtr outbox;
  std::unordered_map<std::uint32_t, std::shared_ptr<Stream::State>> streams;
  std::deque<std::shared_ptr<Stream::State>> fresh;
  async::WaitPlace acceptor;
  std::uint32_t last_opened = 0;
  std::uint32_t next_ping = 2;  // even: ours
  base::TimePoint active_at;
  bool over = false;
};

async::PipePtr Session::State::handle(Frame frame) {
  if (frame.type == FrameType::kOpen) {
    open(frame);
    return nullptr;
  }
  if (frame.type == FrameType::kPing) {
    if (frame.number % 2 == 1) outbox->post(FrameEncoder::ping(frame.number));
    return nullptr;
  }
  // A stream that has ended may still be spoken to: by then the client cannot know.
  const auto found = streams.find(frame.stream);
  if (found == streams.end()) return nullptr;
  const std::shared_ptr<Stream::State> stream = found->second;
  if (frame.type == FrameType::kReset) {
    stream->gone = true;
    stream->input->fail(base::Error(ErrorKind::kUnavailable, "the client has reset the stream"));
    // One that nobody has accepted would be kept, and not be counted any more.
    std::erase(fresh, stream);
    settle(*stream);
    return nullptr;
  }
  if (frame.type == FrameType::kData) stream->input->put(frame.data);
  if (frame.last) {
    stream->input->end();
    settle(*stream);
  }
  return stream->input->has_room() ? nullptr : stream->input;
}

void Session::State::open(Frame& frame) {
  if (frame.stream % 2 == 0 || frame.stream <= last_opened) {
    outbox->post(FrameEncoder::reset(frame.stream, kProtocolError));
    return;
  }
  last_opened = frame.stream;
  if (streams.size() >= limits.streams) {
    outbox->post(FrameEncoder::reset(frame.stream, kRefusedStream));
    return;
  }
  auto stream = std::make_shared<Stream::State>();
  stream->session = weak_from_this();
  stream->id = frame.stream;
  stream->headers = std::move(frame.headers);
  stream->input = std::make_shared<async::Pipe>(timers, limits.stream_buffer);
  if (frame.last) stream->input->end();
  streams.emplace(stream->id, stream);
  fresh.push_back(std::move(stream));
  acceptor.wake();
}

async::Task<void> Session::State::read_frames(std::shared_ptr<State> state) {
  for (;;) {
    auto bytes = co_await state->connection->read(base::Deadline::max());
    if (!bytes) co_return base::fail(std::move(bytes.error()));
    if (bytes->empty()) co_return base::Result<void>();
    state->touch();
    for (std::string_view rest = *bytes;;) {
      auto frame = state->decoder.next(rest);
      if (!frame) co_return base::fail(std::move(frame.error()));
      if (!*frame) break;
      if ((*frame)->type == FrameType::kGoAway) co_return base::Result<void>();
      const async::PipePtr full = state->handle(std::move(**frame));
      if (full) co_await wait_for_room(state, full);
      const std::size_t most = kMaxUnsaid + 2 * state->streams.size();
      if (state->outbox->waiting() > most) co_await async::Outbox::flush(state->outbox);
    }
  }
}

boost::asio::awaitable<void> Session::State::wait_for_room(std::shared_ptr<State> state, async::PipePtr pipe) {
  for (;;) {
    const bool room = co_await async::Pipe::wait_for_room(pipe, state->timers.now() + kProbeEvery);
    if (room) co_return;
    // To a client that is gone its machine answers with a reset; then the writing fails.
    if (state->outbox->waiting() == 0) {
      state->outbox->post(FrameEncoder::ping(state->next_ping));
      state->next_ping += 2;
    }
  }
}

async::Task<void> Session::State::write_frames(std::shared_ptr<State> state) {
  for (;;) {
    auto frame = co_await async::Outbox::next(state->outbox);
    if (!frame) co_return base::Result<void>();
    const base::Deadline deadline = state->timers.now() + state->limits.stall_time;
    auto written = co_await state->connection->write(std::move(*frame), deadline);
    if (!written) co_return base::fail(std::move(written.error()));
    state->outbox->written();
  }
}

async::Task<void> Session::State::watch_idle(std::shared_ptr<State> state) {
  for (;;) {
    const base::TimePoint due = state->active_at + state->limits.idle_time;
    if (state->timers.now() >= due) break;
    co_await state->timers.sleep_until(due);
  }
  co_return base::fail(ErrorKind::kDeadline, "the client was idle for too long");
}

async::Task<void> Session::State::run(std::shared_ptr<State> state) {
  auto outcome = co_await async::first_of(async::together(read_frames(state), write_frames(state), watch_idle(state)));
  state->finish(outcome ? ended() : outcome.error());
  co_return outcome;
}

void Session::State::finish(const base::Error& why) {
  over = true;
  outbox->fail(why);
  for (const auto& [id, stream] : streams) {
    stream->gone = true;
    stream->input->fail(why);
  }
  streams.clear();
  fresh.clear();
  acceptor.wake();
}

async::Task<StreamPtr> Session::State::accept(std::shared_ptr<State> state, base::Deadline deadline) {
  while (state->fresh.empty()) {
    if (state->over) co_return StreamPtr();
    const bool in_time = co_await state->acceptor.wait(state->timers, deadline);
    if (!in_time && state->fresh.empty() && !state->over) {
      co_return base::fail(ErrorKind::kDeadline, "the client opened no stream in time");
    }
  }
  auto stream = std::make_unique<Stream>(std::move(state->fresh.front()));
  state->fresh.pop_front();
  co_return stream;
}

async::Task<void> Session::State::write(std::shared_ptr<Stream::State> stream, std::string bytes,
                                        base::Deadline deadline) {
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::shared_ptr<State> state = stream->session.lock();
    if (!state || state->over) co_return base::fail(ended());
    if (stream->gone) co_return base::fail(ErrorKind::kUnavailable, "the client has reset the stream");
    if (stream->written) co_return base::fail(ErrorKind::kInternal, "written to a stream after its end");
    const std::string_view piece = rest.substr(0, kLargestData);
    auto sent = co_await async::Outbox::send(state->outbox, FrameEncoder::data(stream->id, piece, false), deadline);
    if (!sent) co_return sent;
    state->touch();
    rest.remove_prefix(piece.size());
  }
  co_return base::Result<void>();
}

async::Task<void> Session::State::close_write(std::shared_ptr<Stream::State> stream, base::Deadline deadline) {
  const std::shared_ptr<State> state = stream->session.lock();
  if (!state || state->over) co_return base::fail(ended());
  if (stream->gone || stream->written) co_return base::Result<void>();
  stream->written = true;
  state->settle(*stream);
  co_return co_await async::Outbox::send(state->outbox, FrameEncoder::data(stream->id, {}, true), deadline);
}

Stream::~Stream() { reset(); }

std::uint32_t Stream::id() const { return state_->id; }

const std::vector<Header>& Stream::headers() const { return state_->headers; }

void Stream::reply() {
  const std::shared_ptr<Session::State> session = state_->session.lock();
  if (session && !state_->gone) session->outbox->post(session->encoder.reply(state_->id, {}));
}

void Stream::drop_input() { state_->input->close_reader(); }

void Stream::reset() {
  drop_input();
  if (state_->over()) return;
  state_->gone = true;
  const std::shared_ptr<Session::State> session = state_->session.lock();
  if (!session) return;
  session->outbox->post(FrameEncoder::reset(state_->id, kCancel));
  session->settle(*state_);
}

async::Task<std::string> Stream::read(base::Deadline deadline) { return async::Pipe::read(state_->input, deadline); }

async::Task<void> Stream::write(std::string bytes, base::Deadline deadline) {
  return Session::State::write(state_, std::move(bytes), deadline);
}

async::Task<void> Stream::close_write(base::Deadline deadline) { return Session::State::close_write(state_, deadline); }

Session::Session(async::ByteStreamPtr connection, async::Timers& timers, Limits limits)
    : state_(std::make_shared<State>(std::move(connection), timers, limits)) {}

Session::~Session() {
  state_->finish(ended());
  state_->connection.reset();
}

async::Task<void> Session::run() { return State::run(state_); }

async::Task<StreamPtr> Session::accept(base::Deadline deadline) { return State::accept(state_, deadline); }

}  // namespace spillway::net::spdy
