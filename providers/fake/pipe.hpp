// Bytes on their way from one coroutine to another: what the processes and ports of the toy are made of.
//
// A Pipe is owned by shared_ptr, by its two ends; reactor thread only. One coroutine reads at a time, and one writes.
// It holds at most kFullAt bytes: then the writer waits for the reader.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::providers::fake {

class Pipe {
 public:
  static constexpr size_t kFullAt = 64 * 1024;

  explicit Pipe(async::Timers& timers);

  /// As ByteStream has them. A write to a pipe that has ended is kConflict.
  static async::Task<std::string> read(std::shared_ptr<Pipe> pipe, base::Deadline deadline);
  static async::Task<void> write(std::shared_ptr<Pipe> pipe, std::string bytes, base::Deadline deadline);
  /// Returns once nothing more will be written; kDeadline if it takes longer.
  static async::Task<void> wait_for_end(std::shared_ptr<Pipe> pipe, base::Deadline deadline);
  /// Adds what is there from the beginning, however much it is.
  void put(std::string_view bytes);
  /// Nothing more will be written; what is in it is still read.
  void end();
  /// Nobody reads any more: whoever waits is told, with kCancelled.
  void close();
  bool ended() const { return ended_; }

 private:
  void changed();

  std::string bytes_;
  bool ended_ = false;
  bool closed_ = false;
  std::unique_ptr<async::Waiter> readable_;
  std::unique_ptr<async::Waiter> writable_;
  std::unique_ptr<async::Waiter> over_;
};
using PipePtr = std::shared_ptr<Pipe>;

/// Reads from one pipe and writes to another; a null one is kUnsupported. Its death ends what it writes to, and closes
/// what it reads from.
class PipeStream final : public async::ByteStream {
 public:
  PipeStream(PipePtr from, PipePtr to) : from_(std::move(from)), to_(std::move(to)) {}
  ~PipeStream() override;
  PipeStream(const PipeStream&) = delete;
  PipeStream& operator=(const PipeStream&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  PipePtr from_;
  PipePtr to_;
};

}  // namespace spillway::providers::fake
