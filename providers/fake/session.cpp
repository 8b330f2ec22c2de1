#include "providers/fake/session.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "providers/fake/commands.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;

class Session final : public provider::ExecSession {
 public:
  async::ByteStream* input() override { return input_.get(); }
  async::ByteStream& output() override { return *output_; }
  async::ByteStream* errors() override { return errors_.get(); }
  async::Task<int> exit_code(base::Deadline deadline) override { return wait_for_exit(process_, code_, deadline); }
  async::Task<void> resize(provider::TerminalSize, base::Deadline) override { co_return base::Result<void>(); }

  void set_streams(async::ByteStreamPtr input, async::ByteStreamPtr output, async::ByteStreamPtr errors) {
    input_ = std::move(input);
    output_ = std::move(output);
    errors_ = std::move(errors);
  }
  /// It has ended when this has.
  void set_process(PipePtr process, int code) {
    process_ = std::move(process);
    code_ = code;
  }

 private:
  static async::Task<int> wait_for_exit(PipePtr process, int code, base::Deadline deadline) {
    if (!process) {
      co_return base::fail(ErrorKind::kUnsupported,
                           "an attach has no exit code: that of the container is in its status");
    }
    const auto ended = co_await Pipe::wait_for_end(process, deadline);
    if (!ended) co_return base::fail(ended.error());
    co_return code;
  }

  async::ByteStreamPtr input_;
  async::ByteStreamPtr output_;
  async::ByteStreamPtr errors_;
  PipePtr process_;
  int code_ = 0;
};

async::ByteStreamPtr reader_of(PipePtr pipe) { return std::make_unique<PipeStream>(std::move(pipe), nullptr); }
async::ByteStreamPtr writer_to(PipePtr pipe) { return std::make_unique<PipeStream>(nullptr, std::move(pipe)); }

/// Holds this text, and nothing more will come.
PipePtr make_text(async::Timers& timers, std::string_view text) {
  auto pipe = std::make_shared<Pipe>(timers);
  pipe->put(text);
  pipe->end();
  return pipe;
}

/// A terminal goes back to the beginning of the line by itself.
std::string for_terminal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

async::ByteStreamPtr no_errors(async::Timers& timers, bool tty) {
  return tty ? nullptr : reader_of(make_text(timers, ""));
}

class Port final : public async::ByteStream {
 public:
  Port(async::Timers& timers, std::string text) : state_(std::make_shared<State>()) {
    state_->pipe = std::make_shared<Pipe>(timers);
    state_->text = std::move(text);
  }
  ~Port() override { state_->pipe->close(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override { return Pipe::read(state_->pipe, deadline); }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    return take(state_, std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline deadline) override { return finish(state_, deadline); }

 private:
  enum class Speaks : std::uint8_t { kUnknown, kHttp, kAnything };
  struct State {
    PipePtr pipe;
    std::string text;
    Speaks speaks = Speaks::kUnknown;
    std::string request;  // as much of it as has come
  };

  static async::Task<void> take(std::shared_ptr<State> state, std::string bytes, base::Deadline deadline) {
    if (state->speaks == Speaks::kAnything) co_return co_await Pipe::write(state->pipe, std::move(bytes), deadline);
    if (state->pipe->ended()) co_return base::Result<void>();  // it has answered: nobody listens any more
    state->request += bytes;
    if (state->speaks == Speaks::kUnknown) state->speaks = language_of(state->request);
    if (state->speaks == Speaks::kAnything) {
      co_return co_await Pipe::write(state->pipe, std::exchange(state->request, std::string()), deadline);
    }
    // A head that never ends is answered, too: it is not kept.
    if (state->request.contains("\r\n\r\n") || state->request.size() > Pipe::kFullAt) answer(*state);
    co_return base::Result<void>();
  }

  static async::Task<void> finish(std::shared_ptr<State> state, base::Deadline deadline) {
    if (state->speaks == Speaks::kUnknown) {
      const auto sent = co_await Pipe::write(state->pipe, std::exchange(state->request, std::string()), deadline);
      if (!sent) co_return base::fail(sent.error());
    }
    state->pipe->end();
    co_return base::Result<void>();
  }

  static Speaks language_of(std::string_view begun) {
    constexpr std::array<std::string_view, 2> kMethods = {"GET /", "HEAD /"};
    if (std::ranges::any_of(kMethods, [&](std::string_view m) { return begun.starts_with(m); })) return Speaks::kHttp;
    const bool may_be = std::ranges::any_of(kMethods, [&](std::string_view m) { return m.starts_with(begun); });
    return may_be ? Speaks::kUnknown : Speaks::kAnything;
  }

  static void answer(State& state) {
    state.pipe->put("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " +
                    std::to_string(state.text.size()) + "\r\n\r\n");
    if (!state.request.starts_with("HEAD")) state.pipe->put(state.text);
    state.request.clear();
    state.pipe->end();
  }

  std::shared_ptr<State> state_;
};

}  // namespace

provider::ExecSessionPtr make_exec(async::Timers& timers, provider::ExecOptions options) {
  const CommandResult result = run_command(std::move(options.command));
  auto session = std::make_unique<Session>();
  PipePtr process = std::make_shared<Pipe>(timers);
  if (options.tty) {
    process->put(for_terminal(result.output + result.errors));
  } else {
    process->put(result.output);
  }
  // What it does not read is lost, as with a process that has ended.
  const PipePtr input = result.copies_input ? process : std::make_shared<Pipe>(timers);
  if (!result.copies_input || !options.stdin_open) {
    process->end();
    input->end();
  }
  session->set_streams(options.stdin_open ? writer_to(input) : nullptr, reader_of(process),
                       options.tty ? nullptr : reader_of(make_text(timers, result.errors)));
  session->set_process(std::move(process), result.exit_code);
  return session;
}

provider::ExecSessionPtr make_attach(async::Timers& timers, const provider::ExecOptions& options,
                                     async::ByteStreamPtr log) {
  auto session = std::make_unique<Session>();
  if (!options.stdin_open) {
    session->set_streams(nullptr, std::move(log), no_errors(timers, options.tty));
    return session;
  }
  const auto pipe = std::make_shared<Pipe>(timers);
  session->set_streams(writer_to(pipe), reader_of(pipe), no_errors(timers, options.tty));
  return session;
}

async::ByteStreamPtr make_port(async::Timers& timers, std::string text) {
  return std::make_unique<Port>(timers, std::move(text));
}

}  // namespace spillway::providers::fake
