// Logs and use of containers, through a real engine.
#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "test/integration/docker_exec_fixture.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace async = spillway::async;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace provider = spillway::provider;
using base::ErrorKind;
using provider::ContainerAction;
using provider::LogOptions;

namespace {

class LogFixture : public ExecFixture {
 public:
  /// As in a cluster: with a termination message, and so with a keeper of volumes.
  static model::ResolvedPod talking(const std::string& script) {
    model::ResolvedPod out = pod(script, model::RestartPolicy::kAlways);
    out.containers[0].termination_message_path = "/dev/termination-log";
    return out;
  }
  /// Until the container has been started and has ended.
  void start_and_end(const std::string& tag, model::ResolvedPod pod) {
    const auto bought = create(placement(tag), std::move(pod));
    if (!bought) throw std::runtime_error(bought.error().message);
    pod_ref = bought->ref;
    wait_for_exit();
  }
  void wait_for_exit() {
    get_until(pod_ref,
              [](const model::Instance& i) { return i.containers.at(0).state == model::ContainerState::kExited; });
  }
  void start_again() {
    REQUIRE(reactor.run(daemon->control_container(pod_ref, "main", ContainerAction::kStart, 1s, soon())));
  }

  static LogOptions options() {
    LogOptions out;
    out.container = "main";
    return out;
  }
  static LogOptions previous() {
    LogOptions out = options();
    out.previous = true;
    return out;
  }
  base::Result<async::ByteStreamPtr> open_log(LogOptions options) {
    return reactor.run(daemon->open_logs(pod_ref, std::move(options), soon()));
  }
  base::Result<std::string> read(LogOptions options) {
    const auto stream = open_log(std::move(options));
    if (!stream) return base::fail(stream.error());
    return reactor.run(read_all(**stream, soon()));
  }
  std::string text(LogOptions wanted = options()) {
    auto bytes = read(std::move(wanted));
    return bytes ? *bytes : "(" + bytes.error().message + ")";
  }
};

}  // namespace

TEST_CASE_METHOD(LogFixture, "docker logs: byte for byte, of what runs and of what has ended", "[docker]") {
  start_and_end("spw-it-logs-1", talking("printf 'a\\0b\\377\\r\\n'; sleep 0.2; echo apart >&2; sleep 0.2;"
                                         "head -c 100000 /dev/zero | tr '\\0' x; echo; printf torn"));
  const std::string whole = std::string("a\0b\xff\r\n", 6) + "apart\n" + std::string(100'000, 'x') + "\ntorn";
  const auto log = read(options());
  REQUIRE(log);
  CHECK(log->size() == whole.size());
  const bool equal = *log == whole;
  CHECK(equal);

  LogOptions wanted = options();
  wanted.channel = provider::LogChannel::kStderr;
  CHECK(text(wanted) == "apart\n");
  wanted.channel = provider::LogChannel::kStdout;
  CHECK(text(wanted).size() == whole.size() - 6);
  wanted = options();
  wanted.limit_bytes = 9;
  CHECK(text(wanted) == whole.substr(0, 9));
  wanted.limit_bytes = 20'000;
  CHECK(text(wanted) == whole.substr(0, 20'000));
  wanted = options();
  wanted.tail_lines = 0;
  CHECK(text(wanted).empty());
  wanted.tail_lines = 1;
  CHECK(text(wanted) == "torn");

  // A line that the engine keeps in seven records has one time.
  wanted = options();
  wanted.timestamps = true;
  const std::string stamped = text(wanted);
  CHECK(stamped.size() == whole.size() + 4 * 31);
  const size_t begin = stamped.find("xxx") - 31;
  CHECK(base::from_rfc3339(stamped.substr(begin, 30)));
  CHECK(stamped[begin + 30] == ' ');
  CHECK(stamped.substr(stamped.size() - 5) == " torn");
}

TEST_CASE_METHOD(LogFixture, "docker logs: since counts with parts of a second", "[docker]") {
  start_and_end("spw-it-logs-2", talking("for i in 1 2 3; do echo line $i; sleep 0.3; done"));
  LogOptions wanted = options();
  wanted.timestamps = true;
  const std::string stamped = text(wanted);
  const size_t second = stamped.find("line 2") - 31;
  const auto time = base::from_rfc3339(stamped.substr(second, 30));
  REQUIRE(time);
  wanted = options();
  wanted.since = *time;  // cut to microseconds: not later than the line
  CHECK(text(wanted) == "line 2\nline 3\n");
  wanted.since = *time + 1us;
  CHECK(text(wanted) == "line 3\n");
  wanted.since = *time - 100ms;
  wanted.tail_lines = 1;
  CHECK(text(wanted) == "line 3\n");
}

TEST_CASE_METHOD(LogFixture, "docker logs: to follow shows lines as they come, and ends with the run", "[docker]") {
  start_pod("spw-it-logs-3", talking("echo before; while [ ! -e /go ]; do sleep 0.05; done; echo after; exit 4"));
  LogOptions wanted = options();
  wanted.follow = true;
  const auto stream = open_log(wanted);
  REQUIRE(stream);
  CHECK(read_until(**stream, "before\n"));
  wanted.tail_lines = 0;
  const auto only_new = open_log(wanted);
  REQUIRE(only_new);
  CHECK(reactor.run((*open_log(wanted))->read(reactor.timers.now() + 200ms)).error().kind == ErrorKind::kDeadline);
  CHECK(run_shell("touch /go").exit_code == 0);
  CHECK(reactor.run(read_all(**stream, soon())).value_or("(error)") == "after\n");
  CHECK(reactor.run(read_all(**only_new, soon())).value_or("(error)") == "after\n");
  wait_for_exit();
  CHECK(text(wanted).empty());  // it has ended: nothing to wait for
}

TEST_CASE_METHOD(LogFixture, "docker logs: runs are told apart, also by a daemon that was not there", "[docker]") {
  start_and_end("spw-it-logs-4", talking("n=$(cat /n 2>/dev/null || echo 1); echo $((n + 1)) >/n;"
                                         "echo begin of $n; sleep 0.1; echo end of $n >&2; exit 1"));
  CHECK(text() == "begin of 1\nend of 1\n");
  CHECK(read(previous()).error().kind == ErrorKind::kNotFound);
  for (int run = 2; run <= 4; ++run) {
    const std::string n = std::to_string(run);
    const std::string before = std::to_string(run - 1);
    if (run == 3) restart_daemon();
    start_again();
    wait_for_exit();
    CHECK(text() == "begin of " + n + "\nend of " + n + "\n");
    CHECK(text(previous()) == "begin of " + before + "\nend of " + before + "\n");
    if (run == 3) restart_daemon();
    LogOptions wanted = previous();
    wanted.tail_lines = 1;
    CHECK(text(wanted) == "end of " + before + "\n");
    wanted = options();
    wanted.tail_lines = 9;
    CHECK(text(wanted) == "begin of " + n + "\nend of " + n + "\n");
  }
}

TEST_CASE_METHOD(LogFixture, "docker logs: a container that was restarted and runs", "[docker]") {
  start_pod("spw-it-logs-5", talking("trap 'echo stopped; exit 0' TERM; echo started; while :; do sleep 0.05; done"));
  for (int i = 0; i < 100 && text() != "started\n"; ++i) reactor.run(reactor.timers.sleep_for(20ms));
  REQUIRE(reactor.run(daemon->control_container(pod_ref, "main", ContainerAction::kRestart, 5s, soon())));
  for (int i = 0; i < 100 && !read(previous()); ++i) reactor.run(reactor.timers.sleep_for(20ms));
  CHECK(text(previous()) == "started\nstopped\n");
  for (int i = 0; i < 100 && text() != "started\n"; ++i) reactor.run(reactor.timers.sleep_for(20ms));
  CHECK(text() == "started\n");
  CHECK(text(previous()) == "started\nstopped\n");
}

TEST_CASE_METHOD(LogFixture, "docker logs: hundreds of megabytes pass through, and stay nowhere", "[docker]") {
  const char* const wanted = std::getenv("SPILLWAY_TEST_LOG_MB");
  const size_t lines = std::stoul(wanted == nullptr ? "200" : wanted) * 1000;
  // A line of 1000 bytes.
  start_pod("spw-it-logs-6", talking("yes " + std::string(999, 'x') + " | head -n " + std::to_string(lines)));
  LogOptions follow = options();
  follow.follow = true;
  const auto stream = open_log(follow);
  REQUIRE(stream);
  const size_t before = peak_memory();
  size_t came = 0;
  bool stopped = false;
  for (;;) {
    const auto bytes = reactor.run((*stream)->read(soon()));
    REQUIRE(bytes);
    if (bytes->empty()) break;
    came += bytes->size();
    // A reader that sleeps holds up nobody but itself.
    if (!stopped && came > 1'000'000) {
      stopped = true;
      reactor.run(reactor.timers.sleep_for(500ms));
      CHECK(run_shell("true").exit_code == 0);
    }
  }
  CHECK(came == lines * 1000);
  CHECK(peak_memory() - before < 8'000'000);
}

TEST_CASE_METHOD(LogFixture, "docker logs: a terminal's output, with times", "[docker]") {
  model::ResolvedPod pod = talking("echo one; head -c 10000 /dev/zero | tr '\\0' x; echo; echo three");
  pod.containers[0].tty = true;
  start_and_end("spw-it-logs-7", std::move(pod));
  const std::string whole = "one\r\n" + std::string(10'000, 'x') + "\r\nthree\r\n";
  const std::string log = text();
  CHECK(log.size() == whole.size());
  const bool equal = log == whole;
  CHECK(equal);
  LogOptions wanted = options();
  wanted.timestamps = true;
  CHECK(text(wanted).size() == whole.size() + 3 * 31);
}

TEST_CASE_METHOD(LogFixture, "docker logs: init containers, and what is still to come", "[docker]") {
  model::ResolvedPod pod = talking("echo main");
  const model::ResolvedContainer main = pod.containers.at(0);
  pod.containers = {main, main};
  pod.containers[0].name = "setup";
  pod.containers[0].role = model::ContainerRole::kInit;
  pod.containers[0].command = {"sh", "-c", "echo setting up"};
  pod.containers[1].start_at_once = false;
  start_and_end("spw-it-logs-8", std::move(pod));
  LogOptions wanted = options();
  wanted.container = "setup";
  CHECK(text(wanted) == "setting up\n");
  const auto early = open_log(options());
  REQUIRE_FALSE(early);
  CHECK(early.error().kind == ErrorKind::kConflict);
  CHECK(says(early.error().message, "container main of instance spw-it-logs-8 is waiting to start"));
  wanted.container = "stranger";
  CHECK(open_log(wanted).error().kind == ErrorKind::kNotFound);
  const model::InstanceRef nobody(base::ProviderName("docker"), base::InstanceId("box/spw-it-nobody"));
  CHECK(reactor.run(daemon->open_logs(nobody, options(), soon())).error().kind == ErrorKind::kNotFound);
}

TEST_CASE_METHOD(LogFixture, "docker logs: who follows is told when the container goes, and when the engine does",
                 "[docker]") {
  start_pod("spw-it-logs-9", talking("echo started; sleep 60"));
  LogOptions wanted = options();
  wanted.follow = true;
  const auto removed = open_log(wanted);
  REQUIRE(removed);
  CHECK(read_until(**removed, "started\n"));
  api(net::Method::kDelete, "/containers/spw-it-logs-9-main?force=true");
  CHECK(reactor.run((*removed)->read(soon())).value_or("(error)").empty());
  end(pod_ref);

  start_pod("spw-it-logs-10", talking("echo started; sleep 60"));
  const auto cut = open_log(wanted);
  REQUIRE(cut);
  CHECK(read_until(**cut, "started\n"));
  cut_power();
  const auto after = reactor.run((*cut)->read(soon()));
  REQUIRE_FALSE(after);
  CHECK(after.error().kind == ErrorKind::kUnavailable);
  CHECK(text() == "started\n");  // the log outlives the engine
}

TEST_CASE_METHOD(LogFixture, "docker logs: an engine that keeps none says so", "[docker]") {
  start_pod("spw-it-logs-11", talking("sleep 60"));
  const nlohmann::json body = {{"Image", engine_image()},
                               {"Cmd", {"true"}},
                               {"Labels", {{"spillway.dev/tag", "spw-it-logs-12"}}},
                               {"HostConfig", {{"LogConfig", {{"Type", "none"}}}}}};
  api(net::Method::kPost, "/containers/create?name=spw-it-logs-12-main", body.dump());
  api(net::Method::kPost, "/containers/spw-it-logs-12-main/start");
  const model::InstanceRef mute(base::ProviderName("docker"), base::InstanceId("box/spw-it-logs-12"));
  const auto log = reactor.run(daemon->open_logs(mute, options(), soon()));
  REQUIRE_FALSE(log);
  CHECK(log.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(LogFixture, "docker samples: what the engine's own files say", "[docker]") {
  start_pod("spw-it-samples-1", talking("x=$(head -c 40000000 /dev/zero | tr '\\0' x); echo full;"
                                        "i=0; while :; do i=$((i + 1)); done"));
  for (int i = 0; i < 300 && text() != "full\n"; ++i) reactor.run(reactor.timers.sleep_for(50ms));
  // In nanoseconds, by either version of cgroups.
  const std::string show =
      "cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null ||"
      "awk '/^usage_usec/ {print $2 \"000\"}' /sys/fs/cgroup/cpu.stat";
  const auto sample = [this] {
    auto samples = reactor.run(daemon->samples(soon()));
    REQUIRE(samples);
    REQUIRE(samples->size() == 1);
    CHECK(samples->at(0).instance == pod_ref);
    CHECK(samples->at(0).container == "main");
    REQUIRE(samples->at(0).cpu_ns);
    return samples->at(0);
  };
  const auto before = std::stoull(run_shell(show).output);
  const provider::Sample first = sample();
  const auto between = std::stoull(run_shell(show).output);
  const provider::Sample second = sample();
  const auto after = std::stoull(run_shell(show).output);
  CHECK(before < *first.cpu_ns);
  CHECK(*first.cpu_ns < between);
  CHECK(between < *second.cpu_ns);
  CHECK(*second.cpu_ns < after);
  CHECK(first.at < second.at);
  REQUIRE(second.working_set);
  CHECK(*second.working_set > 40'000'000);
  CHECK(*second.working_set < 400'000'000);

  REQUIRE(reactor.run(daemon->control_container(pod_ref, "main", ContainerAction::kStop, 0s, soon())));
  wait_for_exit();
  const auto none = reactor.run(daemon->samples(soon()));
  REQUIRE(none);
  CHECK(none->empty());
}
