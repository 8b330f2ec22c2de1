#include "providers/docker/exec_session.hpp"

#include <algorithm>

#include "vk-provider/net/url.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;

// Until a process that has said its last is known to have ended, or one that is being started has begun.
constexpr base::Duration kFirstPause = milliseconds(5);
constexpr base::Duration kLongestPause = milliseconds(250);

/// One of the two outputs.
class OutputStream final : public async::ByteStream {
 public:
  OutputStream(ExecWirePtr wire, Channel channel) : wire_(std::move(wire)), channel_(channel) {}
  async::Task<std::string> read(base::Deadline deadline) override { return ExecWire::read(wire_, channel_, deadline); }
  async::Task<void> write(std::string, base::Deadline) override { co_return refused(); }
  async::Task<void> close_write(base::Deadline) override { co_return refused(); }

 private:
  static std::unexpected<base::Error> refused() {
    return base::fail(ErrorKind::kUnsupported, "the output of a process cannot be written to");
  }

  ExecWirePtr wire_;
  Channel channel_;
};

class InputStream final : public async::ByteStream {
 public:
  explicit InputStream(ExecWirePtr wire) : wire_(std::move(wire)) {}
  async::Task<std::string> read(base::Deadline) override {
    co_return base::fail(ErrorKind::kUnsupported, "the input of a process cannot be read");
  }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    return ExecWire::write(wire_, std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline deadline) override { return ExecWire::close_write(wire_, deadline); }

 private:
  ExecWirePtr wire_;
};

base::Duration next_pause(base::Duration pause) { return std::min(pause * 2, kLongestPause); }

}  // namespace

struct DockerExecSession::Subject {
  EngineClient& client;
  async::Timers& timers;
  Kind kind;
  std::string id;
  bool ended = false;
  std::uint64_t sizes = 0;  // that were asked for; only the last one counts

  std::string path() const { return (kind == Kind::kExec ? "/exec/" : "/containers/") + net::encode_path_segment(id); }
};

DockerExecSession::DockerExecSession(EngineClient& client, async::Timers& timers, Kind kind, std::string id,
                                     ExecWirePtr wire, const provider::ExecOptions& options,
                                     std::function<void(const std::string&)> left)
    : subject_(std::make_shared<Subject>(Subject{client, timers, kind, std::move(id), false, 0})),
      wire_(std::move(wire)),
      output_(std::make_unique<OutputStream>(wire_, Channel::kOutput)),
      left_(std::move(left)) {
  if (options.stdin_open) input_ = std::make_unique<InputStream>(wire_);
  if (!options.tty) errors_ = std::make_unique<OutputStream>(wire_, Channel::kErrors);
}

DockerExecSession::~DockerExecSession() {
  wire_->close();
  if (left_ && !subject_->ended) left_(subject_->id);
}

async::Task<int> DockerExecSession::exit_code(base::Deadline deadline) { return wait_for_exit(subject_, deadline); }

async::Task<int> DockerExecSession::wait_for_exit(std::shared_ptr<Subject> subject, base::Deadline deadline) {
  if (subject->kind == Kind::kAttach) {
    co_return base::fail(ErrorKind::kUnsupported, "an attach has no exit code: that of the container is in its status");
  }
  for (base::Duration pause = kFirstPause;; pause = next_pause(pause)) {
    const auto state = co_await subject->client.inspect_exec(subject->id, deadline);
    if (!state) co_return base::fail(state.error());
    subject->ended = state->ended();
    if (subject->ended) co_return *state->exit_code;
    const base::TimePoint next = subject->timers.now() + pause;
    if (next >= deadline) co_return base::fail(ErrorKind::kDeadline, "the process did not end in time");
    co_await subject->timers.sleep_until(next);
  }
}

async::Task<void> DockerExecSession::resize(provider::TerminalSize size, base::Deadline deadline) {
  return set_size(subject_, size, deadline);
}

/// Engines refuse it (404, 409 or 500) before the process has begun and after it has ended.
async::Task<void> DockerExecSession::set_size(std::shared_ptr<Subject> subject, provider::TerminalSize size,
                                              base::Deadline deadline) {
  if (size.columns <= 0 || size.rows <= 0) co_return base::Result<void>();
  const std::uint64_t number = ++subject->sizes;
  for (base::Duration pause = kFirstPause;; pause = next_pause(pause)) {
    const auto answer = co_await subject->client.resize(subject->path(), size, deadline);
    if (!answer) co_return base::fail(answer.error());
    if (answer->ok() || subject->sizes != number || subject->kind == Kind::kAttach) co_return base::Result<void>();
    const auto state = co_await subject->client.inspect_exec(subject->id, deadline);
    if (!state && state.error().kind != ErrorKind::kNotFound) co_return base::fail(state.error());
    if (!state || state->ended() || subject->sizes != number) co_return base::Result<void>();
    const base::TimePoint next = subject->timers.now() + pause;
    if (next >= deadline) co_return base::fail(ErrorKind::kDeadline, "the terminal took no size: " + answer->text);
    co_await subject->timers.sleep_until(next);
  }
}

}  // namespace spillway::providers::docker
