// Processes that join a container of an instance, and connections to its ports.
#include <algorithm>

#include "providers/docker/host.hpp"
#include "providers/docker/relay.hpp"
#include "providers/docker/sandbox_image.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

// The engine waits by itself until a process has begun; a terminal without a size is no reason to give up.
constexpr base::Duration kFirstSizeTime = std::chrono::seconds(5);
// So many processes of one probe may hang in a container.
constexpr size_t kMostLeft = 5;

}  // namespace

async::Task<provider::ExecSessionPtr> Host::open_exec(std::string tag, provider::ExecOptions options,
                                                      base::Deadline deadline) {
  const std::string name = container_name(tag, options.container);
  if (options.command.empty()) co_return co_await attach(tag, name, std::move(options), deadline);
  if (options.repeated) {
    auto may_begin = co_await check_left(name, options.command, deadline);
    if (!may_begin) co_return base::fail(std::move(may_begin.error()));
  }
  auto body = encode_exec(options);
  if (!body) co_return base::fail(std::move(body.error()));
  auto id = co_await client_.create_exec(name, std::move(*body), deadline);
  if (!id && id.error().kind == ErrorKind::kNotFound) {
    const auto facts = co_await find_container(tag, options.container, deadline);
    if (!facts) co_return base::fail(facts.error());
  }
  if (!id) co_return base::fail(std::move(id.error()));
  const bool raw = options.tty;
  auto stream = co_await client_.start_exec(*id, raw, options.stdin_open, deadline);
  if (!stream) {
    if (options.repeated) left_execs_[{name, options.command}].insert(*id);
    co_return base::fail(std::move(stream.error()));
  }
  co_return co_await begin_session(DockerExecSession::Kind::kExec, name, std::move(*id), std::move(*stream), raw,
                                   std::move(options), deadline);
}

/// A probe whose command never ends would fill its container with processes.
async::Task<void> Host::check_left(std::string container, std::vector<std::string> command, base::Deadline deadline) {
  const auto key = std::pair(std::move(container), std::move(command));
  const auto left = left_execs_.find(key);
  if (left == left_execs_.end() || left->second.size() < kMostLeft) co_return base::Result<void>();
  const std::set<std::string> ids = left->second;
  for (const std::string& id : ids) {
    const auto state = co_await client_.inspect_exec(id, deadline);
    if (!state && state.error().kind != ErrorKind::kNotFound) co_return base::fail(state.error());
    if (state && state->running) continue;
    left_execs_[key].erase(id);
    co_return base::Result<void>();
  }
  co_return base::fail(ErrorKind::kDeadline,
                       std::to_string(kMostLeft) + " earlier runs of the command have not ended yet");
}

async::Task<provider::ExecSessionPtr> Host::attach(std::string tag, std::string name, provider::ExecOptions options,
                                                   base::Deadline deadline) {
  const auto facts = co_await find_container(tag, options.container, deadline);
  if (!facts) co_return base::fail(facts.error());
  if (!facts->running()) {
    co_return base::fail(ErrorKind::kConflict, "docker host " + config_.name + ": container " + options.container +
                                                   " of instance " + tag + " is not running");
  }
  auto stream = co_await client_.attach(facts->id, options.stdin_open, deadline);
  if (!stream) co_return base::fail(std::move(stream.error()));
  co_return co_await begin_session(DockerExecSession::Kind::kAttach, name, facts->id, std::move(*stream), facts->tty,
                                   std::move(options), deadline);
}

/// `raw`: the process has a terminal, whether the caller asked for one or not.
async::Task<provider::ExecSessionPtr> Host::begin_session(DockerExecSession::Kind kind, std::string container,
                                                          std::string id, async::ByteStreamPtr stream, bool raw,
                                                          provider::ExecOptions options, base::Deadline deadline) {
  const auto wire = std::make_shared<ExecWire>(std::move(stream), *context_.timers,
                                               raw ? ExecWire::Framing::kRaw : ExecWire::Framing::kFrames,
                                               options.tty ? ExecWire::Errors::kWithOutput : ExecWire::Errors::kApart);
  std::function<void(const std::string&)> left;
  if (options.repeated) {
    left = [this, key = std::pair(std::move(container), options.command)](const std::string& exec) {
      left_execs_[key].insert(exec);
    };
  }
  auto session = std::make_unique<DockerExecSession>(client_, *context_.timers, kind, std::move(id), wire, options,
                                                     std::move(left));
  if (options.tty && options.size) {
    static_cast<void>(co_await session->resize(*options.size, std::min(deadline, in(kFirstSizeTime))));
  }
  co_return provider::ExecSessionPtr(std::move(session));
}

async::Task<async::ByteStreamPtr> Host::dial(std::string tag, int port, base::Deadline deadline) {
  const std::string peer = "port " + std::to_string(port) + " of instance " + tag;
  if (port <= 0 || port > 65535) co_return base::fail(ErrorKind::kInvalid, peer + ": there is no such port");
  provider::ExecOptions options;
  options.command = {std::string(kSandboxRelay), std::to_string(port)};
  options.stdin_open = true;
  auto id = co_await client_.create_exec(tag, *encode_exec(options), deadline);
  if (!id) co_return base::fail(std::move(id.error()));
  auto stream = co_await client_.start_exec(std::move(*id), /*tty=*/false, /*writes=*/true, deadline);
  if (!stream) co_return base::fail(std::move(stream.error()));
  const auto wire = std::make_shared<ExecWire>(std::move(*stream), *context_.timers, ExecWire::Framing::kFrames,
                                               ExecWire::Errors::kNowhere);
  const auto first = co_await ExecWire::read(wire, Channel::kOutput, deadline);
  // The engine has answered: what is wrong from here on is wrong in the pod, and no outage of the host.
  const auto refused = [&peer](std::string_view why) {
    return base::fail(ErrorKind::kConflict, peer + " cannot be connected to: " + std::string(why));
  };
  if (!first && first.error().kind != ErrorKind::kDeadline) co_return base::fail(first.error());
  if (!first) co_return refused("it did not answer in time");
  if (first->empty()) co_return refused("its sandbox has ended");
  if (first->front() == '\0') {
    co_return std::make_unique<RelayStream>(wire, peer, std::string_view(*first).substr(1));
  }
  // The relay says one byte. More are the engine's: it could not start the relay.
  if (first->size() > 1) co_return refused("its sandbox does not run the relay: " + *first);
  co_return refused(relay_failure(static_cast<unsigned char>(first->front())));
}

}  // namespace spillway::providers::docker
