// Processes in containers and connections to ports, through a real engine.
#include <algorithm>

#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "test/integration/docker_fixture.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace async = spillway::async;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace provider = spillway::provider;
using base::ErrorKind;
using boost::asio::awaitable;

namespace {

struct Finished {
  std::string output;
  std::string errors;
  base::Result<int> exit_code = 0;
};

awaitable<base::Result<std::string>> read_all(async::ByteStream& stream, base::Deadline deadline) {
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

async::Loop read_into(async::ByteStream& stream, base::Deadline deadline,
                      std::optional<base::Result<std::string>>& out) {
  out.emplace(co_await read_all(stream, deadline));
}

/// The n-th of bytes that are not the same anywhere near.
char pattern(size_t n) { return static_cast<char>((n * 2654435761U) >> 13U); }

async::Loop write_pattern(async::ByteStream& stream, size_t size, base::Deadline deadline, bool& ok) {
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
awaitable<base::Result<size_t>> check_pattern(async::ByteStream& stream, base::Deadline deadline) {
  for (size_t at = 0;;) {
    const auto piece = co_await stream.read(deadline);
    if (!piece) co_return base::fail(piece.error());
    if (piece->empty()) co_return at;
    for (const char c : *piece) {
      if (c != pattern(at++)) co_return base::fail(ErrorKind::kInvalid, "byte " + std::to_string(at) + " is wrong");
    }
  }
}

/// Bytes that this process ever had in memory at once.
size_t peak_memory() {
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

  base::Result<async::ByteStreamPtr> dial(int port) { return reactor.run(daemon->dial(pod_ref, port, soon())); }
  /// Repeats while nothing listens.
  async::ByteStreamPtr dial_soon(int port) {
    for (int i = 0; i < 100; ++i) {
      auto stream = dial(port);
      if (stream) return std::move(*stream);
      if (stream.error().kind != ErrorKind::kConflict) throw std::runtime_error(stream.error().message);
      reactor.run(reactor.timers.sleep_for(50ms));
    }
    throw std::runtime_error("nothing listens on port " + std::to_string(port));
  }

  async::TaskGroup group;
  model::InstanceRef pod_ref;
};

}  // namespace

TEST_CASE_METHOD(ExecFixture, "docker exec: outputs are apart and the exit code is told", "[docker]") {
  start_pod("spw-it-exec-1");
  const Finished finished = run_shell("echo out; echo err >&2; exit 7");
  CHECK(finished.output == "out\n");
  CHECK(finished.errors == "err\n");
  CHECK(finished.exit_code == 7);
  CHECK(run_shell("true").exit_code == 0);
  CHECK(run_shell("kill -9 $$").exit_code == 137);

  provider::ExecOptions nothing = shell("");
  nothing.command = {"/no/such/program"};
  auto session = open(nothing);
  REQUIRE(session);
  const Finished failed = finish(**session);
  CHECK(says(failed.output, "/no/such/program"));
  REQUIRE(failed.exit_code);
  CHECK((*failed.exit_code == 126 || *failed.exit_code == 127));
}

TEST_CASE_METHOD(ExecFixture, "docker exec: 20 MB go in and come back, and are kept nowhere", "[docker]") {
  constexpr size_t kSize = 20'000'000;
  start_pod("spw-it-exec-2");
  provider::ExecOptions cat = shell("cat; echo done >&2");
  cat.stdin_open = true;
  auto session = open(cat);
  REQUIRE(session);
  const size_t before = peak_memory();
  bool written = false;
  group.spawn(write_pattern(*(*session)->input(), kSize, soon(), written));
  const auto came = reactor.run(check_pattern((*session)->output(), soon()));
  REQUIRE(came);
  CHECK(*came == kSize);
  CHECK(written);
  CHECK(peak_memory() - before < 8'000'000);
  CHECK(finish(**session).errors == "done\n");
}

TEST_CASE_METHOD(ExecFixture, "docker exec: an output that nobody reads holds up the process, not our memory",
                 "[docker]") {
  start_pod("spw-it-exec-3");
  auto session = open(shell("head -c 5000000 /dev/zero >&2; echo done"));
  REQUIRE(session);
  const auto early = reactor.run((*session)->output().read(reactor.timers.now() + 300ms));
  REQUIRE_FALSE(early);
  CHECK(early.error().kind == ErrorKind::kDeadline);
  const Finished finished = finish(**session);
  CHECK(finished.output == "done\n");
  CHECK(finished.errors == std::string(5'000'000, '\0'));
  CHECK(finished.exit_code == 0);
}

TEST_CASE_METHOD(ExecFixture, "docker exec: a terminal has its size, and a new one later", "[docker]") {
  start_pod("spw-it-exec-4");
  // It says its size, waits for one line, and says it again.
  provider::ExecOptions options = shell("stty size; read x; stty size");
  options.stdin_open = true;
  options.tty = true;
  options.size = provider::TerminalSize();
  options.size->columns = 123;
  options.size->rows = 45;
  auto session = open(options);
  REQUIRE(session);
  CHECK((*session)->errors() == nullptr);
  provider::TerminalSize size;
  size.columns = 99;
  size.rows = 11;
  std::string output;
  while (!output.contains('\n')) {
    const auto piece = reactor.run((*session)->output().read(soon()));
    REQUIRE(piece);
    REQUIRE_FALSE(piece->empty());
    output += *piece;
  }
  REQUIRE(reactor.run((*session)->resize(size, soon())));
  REQUIRE(reactor.run((*session)->input()->write("go\r", soon())));
  const Finished finished = finish(**session);
  CHECK(says(output + finished.output, "11 99"));
  CHECK(finished.exit_code == 0);
  CHECK(reactor.run((*session)->resize(size, soon())));  // it has ended, and nobody minds
}

TEST_CASE_METHOD(ExecFixture, "docker exec: a command that hangs ends with its deadline", "[docker]") {
  start_pod("spw-it-exec-5");
  auto session = open(shell("sleep 60"));
  REQUIRE(session);
  const auto code = reactor.run((*session)->exit_code(reactor.timers.now() + 200ms));
  REQUIRE_FALSE(code);
  CHECK(code.error().kind == ErrorKind::kDeadline);
  const auto output = reactor.run((*session)->output().read(reactor.timers.now() + 200ms));
  REQUIRE_FALSE(output);
  CHECK(output.error().kind == ErrorKind::kDeadline);
}

TEST_CASE_METHOD(ExecFixture, "docker exec: a container that is not there, and one that does not run", "[docker]") {
  start_pod("spw-it-exec-6", pod("exec httpd -f -p 127.0.0.1:8080"));
  provider::ExecOptions other = shell("true");
  other.container = "other";
  const auto missing = open(other);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::kNotFound);
  REQUIRE(reactor.run(daemon->control_container(pod_ref, "main", provider::ContainerAction::kStop, 0s, soon())));
  get_exited(pod_ref);
  for (provider::ExecOptions options : {shell("true"), provider::ExecOptions()}) {
    options.container = "main";
    const auto stopped = open(options);
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().kind == ErrorKind::kConflict);
    CHECK(says(stopped.error().message, "not running"));
  }
  const auto refused = dial(8080);
  REQUIRE_FALSE(refused);
  CHECK(says(refused.error().message, "nothing listens on it"));
}

TEST_CASE_METHOD(ExecFixture, "docker attach: the output of the container itself, from then on", "[docker]") {
  start_pod("spw-it-attach-1", pod("trap 'exit 3' TERM; while :; do echo tick; echo tock >&2; sleep 0.1; done"));
  provider::ExecOptions options;
  options.container = "main";
  auto session = open(options);
  REQUIRE(session);
  const auto output = reactor.run((*session)->output().read(soon()));
  REQUIRE(output);
  CHECK(output->starts_with("tick\n"));
  const auto errors = reactor.run((*session)->errors()->read(soon()));
  REQUIRE(errors);
  CHECK(errors->starts_with("tock\n"));
  CHECK(reactor.run((*session)->exit_code(soon())).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(ExecFixture, "docker dial: a port that listens on 127.0.0.1 alone", "[docker]") {
  start_pod("spw-it-dial-1", pod("echo hello > /tmp/index.html; exec httpd -f -p 127.0.0.1:8080 -h /tmp"));
  const auto stream = dial_soon(8080);
  REQUIRE(reactor.run(stream->write("GET /index.html HTTP/1.0\r\n\r\n", soon())));
  const auto answer = reactor.run(read_all(*stream, soon()));
  REQUIRE(answer);
  CHECK(answer->starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer->ends_with("hello\n"));
}

TEST_CASE_METHOD(ExecFixture, "docker dial: 20 MB go both ways, and each half ends by itself", "[docker]") {
  constexpr size_t kSize = 20'000'000;
  start_pod("spw-it-dial-3", pod("exec nc -ll -p 8082 -e cat"));
  const auto stream = dial_soon(8082);
  const size_t before = peak_memory();
  bool written = false;
  group.spawn(write_pattern(*stream, kSize, soon(), written));
  const auto came = reactor.run(check_pattern(*stream, soon()));
  REQUIRE(came);
  CHECK(*came == kSize);
  CHECK(written);
  CHECK(peak_memory() - before < 8'000'000);
}

TEST_CASE_METHOD(ExecFixture, "docker dial: refusals and impossible ports", "[docker]") {
  start_pod("spw-it-dial-4");
  const auto refused = dial(1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kConflict);
  CHECK(refused.error().message == "port 1 of instance spw-it-dial-4 cannot be connected to: nothing listens on it");
  CHECK(dial(0).error().kind == ErrorKind::kInvalid);
  CHECK(dial(70000).error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(ExecFixture, "docker dial: the death of a stream ends its relay, also with a peer that never ends",
                 "[docker]") {
  start_pod("spw-it-dial-5", pod("exec nc -ll -p 8083 -e sleep 60"));
  const auto relays = [&] {
    const auto top = nlohmann::json::parse(api(net::Method::kGet, "/containers/spw-it-dial-5/top").body);
    return top.at("Processes").size() - 1;
  };
  {
    const auto open_stream = dial_soon(8083);
    CHECK(relays() == 1);
    const auto half_closed = dial_soon(8083);
    REQUIRE(reactor.run(half_closed->close_write(soon())));
    CHECK(relays() == 2);
  }
  for (int i = 0; i < 100 && relays() > 0; ++i) reactor.run(reactor.timers.sleep_for(50ms));
  CHECK(relays() == 0);
}

TEST_CASE_METHOD(ExecFixture, "docker exec: what is open when its container is removed ends, and does not hang",
                 "[docker]") {
  start_pod("spw-it-exec-7", pod("exec nc -ll -p 8084 -e sleep 60"));
  auto session = open(shell("sleep 60"));
  REQUIRE(session);
  const auto stream = dial_soon(8084);
  api(net::Method::kDelete, "/containers/spw-it-exec-7-main?force=true");
  const auto output = reactor.run((*session)->output().read(soon()));
  CHECK((!output || output->empty()));
  CHECK_FALSE(reactor.run((*session)->exit_code(soon())).value_or(1) == 0);
  api(net::Method::kDelete, "/containers/spw-it-exec-7?force=true");
  const auto piece = reactor.run(stream->read(soon()));
  CHECK((!piece || piece->empty()));
}

TEST_CASE_METHOD(ExecFixture, "docker exec: an engine that dies takes its sessions along, and none hangs", "[docker]") {
  start_pod("spw-it-exec-8", pod("exec nc -ll -p 8085 -e sleep 60"));
  auto session = open(shell("sleep 60"));
  REQUIRE(session);
  const auto stream = dial_soon(8085);
  cut_power();
  const auto output = reactor.run((*session)->output().read(soon()));
  CHECK((!output || output->empty()));
  CHECK_FALSE(reactor.run((*session)->exit_code(soon())));
  const auto piece = reactor.run(stream->read(soon()));
  REQUIRE_FALSE(piece);
  CHECK(piece.error().kind == ErrorKind::kUnavailable);

  const auto again = open(shell("true"));
  REQUIRE_FALSE(again);
  CHECK(again.error().kind == ErrorKind::kConflict);
  const auto dialled = dial(8085);
  REQUIRE_FALSE(dialled);
  CHECK(dialled.error().kind == ErrorKind::kConflict);
}
