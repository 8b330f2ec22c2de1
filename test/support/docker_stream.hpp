// The stream of a process on an engine in memory: it gives what a test put there, in virtual time.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::test {

/// Shared by the test and the stream that it hands out.
struct DockerStreamScript {
  explicit DockerStreamScript(async::Timers& timers) : timers(timers), more(timers.make_waiter()) {}

  void give(std::string bytes) {
    pieces.emplace_back(std::move(bytes));
    more->wake();
  }
  void give_error(base::Error error) {
    pieces.emplace_back(base::fail(std::move(error)));
    more->wake();
  }
  /// An empty piece ends it.
  void give_end() { give(""); }

  async::Timers& timers;
  std::unique_ptr<async::Waiter> more;
  std::deque<base::Result<std::string>> pieces;
  std::string written;
  bool write_closed = false;
  bool destroyed = false;
  int reads = 0;
};

class DockerModelStream final : public async::ByteStream {
 public:
  explicit DockerModelStream(std::shared_ptr<DockerStreamScript> script) : script_(std::move(script)) {}
  ~DockerModelStream() override {
    script_->destroyed = true;
    script_->give_error(base::Error(base::ErrorKind::kUnavailable, "closed"));
  }
  DockerModelStream(const DockerModelStream&) = delete;
  DockerModelStream& operator=(const DockerModelStream&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override { return read_from(script_, deadline); }
  async::Task<void> write(std::string bytes, base::Deadline) override {
    script_->written += bytes;
    co_return base::Result<void>();
  }
  async::Task<void> close_write(base::Deadline) override {
    script_->write_closed = true;
    co_return base::Result<void>();
  }

 private:
  static async::Task<std::string> read_from(std::shared_ptr<DockerStreamScript> script, base::Deadline deadline) {
    ++script->reads;
    while (script->pieces.empty()) {
      const bool late = co_await script->more->wait_until(deadline);
      if (late) co_return base::fail(base::ErrorKind::kDeadline, "nothing came in time");
    }
    auto piece = std::move(script->pieces.front());
    script->pieces.pop_front();
    co_return piece;
  }

  std::shared_ptr<DockerStreamScript> script_;
};

}  // namespace spillway::test
