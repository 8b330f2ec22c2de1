// Logs of containers: what is asked of an engine, and what a reader gets.
#include "test/support/docker_stream.hpp"
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;        // NOLINT(google-build-using-namespace)
using namespace spillway::test;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using provider::ContainerAction;
using provider::LogChannel;
using provider::LogOptions;

namespace {

constexpr const char* kTag = "spw-a-1";
constexpr const char* kName = "spw-a-1-main";

struct LogRig : DockerRig {
  LogRig() { buy(pod()); }

  void buy(model::ResolvedPod pod) {
    // As in a cluster: with a termination message, and so with a keeper.
    pod.containers.at(0).termination_message_path = "/dev/termination-log";
    REQUIRE(create(placement(kTag), std::move(pod)));
    settle();
  }
  void write(std::string bytes, bool errors = false) {
    DockerEngineModel::LogRecord record;
    record.at = reactor.timers.wall();
    record.errors = errors;
    record.bytes = std::move(bytes);
    engine().records[kName].push_back(std::move(record));
    pass(1s);
  }
  /// Ends it and starts it again; ten seconds lie between.
  void run_again() {
    engine().exit(kName, 1);
    pass(10s);
    REQUIRE(control(kTag, ContainerAction::kStart));
    pass(1s);
  }

  static LogOptions options() {
    LogOptions out;
    out.container = "main";
    return out;
  }
  base::Result<async::ByteStreamPtr> open(LogOptions options) {
    return reactor.run(provider().open_logs(ref(kTag), std::move(options), soon()));
  }
  /// Everything, or in brackets what went wrong.
  std::string read(LogOptions options) {
    auto stream = open(std::move(options));
    if (!stream) return "(" + stream.error().message + ")";
    std::string all;
    for (;;) {
      const auto bytes = reactor.run((*stream)->read(soon()));
      if (!bytes) return all + "(" + bytes.error().message + ")";
      if (bytes->empty()) return all;
      all += *bytes;
    }
  }
};

}  // namespace

TEST_CASE_METHOD(LogRig, "docker logs: both outputs in their order, byte for byte") {
  const std::string binary("\0\xff\r\n", 4);
  write("one\n");
  write("two\n", true);
  write(binary);
  write(std::string(16 * 1024, 'x'));
  write("end\n");
  write("torn");
  const std::string long_line = std::string(16 * 1024, 'x') + "end\n";
  CHECK(read(options()) == "one\ntwo\n" + binary + long_line + "torn");
  engine().exit(kName, 0);
  CHECK(read(options()) == "one\ntwo\n" + binary + long_line + "torn");
}

TEST_CASE_METHOD(LogRig, "docker logs: tail, since, limit, timestamps and one output") {
  const base::WallTime begin = reactor.timers.wall();
  write("one\n");
  write("two\n", true);
  write("three\n");
  LogOptions wanted = options();
  wanted.tail_lines = 2;
  CHECK(read(wanted) == "two\nthree\n");
  wanted.tail_lines = 0;
  CHECK(read(wanted).empty());
  wanted = options();
  wanted.since = begin + 1s;
  CHECK(read(wanted) == "two\nthree\n");
  wanted.since = begin + 1s + 1us;
  CHECK(read(wanted) == "three\n");
  wanted = options();
  wanted.limit_bytes = 6;
  CHECK(read(wanted) == "one\ntw");
  wanted = options();
  wanted.channel = LogChannel::kStderr;
  CHECK(read(wanted) == "two\n");
  wanted = options();
  wanted.timestamps = true;
  wanted.tail_lines = 1;
  const std::string time = base::to_rfc3339_micro(begin + 2s);
  CHECK(read(wanted) == time.substr(0, time.size() - 1) + "789Z three\n");
  CHECK(engine().count("/logs?") == 7);
}

TEST_CASE_METHOD(LogRig, "docker logs: a run shows what it wrote, and --previous the run before it") {
  LogOptions previous = options();
  previous.previous = true;
  write("first run\n");
  CHECK(says(read(previous), "container main of instance spw-a-1 has no earlier run"));
  CHECK(open(previous).error().kind == ErrorKind::kNotFound);
  run_again();
  write("second run\n");
  write("and more\n", true);
  CHECK(read(options()) == "second run\nand more\n");
  CHECK(read(previous) == "first run\n");
  run_again();
  write("third run\n");
  CHECK(read(options()) == "third run\n");
  CHECK(read(previous) == "second run\nand more\n");

  SECTION("once the container has ended, too, and to a daemon that knows nothing of it") {
    engine().exit(kName, 1);
    CHECK(read(options()) == "third run\n");
    CHECK(read(previous) == "second run\nand more\n");
    restart_daemon();
    CHECK(read(options()) == "third run\n");
    CHECK(read(previous) == "second run\nand more\n");
  }
  SECTION("with the options of a log") {
    LogOptions wanted = options();
    wanted.tail_lines = 5;
    CHECK(read(wanted) == "third run\n");
    wanted.since = base::WallTime{};
    CHECK(read(wanted) == "third run\n");
    previous.tail_lines = 1;
    CHECK(read(previous) == "and more\n");
    previous.tail_lines = 5;
    CHECK(read(previous) == "second run\nand more\n");
    previous.channel = LogChannel::kStdout;
    CHECK(read(previous) == "second run\n");
    previous.tail_lines = 1;
    CHECK(read(previous).empty());
    previous.channel.reset();
    previous.since = reactor.timers.wall();
    CHECK(read(previous).empty());
    previous.since.reset();
    previous.timestamps = true;
    previous.limit_bytes = 34;
    CHECK(says(read(previous), "789Z and"));
    previous.follow = true;  // it has ended: there is nothing to follow
    CHECK(says(read(previous), "789Z and"));
    CHECK(engine().count("follow=1") == 0);
  }
}

TEST_CASE_METHOD(LogRig, "docker logs: a restart by order is a new run as well") {
  write("first run\n");
  REQUIRE(control(kTag, ContainerAction::kRestart));
  pass(1s);
  write("second run\n");
  CHECK(read(options()) == "second run\n");
  LogOptions previous = options();
  previous.previous = true;
  CHECK(read(previous) == "first run\n");
}

TEST_CASE_METHOD(LogRig, "docker logs: a start that did not come about ends no run") {
  write("first run\n");
  engine().exit(kName, 1);
  pass(10s);
  engine().before = [](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
    if (!request.target.contains("/start")) return std::nullopt;
    return DockerEngineModel::refuse(500, "busy");
  };
  REQUIRE_FALSE(control(kTag, ContainerAction::kStart));
  engine().before = nullptr;
  CHECK(read(options()) == "first run\n");
}

TEST_CASE_METHOD(LogRig, "docker logs: without a place to write runs down the engine's own times serve") {
  DockerRig rig;
  REQUIRE(rig.create(placement(kTag)));
  rig.settle();
  rig.pass(1s);
  rig.engine().exit(kName, 1);
  rig.pass(10s);
  REQUIRE(rig.control(kTag, ContainerAction::kStart));
  LogOptions previous = options();
  previous.previous = true;
  REQUIRE(rig.reactor.run(rig.provider().open_logs(ref(kTag), previous, rig.soon())));
  CHECK(rig.engine().count("&until=") == 1);
  CHECK(rig.engine().count("/archive") == 0);
}

TEST_CASE_METHOD(LogRig, "docker logs: to follow goes on until the run ends") {
  const auto script = std::make_shared<DockerStreamScript>(reactor.timers);
  engine().streams = [&](const net::HttpRequest& request) -> std::optional<base::Result<net::HttpStream>> {
    if (!request.target.contains("/logs?follow=1&stdout=1&stderr=1")) return std::nullopt;
    net::HttpStream stream;
    stream.head.status = 200;
    stream.body = std::make_unique<DockerModelStream>(script);
    return stream;
  };
  LogOptions wanted = options();
  wanted.follow = true;
  auto stream = open(wanted);
  REQUIRE(stream);
  script->give(DockerEngineModel::frame(1, "one\n"));
  CHECK(*reactor.run((*stream)->read(soon())) == "one\n");
  CHECK(script->reads == 1);  // nothing is read ahead
  CHECK(reactor.run((*stream)->write("x", soon())).error().kind == ErrorKind::kUnsupported);
  CHECK(reactor.run((*stream)->close_write(soon())).error().kind == ErrorKind::kUnsupported);

  SECTION("its end is the end") {
    script->give_end();
    CHECK(*reactor.run((*stream)->read(soon())) == "");
    CHECK(*reactor.run((*stream)->read(soon())) == "");
    CHECK(script->destroyed);
  }
  SECTION("a connection that breaks is no end") {
    script->give_error(base::Error(ErrorKind::kUnavailable, "reset"));
    CHECK(reactor.run((*stream)->read(soon())).error().kind == ErrorKind::kUnavailable);
  }
  SECTION("and neither is one that stops in the middle of a line") {
    script->give(DockerEngineModel::frame(1, "two\n").substr(0, 10));
    CHECK(*reactor.run((*stream)->read(soon())) == "tw");
    script->give_end();
    CHECK(reactor.run((*stream)->read(soon())).error().kind == ErrorKind::kUnavailable);
    CHECK(*reactor.run((*stream)->read(soon())) == "");
  }
  SECTION("what the engine complains of is an error, after the lines before it") {
    script->give(DockerEngineModel::frame(1, "two\n") + DockerEngineModel::frame(3, "disk gone\n"));
    CHECK(*reactor.run((*stream)->read(soon())) == "two\n");
    const auto failed = reactor.run((*stream)->read(soon()));
    CHECK(failed.error().kind == ErrorKind::kUnavailable);
    CHECK(says(failed.error().message, "disk gone"));
  }
  SECTION("nothing in time is kDeadline") {
    CHECK(reactor.run((*stream)->read(soon())).error().kind == ErrorKind::kDeadline);
  }
  SECTION("its death closes the connection") {
    stream->reset();
    CHECK(script->destroyed);
  }
}

TEST_CASE_METHOD(LogRig, "docker logs: a limit that is reached closes the connection") {
  const auto script = std::make_shared<DockerStreamScript>(reactor.timers);
  engine().streams = [&](const net::HttpRequest&) -> std::optional<base::Result<net::HttpStream>> {
    net::HttpStream stream;
    stream.head.status = 200;
    stream.body = std::make_unique<DockerModelStream>(script);
    return stream;
  };
  LogOptions wanted = options();
  wanted.follow = true;
  wanted.limit_bytes = 2;
  auto stream = open(wanted);
  REQUIRE(stream);
  script->give(DockerEngineModel::frame(1, "one\n"));
  CHECK(*reactor.run((*stream)->read(soon())) == "on");
  CHECK(*reactor.run((*stream)->read(soon())) == "");
  CHECK(script->destroyed);
}

TEST_CASE_METHOD(LogRig, "docker logs: what is not there, and what is still to come") {
  LogOptions other = options();
  other.container = "other";
  CHECK(open(other).error().kind == ErrorKind::kNotFound);
  CHECK(says(open(other).error().message, "instance spw-a-1 has no container other"));
  const auto nobody = reactor.run(provider().open_logs(ref("spw-a-2"), options(), soon()));
  CHECK(nobody.error().kind == ErrorKind::kNotFound);
  CHECK(says(nobody.error().message, "has no instance spw-a-2"));

  // The sandbox is there, and its container waits for its image.
  DockerEngineModel::Pull slow;
  slow.ends = false;
  engine().pulls["slow:1"] = slow;
  REQUIRE(create(placement("spw-a-3"), pod(model::RestartPolicy::kAlways, "slow:1")));
  settle();
  const auto waiting = reactor.run(provider().open_logs(ref("spw-a-3"), options(), soon()));
  CHECK(waiting.error().kind == ErrorKind::kConflict);
  CHECK(says(waiting.error().message, "container main of instance spw-a-3 is waiting to start"));
  provider::ExecOptions attach;
  attach.container = "main";
  CHECK(reactor.run(provider().open_exec(ref("spw-a-3"), attach, soon())).error().kind == ErrorKind::kConflict);
  attach.command = {"true"};
  CHECK(reactor.run(provider().open_exec(ref("spw-a-3"), attach, soon())).error().kind == ErrorKind::kConflict);

  // Made, and waiting for what stands before it.
  REQUIRE(create(placement("spw-a-4"), pod_with_init()));
  settle();
  const auto made = reactor.run(provider().open_logs(ref("spw-a-4"), options(), soon()));
  CHECK(made.error().kind == ErrorKind::kConflict);
  LogOptions init = options();
  init.container = "setup";
  CHECK(reactor.run(provider().open_logs(ref("spw-a-4"), init, soon())));

  engine().reachable = false;
  CHECK(open(options()).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(LogRig, "docker logs: an engine that cannot read them is no outage") {
  engine().before = [](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
    if (!request.target.contains("/logs?")) return std::nullopt;
    return DockerEngineModel::refuse(501, "configured logging driver does not support reading");
  };
  CHECK(open(options()).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("docker logs: the bytes of a terminal") {
  LogRig rig;
  CHECK(rig.terminate(kTag));
  rig.pass(5s);
  model::ResolvedPod pod = DockerRig::pod();
  pod.containers[0].tty = true;
  rig.engine().records.clear();
  rig.buy(pod);
  rig.write("one\r\n");
  rig.write("two\r\n");
  CHECK(rig.read(LogRig::options()) == "one\r\ntwo\r\n");
  LogOptions wanted = LogRig::options();
  wanted.timestamps = true;
  wanted.tail_lines = 1;
  CHECK(says(rig.read(wanted), "789Z two\r\n"));
}
