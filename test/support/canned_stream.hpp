// A stream whose other side says what a test wrote down, at once or never, in virtual time.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::test {

class CannedStream final : public async::ByteStream {
 public:
  /// After its bytes it ends, or is silent until the reader's deadline. `sent` gets what is written, if it is set.
  CannedStream(async::Timers& timers, std::deque<std::string> bytes, bool silent = false,
               std::shared_ptr<std::string> sent = nullptr)
      : timers_(timers), bytes_(std::move(bytes)), silent_(silent), sent_(std::move(sent)) {}

  async::Task<std::string> read(base::Deadline deadline) override {
    if (!bytes_.empty()) {
      std::string next = std::move(bytes_.front());
      bytes_.pop_front();
      co_return next;
    }
    if (!silent_) co_return std::string();
    co_await timers_.sleep_until(deadline);
    co_return base::fail(base::ErrorKind::kDeadline, "nothing came in time");
  }
  async::Task<void> write(std::string bytes, base::Deadline) override {
    if (sent_) *sent_ += bytes;
    co_return base::Result<void>();
  }
  async::Task<void> close_write(base::Deadline) override { co_return base::Result<void>(); }

 private:
  async::Timers& timers_;
  std::deque<std::string> bytes_;
  bool silent_;
  std::shared_ptr<std::string> sent_;
};

}  // namespace spillway::test
