// Processes in containers, through a real engine.
#include "test/integration/docker_exec_fixture.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace async = spillway::async;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace provider = spillway::provider;
using base::ErrorKind;

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

TEST_CASE_METHOD(ExecFixture, "docker exec: 100 MB go in and come back, and are kept nowhere", "[docker]") {
  start_pod("spw-it-exec-2");
  provider::ExecOptions cat = shell("cat; echo done >&2");
  cat.stdin_open = true;
  auto session = open(cat);
  REQUIRE(session);
  const size_t before = peak_memory();
  check_copied(*(*session)->input(), (*session)->output(), 100'000'000);
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

TEST_CASE_METHOD(ExecFixture, "docker exec: a terminal turns Ctrl-C into a signal", "[docker]") {
  start_pod("spw-it-exec-9");
  provider::ExecOptions options = shell("trap 'echo caught; exit 130' INT; echo ready; while :; do sleep 0.1; done");
  options.stdin_open = true;
  options.tty = true;
  auto session = open(options);
  REQUIRE(session);
  CHECK(read_until((*session)->output(), "ready\r\n"));
  REQUIRE(reactor.run((*session)->input()->write("\x03", soon())));
  const Finished finished = finish(**session);
  CHECK(says(finished.output, "caught\r\n"));
  CHECK(finished.exit_code == 130);
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

TEST_CASE_METHOD(ExecFixture, "docker attach: what is written reaches the container, and its end, too", "[docker]") {
  model::ResolvedPod reader = pod("while read -r x; do echo \"got $x\"; echo \"err $x\" >&2; done; echo over; exit 5");
  reader.containers[0].stdin_open = true;
  reader.containers[0].stdin_once = true;
  start_pod("spw-it-attach-2", std::move(reader));
  provider::ExecOptions options;
  options.container = "main";
  options.stdin_open = true;
  auto session = open(options);
  REQUIRE(session);
  REQUIRE(reactor.run((*session)->input()->write("one\ntwo\n", soon())));
  REQUIRE(reactor.run((*session)->input()->close_write(soon())));
  std::optional<base::Result<std::string>> output;
  std::optional<base::Result<std::string>> errors;
  group.spawn(read_into((*session)->output(), soon(), output));
  group.spawn(read_into(*(*session)->errors(), soon(), errors));
  reactor.run_until([&] { return output && errors; });
  CHECK(*output == "got one\ngot two\nover\n");
  CHECK(*errors == "err one\nerr two\n");
  CHECK(get_exited(pod_ref).containers.at(0).exit_code == 5);
}

TEST_CASE_METHOD(ExecFixture, "docker attach: a container's own terminal, its size and Ctrl-C", "[docker]") {
  model::ResolvedPod shell_pod = pod("trap 'stty size; exit 3' INT; echo ready; while :; do sleep 0.1; done");
  shell_pod.containers[0].stdin_open = true;
  shell_pod.containers[0].tty = true;
  start_pod("spw-it-attach-3", std::move(shell_pod));
  provider::ExecOptions options;
  options.container = "main";
  options.stdin_open = true;
  options.tty = true;
  options.size = provider::TerminalSize();
  options.size->columns = 77;
  options.size->rows = 33;
  auto session = open(options);
  REQUIRE(session);
  CHECK((*session)->errors() == nullptr);
  REQUIRE(reactor.run((*session)->input()->write("\x03", soon())));
  const auto output = reactor.run(read_all((*session)->output(), soon()));
  REQUIRE(output);
  CHECK(says(*output, "33 77\r\n"));
  CHECK(get_exited(pod_ref).containers.at(0).exit_code == 3);
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
