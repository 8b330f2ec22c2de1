#include "vk-provider/net/channel_session.hpp"

#include <utility>

#include "vk-provider/async/outbox.hpp"
#include "vk-provider/async/pipe.hpp"
#include "vk-provider/async/side_by_side.hpp"

namespace spillway::net {
namespace {

using base::ErrorKind;

// How often a client that we do not read from is asked for a sign.
constexpr base::Duration kProbeEvery = std::chrono::seconds(15);

base::Error ended() { return base::Error(ErrorKind::kUnavailable, "the connection of the client has ended"); }

}  // namespace

struct ChannelSession::State {
  State(WebSocketPtr s, async::Timers& t, ChannelFormat f, ChannelLimits l)
      : socket(std::move(s)),
        timers(t),
        format(f),
        limits(l),
        decoder(f),
        outbox(std::make_shared<async::Outbox>(t)),
        active_at(t.now()) {}

  void touch() { active_at = timers.now(); }
  void finish(const base::Error& why);

  static async::Task<void> read_messages(std::shared_ptr<State> state);
  static async::Task<void> write_messages(std::shared_ptr<State> state);
  static async::Task<void> watch_idle(std::shared_ptr<State> state);
  static async::Task<void> wait_for_room(std::shared_ptr<State> state, async::PipePtr input);
  static async::Task<void> run(std::shared_ptr<State> state);
  static async::Task<void> write(std::shared_ptr<State> state, std::uint8_t channel, std::string bytes,
                                 base::Deadline deadline);

  WebSocketPtr socket;
  async::Timers& timers;
  ChannelFormat format;
  ChannelLimits limits;
  ChannelDecoder decoder;
  async::OutboxPtr outbox;
  std::vector<async::PipePtr> inputs;  // null: not wanted
  base::TimePoint active_at;
};

namespace {

class ChannelStream final : public async::ByteStream {
 public:
  ChannelStream(std::shared_ptr<ChannelSession::State> state, std::uint8_t channel)
      : state_(std::move(state)), input_(state_->inputs.at(channel)), channel_(channel) {}
  ~ChannelStream() override {
    if (input_) input_->close_reader();
  }
  ChannelStream(const ChannelStream&) = delete;
  ChannelStream& operator=(const ChannelStream&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override {
    if (input_) return async::Pipe::read(input_, deadline);
    return refuse_read();
  }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    return ChannelSession::State::write(state_, channel_, std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline) override { co_return base::Result<void>(); }

 private:
  static async::Task<std::string> refuse_read() {
    co_return base::fail(ErrorKind::kUnsupported, "nothing is wanted from the client on this channel");
  }

  std::shared_ptr<ChannelSession::State> state_;
  async::PipePtr input_;
  std::uint8_t channel_;
};

}  // namespace

async::Task<void> ChannelSession::State::read_messages(std::shared_ptr<State> state) {
  for (;;) {
    auto part = co_await state->socket->read();
    if (!part) co_return base::fail(std::move(part.error()));
    if (!*part) co_return base::Result<void>();
    state->touch();
    auto event = state->decoder.feed((*part)->bytes, (*part)->last);
    if (!event) co_return base::fail(std::move(event.error()));
    if (!*event) continue;
    const std::size_t channel = (*event)->channel;
    const bool known = channel < state->inputs.size();
    if (!known && (*event)->end) {
      co_return base::fail(ErrorKind::kInvalid, "there is no channel " + std::to_string(channel) + " to end");
    }
    const async::PipePtr input = known ? state->inputs[channel] : nullptr;
    if (!input) continue;
    input->put((*event)->bytes);
    if ((*event)->end) input->end();
    auto waited = co_await wait_for_room(state, input);
    if (!waited) co_return waited;
  }
}

async::Task<void> ChannelSession::State::wait_for_room(std::shared_ptr<State> state, async::PipePtr input) {
  for (;;) {
    const bool room = co_await async::Pipe::wait_for_room(input, state->timers.now() + kProbeEvery);
    if (room) co_return base::Result<void>();
    if (state->outbox->waiting() > 0) continue;  // the writing finds out by itself
    auto asked = co_await state->socket->ping();
    if (!asked) co_return asked;
  }
}

async::Task<void> ChannelSession::State::write_messages(std::shared_ptr<State> state) {
  for (;;) {
    auto message = co_await async::Outbox::next(state->outbox);
    if (!message) break;
    auto written = co_await state->socket->write(std::move(*message));
    if (!written) co_return base::fail(std::move(written.error()));
    state->outbox->written();
  }
  co_return co_await state->socket->close();
}

async::Task<void> ChannelSession::State::watch_idle(std::shared_ptr<State> state) {
  for (;;) {
    const base::TimePoint due = state->active_at + state->limits.idle_time;
    if (state->timers.now() >= due) break;
    co_await state->timers.sleep_until(due);
  }
  co_return base::fail(ErrorKind::kDeadline, "the client was idle for too long");
}

async::Task<void> ChannelSession::State::run(std::shared_ptr<State> state) {
  auto outcome =
      co_await async::first_of(async::together(read_messages(state), write_messages(state), watch_idle(state)));
  state->finish(outcome ? ended() : outcome.error());
  co_return outcome;
}

void ChannelSession::State::finish(const base::Error& why) {
  outbox->fail(why);
  for (const async::PipePtr& input : inputs) {
    if (input) input->fail(why);
  }
}

async::Task<void> ChannelSession::State::write(std::shared_ptr<State> state, std::uint8_t channel, std::string bytes,
                                               base::Deadline deadline) {
  auto sent = co_await async::Outbox::send(state->outbox, encode_channel(state->format, channel, bytes), deadline);
  if (sent) state->touch();
  co_return sent;
}

ChannelSession::ChannelSession(WebSocketPtr socket, async::Timers& timers, ChannelFormat format,
                               const std::vector<bool>& readable, ChannelLimits limits)
    : state_(std::make_shared<State>(std::move(socket), timers, format, limits)) {
  for (const bool wanted : readable) {
    state_->inputs.push_back(wanted ? std::make_shared<async::Pipe>(timers, limits.channel_buffer) : nullptr);
  }
}

ChannelSession::~ChannelSession() {
  state_->finish(ended());
  state_->socket.reset();
}

async::Task<void> ChannelSession::run() { return State::run(state_); }

async::ByteStreamPtr ChannelSession::channel(std::uint8_t n) { return std::make_unique<ChannelStream>(state_, n); }

void ChannelSession::announce(std::uint8_t n) { state_->outbox->post(encode_channel(state_->format, n, {})); }

void ChannelSession::close() { state_->outbox->close(base::Error(ErrorKind::kInternal, "written after the goodbye")); }

}  // namespace spillway::net
