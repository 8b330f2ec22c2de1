#include "providers/fake/pipe.hpp"

#include <algorithm>
#include <utility>

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;

std::unexpected<base::Error> closed() { return base::fail(ErrorKind::kCancelled, "the stream was closed"); }
async::Task<std::string> unreadable() {
  co_return base::fail(ErrorKind::kUnsupported, "the input of a process cannot be read");
}
async::Task<void> unwritable() {
  co_return base::fail(ErrorKind::kUnsupported, "the output of a process cannot be written to");
}
std::unexpected<base::Error> too_late() { return base::fail(ErrorKind::kDeadline, "nothing moved in time"); }

}  // namespace

Pipe::Pipe(async::Timers& timers)
    : readable_(timers.make_waiter()), writable_(timers.make_waiter()), over_(timers.make_waiter()) {}

async::Task<std::string> Pipe::read(std::shared_ptr<Pipe> pipe, base::Deadline deadline) {
  while (pipe->bytes_.empty()) {
    if (pipe->closed_) co_return closed();
    if (pipe->ended_) co_return std::string();
    const bool late = co_await pipe->readable_->wait_until(deadline);
    if (late) co_return too_late();
  }
  pipe->writable_->wake();
  co_return std::exchange(pipe->bytes_, std::string());
}

async::Task<void> Pipe::write(std::shared_ptr<Pipe> pipe, std::string bytes, base::Deadline deadline) {
  std::string_view left = bytes;
  while (!left.empty()) {
    if (pipe->closed_) co_return closed();
    if (pipe->ended_) co_return base::fail(ErrorKind::kConflict, "nobody takes what is written");
    const std::string_view piece = left.substr(0, kFullAt - std::min(kFullAt, pipe->bytes_.size()));
    if (piece.empty()) {
      const bool late = co_await pipe->writable_->wait_until(deadline);
      if (late) co_return too_late();
      continue;
    }
    pipe->bytes_ += piece;
    left.remove_prefix(piece.size());
    pipe->readable_->wake();
  }
  co_return base::Result<void>();
}

async::Task<void> Pipe::wait_for_end(std::shared_ptr<Pipe> pipe, base::Deadline deadline) {
  while (!pipe->ended_) {
    if (pipe->closed_) co_return closed();
    const bool late = co_await pipe->over_->wait_until(deadline);
    if (late) co_return too_late();
  }
  co_return base::Result<void>();
}

void Pipe::put(std::string_view bytes) {
  bytes_ += bytes;
  readable_->wake();
}

void Pipe::end() {
  ended_ = true;
  changed();
}

void Pipe::close() {
  closed_ = true;
  bytes_.clear();
  changed();
}

void Pipe::changed() {
  readable_->wake();
  writable_->wake();
  over_->wake();
}

PipeStream::~PipeStream() {
  if (from_) from_->close();
  if (to_) to_->end();
}

async::Task<std::string> PipeStream::read(base::Deadline deadline) {
  return from_ ? Pipe::read(from_, deadline) : unreadable();
}

async::Task<void> PipeStream::write(std::string bytes, base::Deadline deadline) {
  return to_ ? Pipe::write(to_, std::move(bytes), deadline) : unwritable();
}

async::Task<void> PipeStream::close_write(base::Deadline) {
  if (!to_) co_return co_await unwritable();
  to_->end();
  co_return base::Result<void>();
}

}  // namespace spillway::providers::fake
