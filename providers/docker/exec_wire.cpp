#include "providers/docker/exec_wire.hpp"

#include <algorithm>

#include <boost/asio/this_coro.hpp>

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

}  // namespace

bool ExecWire::may_take(Channel reader) {
  const Channel other = reader == Channel::kOutput ? Channel::kErrors : Channel::kOutput;
  return !taking_ && text(other).size() < kFullAt;
}

void ExecWire::changed() {
  for (async::Waiter* const waiter : waiting_) waiter->wake();
}

boost::asio::awaitable<bool> ExecWire::wait(std::shared_ptr<ExecWire> wire, base::Deadline deadline) {
  const std::unique_ptr<async::Waiter> waiter = wire->timers_.make_waiter();
  struct Entry {
    std::vector<async::Waiter*>& list;
    async::Waiter* waiter;
    ~Entry() { std::erase(list, waiter); }
  } entry{wire->waiting_, waiter.get()};
  wire->waiting_.push_back(waiter.get());
  co_return !co_await waiter->wait_until(deadline);
}

void ExecWire::took(const base::Result<std::string>& bytes) {
  if (!bytes) {
    if (!failed_) failed_ = bytes.error();
    return;
  }
  if (bytes->empty()) {
    ended_ = true;
    if (framing_ == Framing::kFrames && !splitter_.at_boundary()) {
      failed_ = base::Error(ErrorKind::kUnavailable, "the engine broke off in the middle of a process's output");
    }
    return;
  }
  if (framing_ == Framing::kRaw) {
    text(Channel::kOutput) += *bytes;
    return;
  }
  std::string dropped;
  std::string& errors = errors_ == Errors::kApart        ? text(Channel::kErrors)
                        : errors_ == Errors::kWithOutput ? text(Channel::kOutput)
                                                         : dropped;
  const auto split = splitter_.feed(*bytes, {&text(Channel::kOutput), &errors});
  if (!split) failed_ = split.error();
}

boost::asio::awaitable<void> ExecWire::take(std::shared_ptr<ExecWire> wire, base::Deadline deadline) {
  // Also when the reader is cancelled: the other one carries on.
  struct Turn {
    ExecWire& wire;
    ~Turn() {
      wire.taking_ = false;
      wire.changed();
    }
  } turn{*wire};
  wire->taking_ = true;
  const auto bytes = co_await wire->stream_->read(deadline);
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  const bool cancelled = state.cancelled() != boost::asio::cancellation_type::none;
  if (bytes || !cancelled) wire->took(bytes);
}

async::Task<std::string> ExecWire::read(std::shared_ptr<ExecWire> wire, Channel channel, base::Deadline deadline) {
  for (;;) {
    std::string& text = wire->text(channel);
    if (!text.empty()) {
      wire->changed();  // there is room again
      co_return std::exchange(text, std::string());
    }
    if (wire->failed_) co_return base::fail(*wire->failed_);
    if (wire->ended_) co_return std::string();
    if (wire->may_take(channel)) {
      co_await take(wire, deadline);
    } else if (const bool in_time = co_await wait(wire, deadline); !in_time) {
      co_return base::fail(ErrorKind::kDeadline,
                           "nothing came of a process in time; both of its outputs are to be read");
    }
  }
}

async::Task<void> ExecWire::write(std::shared_ptr<ExecWire> wire, std::string bytes, base::Deadline deadline) {
  if (wire->failed_) co_return base::fail(*wire->failed_);
  co_return co_await wire->stream_->write(std::move(bytes), deadline);
}

async::Task<void> ExecWire::close_write(std::shared_ptr<ExecWire> wire, base::Deadline deadline) {
  if (wire->failed_) co_return base::fail(*wire->failed_);
  co_return co_await wire->stream_->close_write(deadline);
}

void ExecWire::close() {
  if (!failed_) failed_ = base::Error(ErrorKind::kCancelled, "the session was closed");
  stream_.reset();
  changed();
}

}  // namespace spillway::providers::docker
