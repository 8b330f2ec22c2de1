// A connection in memory: two byte streams, each of which reads what the other one writes, in virtual time.
//
// As with a socket, a writer waits when the reader does not read, and reading ends when the other side has died.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/pipe.hpp"

namespace spillway::test {

class DuplexEnd final : public async::ByteStream {
 public:
  DuplexEnd(async::PipePtr from, async::PipePtr to) : from_(std::move(from)), to_(std::move(to)) {}
  ~DuplexEnd() override {
    from_->close_reader();
    to_->end();
  }
  DuplexEnd(const DuplexEnd&) = delete;
  DuplexEnd& operator=(const DuplexEnd&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override { return async::Pipe::read(from_, deadline); }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    return write_to(to_, std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline) override {
    to_->end();
    co_return base::Result<void>();
  }

 private:
  static async::Task<void> write_to(async::PipePtr to, std::string bytes, base::Deadline deadline) {
    constexpr size_t kPiece = 4096;
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const bool room = co_await async::Pipe::wait_for_room(to, deadline);
      if (!room) co_return base::fail(base::ErrorKind::kDeadline, "the peer does not read");
      if (to->reader_closed()) co_return base::fail(base::ErrorKind::kUnavailable, "the peer is gone");
      to->put(std::string_view(bytes).substr(at, kPiece));
    }
    co_return base::Result<void>();
  }

  async::PipePtr from_;
  async::PipePtr to_;
};

/// `capacity`: bytes on their way in each direction.
inline std::pair<async::ByteStreamPtr, async::ByteStreamPtr> make_duplex(async::Timers& timers,
                                                                         size_t capacity = 64 * 1024) {
  const auto there = std::make_shared<async::Pipe>(timers, capacity);
  const auto back = std::make_shared<async::Pipe>(timers, capacity);
  return {std::make_unique<DuplexEnd>(back, there), std::make_unique<DuplexEnd>(there, back)};
}

}  // namespace spillway::test
