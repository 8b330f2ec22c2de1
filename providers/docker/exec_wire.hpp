// The connection of an exec or attach, and the outputs that share it.
//
// Owned by shared_ptr: by the session, and by coroutines that read. Reactor thread only. Whoever reads takes bytes off
// the connection, also those of the other output, which are kept for its reader; when they are kFullAt, nothing more is
// taken until they are read. So nothing grows, and a process that nobody reads from stands still.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "providers/docker/frames.hpp"
#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::providers::docker {

class ExecWire {
 public:
  static constexpr size_t kFullAt = 64 * 1024;

  /// Of what the connection carries: frames, or with a terminal the bytes themselves.
  enum class Framing : std::uint8_t { kFrames, kRaw };
  /// Where standard error goes.
  enum class Errors : std::uint8_t { kApart, kWithOutput, kNowhere };

  ExecWire(async::ByteStreamPtr stream, async::Timers& timers, Framing framing, Errors errors)
      : stream_(std::move(stream)), timers_(timers), framing_(framing), errors_(errors) {}

  /// As ByteStream::read. A deadline that passes while the connection is silent ends the connection.
  static async::Task<std::string> read(std::shared_ptr<ExecWire> wire, Channel channel, base::Deadline deadline);
  static async::Task<void> write(std::shared_ptr<ExecWire> wire, std::string bytes, base::Deadline deadline);
  static async::Task<void> close_write(std::shared_ptr<ExecWire> wire, base::Deadline deadline);
  /// Closes the connection; who still waits is told.
  void close();

 private:
  std::string& text(Channel channel) { return texts_[static_cast<size_t>(channel)]; }
  bool may_take(Channel reader);
  static boost::asio::awaitable<void> take(std::shared_ptr<ExecWire> wire, base::Deadline deadline);
  void took(const base::Result<std::string>& bytes);
  /// Until something has changed; false if the deadline came first.
  static boost::asio::awaitable<bool> wait(std::shared_ptr<ExecWire> wire, base::Deadline deadline);
  void changed();

  async::ByteStreamPtr stream_;
  async::Timers& timers_;
  Framing framing_;
  Errors errors_;
  FrameSplitter splitter_;
  std::array<std::string, 2> texts_;
  bool taking_ = false;
  bool ended_ = false;
  std::optional<base::Error> failed_;
  std::vector<async::Waiter*> waiting_;
};
using ExecWirePtr = std::shared_ptr<ExecWire>;

}  // namespace spillway::providers::docker
