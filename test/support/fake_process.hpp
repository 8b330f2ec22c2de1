// A process in memory behind provider::ExecSession: a test plays the process, in virtual time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/async/pipe.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::test {

/// Shared by the test and the session that it hands out.
struct FakeProcess {
  explicit FakeProcess(async::Timers& t, size_t capacity = 64 * 1024)
      : timers(t),
        input(std::make_shared<async::Pipe>(t, capacity)),
        output(std::make_shared<async::Pipe>(t, capacity)),
        errors(std::make_shared<async::Pipe>(t, capacity)),
        exited(std::make_shared<async::Pipe>(t, 1)) {}

  /// Says its last, and what exit_code() is to answer.
  void exit(base::Result<int> code) {
    outcome = std::move(code);
    output->end();
    errors->end();
    exited->end();
  }

  async::Timers& timers;
  async::PipePtr input;  // what the process reads
  async::PipePtr output;
  async::PipePtr errors;
  async::PipePtr exited;
  base::Result<int> outcome = 0;
  std::vector<provider::TerminalSize> sizes;
  bool closed = false;  // the session has died
};
using FakeProcessPtr = std::shared_ptr<FakeProcess>;

class FakeExecSession final : public provider::ExecSession {
 public:
  FakeExecSession(FakeProcessPtr process, const provider::ExecOptions& options) : process_(std::move(process)) {
    if (options.stdin_open) input_ = std::make_unique<Writer>(process_->input);
    output_ = std::make_unique<Reader>(process_->output);
    if (!options.tty) errors_ = std::make_unique<Reader>(process_->errors);
  }
  ~FakeExecSession() override {
    process_->closed = true;
    process_->input->end();
  }
  FakeExecSession(const FakeExecSession&) = delete;
  FakeExecSession& operator=(const FakeExecSession&) = delete;

  async::ByteStream* input() override { return input_.get(); }
  async::ByteStream& output() override { return *output_; }
  async::ByteStream* errors() override { return errors_.get(); }
  async::Task<int> exit_code(base::Deadline deadline) override { return wait_for_exit(process_, deadline); }
  async::Task<void> resize(provider::TerminalSize size, base::Deadline) override {
    process_->sizes.push_back(size);
    co_return base::Result<void>();
  }

 private:
  class Reader final : public async::ByteStream {
   public:
    explicit Reader(async::PipePtr pipe) : pipe_(std::move(pipe)) {}
    async::Task<std::string> read(base::Deadline deadline) override { return async::Pipe::read(pipe_, deadline); }
    async::Task<void> write(std::string, base::Deadline) override { co_return unsupported(); }
    async::Task<void> close_write(base::Deadline) override { co_return unsupported(); }

   private:
    async::PipePtr pipe_;
  };
  class Writer final : public async::ByteStream {
   public:
    explicit Writer(async::PipePtr pipe) : pipe_(std::move(pipe)) {}
    async::Task<std::string> read(base::Deadline) override { co_return unsupported(); }
    async::Task<void> write(std::string bytes, base::Deadline deadline) override {
      return write_to(pipe_, std::move(bytes), deadline);
    }
    async::Task<void> close_write(base::Deadline) override {
      pipe_->end();
      co_return base::Result<void>();
    }

   private:
    static async::Task<void> write_to(async::PipePtr pipe, std::string bytes, base::Deadline deadline) {
      if (pipe->reader_closed()) co_return base::fail(base::ErrorKind::kUnavailable, "the process does not read");
      pipe->put(bytes);
      co_await async::Pipe::wait_for_room(pipe, deadline);
      co_return base::Result<void>();
    }
    async::PipePtr pipe_;
  };

  static std::unexpected<base::Error> unsupported() {
    return base::fail(base::ErrorKind::kUnsupported, "this stream has one direction");
  }
  static async::Task<int> wait_for_exit(FakeProcessPtr process, base::Deadline deadline) {
    auto ended = co_await async::Pipe::read(process->exited, deadline);
    if (!ended) co_return base::fail(std::move(ended.error()));
    co_return process->outcome;
  }

  FakeProcessPtr process_;
  async::ByteStreamPtr input_;
  async::ByteStreamPtr output_;
  async::ByteStreamPtr errors_;
};

}  // namespace spillway::test
