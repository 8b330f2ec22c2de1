// Processes in containers of a real engine, and connections to their ports: docker_fixture.hpp with a pod to enter.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <sys/resource.h>

#include "test/integration/docker_fixture.hpp"
#include "vk-provider/async/task_group.hpp"

namespace spillway::test {

struct Finished {
  std::string output;
  std::string errors;
  base::Result<int> exit_code = 0;
};

inline boost::asio::awaitable<base::Result<std::string>> read_all(async::ByteStream& stream, base::Deadline deadline) {
  std::string all;
  for (;;) {
    auto piece = co_await stream.read(deadline);
    if (!piece || piece->empty()) {
      if (!piece) co_return base::fail(std::move(piece.error()));
      co_return all;
    }
    all += *piece;
  }
}

inline async::Loop read_into(async::ByteStream& stream, base::Deadline deadline,
                             std::optional<base::Result<std::string>>& out) {
  out.emplace(co_await read_all(stream, deadline));
}

/// The n-th of bytes that are not the same anywhere near.
inline char pattern(size_t n) { return static_cast<char>((n * 2654435761U) >> 13U); }

inline async::Loop write_pattern(async::ByteStream& stream, size_t size, base::Deadline deadline, bool& ok) {
  for (size_t at = 0; at < size;) {
    std::string piece(std::min<size_t>(100'000, size - at), '\0');
    for (char& c : piece) c = pattern(at++);
    const auto done = co_await stream.write(std::move(piece), deadline);
    if (!done) co_return;
  }
  const auto closed = co_await stream.close_write(deadline);
  ok = closed.has_value();
}

/// How many bytes of the pattern came, and then an end. Keeps none of them.
inline boost::asio::awaitable<base::Result<size_t>> check_pattern(async::ByteStream& stream, base::Deadline deadline) {
  for (size_t at = 0;;) {
    const auto piece = co_await stream.read(deadline);
    if (!piece) co_return base::fail(piece.error());
    if (piece->empty()) co_return at;
    for (const char c : *piece) {
      if (c != pattern(at++))
        co_return base::fail(base::ErrorKind::kInvalid, "byte " + std::to_string(at) + " is wrong");
    }
  }
}

/// Bytes that this process ever had in memory at once.
inline size_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

class ExecFixture : public DockerFixture {
 public:
  ExecFixture() : group(reactor.ctx.get_executor()) {}
  ~ExecFixture() {
    reactor.run(group.stop());
    if (!pod_ref.id.empty()) end(pod_ref);
  }

  void start_pod(const std::string& tag, model::ResolvedPod pod = lasting_pod()) {
    const auto bought = create(placement(tag), std::move(pod));
    if (!bought) throw std::runtime_error(bought.error().message);
    pod_ref = bought->ref;
    get_running(pod_ref);
  }

  static provider::ExecOptions shell(std::string script) {
    provider::ExecOptions options;
    options.container = "main";
    options.command = {"sh", "-c", std::move(script)};
    return options;
  }
  base::Result<provider::ExecSessionPtr> open(provider::ExecOptions options) {
    return reactor.run(daemon->open_exec(pod_ref, std::move(options), soon()));
  }
  Finished finish(provider::ExecSession& session) {
    std::optional<base::Result<std::string>> output;
    std::optional<base::Result<std::string>> errors;
    group.spawn(read_into(session.output(), soon(), output));
    if (session.errors() != nullptr) group.spawn(read_into(*session.errors(), soon(), errors));
    reactor.run_until([&] { return output && (errors || session.errors() == nullptr); });
    Finished finished;
    finished.output = output->value_or("(" + (*output ? "" : output->error().message) + ")");
    if (errors) finished.errors = errors->value_or("(failed)");
    finished.exit_code = reactor.run(session.exit_code(soon()));
    return finished;
  }
  Finished run_shell(std::string script) {
    auto session = open(shell(std::move(script)));
    if (!session) throw std::runtime_error(session.error().message);
    return finish(**session);
  }

  /// Sends so many bytes of the pattern to a process that copies them, and looks at what comes back.
  void check_copied(async::ByteStream& to, async::ByteStream& from, size_t size) {
    bool written = false;
    group.spawn(write_pattern(to, size, soon(), written));
    const auto came = reactor.run(check_pattern(from, soon()));
    REQUIRE(came);
    CHECK(*came == size);
    CHECK(written);
  }

  /// Until the words have come; what follows them in the same piece is lost.
  bool read_until(async::ByteStream& stream, const std::string& words) {
    std::string all;
    while (!says(all, words)) {
      const auto piece = reactor.run(stream.read(soon()));
      if (!piece || piece->empty()) return false;
      all += *piece;
    }
    return true;
  }

  base::Result<async::ByteStreamPtr> dial(int port) { return reactor.run(daemon->dial(pod_ref, port, soon())); }
  /// Repeats while nothing listens.
  async::ByteStreamPtr dial_soon(int port) {
    for (int i = 0; i < 100; ++i) {
      auto stream = dial(port);
      if (stream) return std::move(*stream);
      if (stream.error().kind != base::ErrorKind::kConflict) throw std::runtime_error(stream.error().message);
      reactor.run(reactor.timers.sleep_for(std::chrono::milliseconds(50)));
    }
    throw std::runtime_error("nothing listens on port " + std::to_string(port));
  }

  async::TaskGroup group;
  model::InstanceRef pod_ref;
};

}  // namespace spillway::test
