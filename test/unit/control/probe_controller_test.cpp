#include "vk-provider/control/probe_controller.hpp"

#include <ctime>

#include <catch2/catch.hpp>

#include "test/support/answering_provider.hpp"
#include "test/support/pod_builder.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/core/container_fsm.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::control;
using base::ErrorKind;
using core::ProbeKind;

namespace {

model::Probe a_probe(model::Handler::Kind kind = model::Handler::Kind::kExec) {
  model::Probe probe;
  probe.handler.kind = kind;
  probe.handler.port = 80;
  return probe;
}

/// Pods that run, at a provider that answers as it is told.
class Ward {
 public:
  Ward() : handlers(reactor.timers, {}) {
    auto inner = std::make_unique<test::AnsweringProvider>();
    provider = inner.get();
    providers.add(std::make_unique<provider::ThrottledProvider>(std::move(inner), provider::ThrottleConfig(),
                                                                reactor.timers, metrics));
    exits(0);
    ProbeDeps deps;
    deps.executor = reactor.ctx.get_executor();
    deps.timers = &reactor.timers;
    deps.handlers = &handlers;
    deps.providers = &providers;
    deps.changed = [this](const base::PodUid& uid, const core::event::ProbeChanged& e) {
      changes.emplace_back(uid, e);
    };
    deps.unhealthy = [this](const model::PodKey&, const std::string& message) { told.push_back(message); };
    probes = std::make_unique<ProbeController>(std::move(deps));
    group.spawn(probes->run());
  }
  ~Ward() {
    reactor.run(group.stop());
    reactor.run(probes->stop());
  }

  void exits(int code, bool hangs = false) {
    provider->exec = [this, code, hangs] {
      return base::Result<provider::ExecSessionPtr>(
          std::make_unique<test::ScriptedExec>(reactor.timers, "", code == 0 ? "" : "no", code, hangs));
    };
  }
  /// A pod whose container has just started, with these probes.
  model::PodRecord pod(std::optional<model::Probe> readiness, std::optional<model::Probe> liveness = {},
                       std::optional<model::Probe> startup = {}, int number = 0) {
    model::PodSpec spec = test::a_pod();
    if (number > 0) spec.key.uid = base::PodUid("uid-" + std::to_string(number));
    model::ContainerSpec& c = spec.containers.edit()[0];
    if (readiness) c.readiness_probe = *readiness;
    if (liveness) c.liveness_probe = *liveness;
    if (startup) c.startup_probe = *startup;
    model::PodRecord record = core::admit(test::share(std::move(spec)), test::seen_at(), reactor.timers.both());
    model::Instance instance = test::an_instance(model::InstanceState::kRunning);
    instance.containers[0].started_at = reactor.timers.wall();
    record.containers = core::make_container_records(*record.spec, record.observed.status);
    core::apply_claims(record, instance, reactor.timers.both());
    record.stage = model::Running{instance};
    return record;
  }

  test::VirtualReactor reactor;
  base::Metrics metrics;
  provider::HandlerRunner handlers;
  test::AnsweringProvider* provider = nullptr;
  ProviderSet providers;
  std::vector<std::pair<base::PodUid, core::event::ProbeChanged>> changes;
  std::vector<std::string> told;
  std::unique_ptr<ProbeController> probes;
  async::TaskGroup group{reactor.ctx.get_executor()};
};

}  // namespace

TEST_CASE("readiness is told once when it passes, and once when it fails") {
  Ward ward;
  ward.probes->follow(ward.pod(a_probe()));
  ward.reactor.run_for(100ms);
  REQUIRE(ward.changes.size() == 1);
  CHECK(ward.changes[0].second.container == "main");
  CHECK(ward.changes[0].second.probe == ProbeKind::kReadiness);
  CHECK(ward.changes[0].second.passes);
  ward.reactor.run_for(60s);
  CHECK(ward.changes.size() == 1);
  CHECK(ward.provider->execs.size() == 7);
  ward.exits(1);
  ward.reactor.run_for(30s);
  REQUIRE(ward.changes.size() == 2);
  CHECK_FALSE(ward.changes[1].second.passes);
  // Of three failures the first is told, and the one that decided.
  CHECK(ward.told == std::vector<std::string>(2, "Readiness probe failed: exit code 1: no"));
  // Why it fails may change; that is news, and once.
  ward.exits(2);
  ward.reactor.run_for(30s);
  REQUIRE(ward.told.size() == 3);
  CHECK(ward.told.back() == "Readiness probe failed: exit code 2: no");
  CHECK(ward.changes.size() == 2);
}

TEST_CASE("a startup probe comes alone, and then the others") {
  Ward ward;
  model::PodRecord record = ward.pod(a_probe(), a_probe(), a_probe());
  ward.probes->follow(record);
  CHECK(ward.probes->size() == 1);
  ward.reactor.run_for(100ms);
  REQUIRE(ward.changes.size() == 1);
  CHECK(ward.changes[0].second.probe == ProbeKind::kStartup);
  record.containers[0].started = true;
  ward.probes->follow(record);
  CHECK(ward.probes->size() == 2);
  ward.reactor.run_for(100ms);
  REQUIRE(ward.changes.size() == 2);
  CHECK(ward.changes[1].second.probe == ProbeKind::kReadiness);
}

TEST_CASE("a container that is stopped, restarted or gone is not probed as before") {
  Ward ward;
  model::PodRecord record = ward.pod({}, a_probe());
  ward.probes->follow(record);
  SECTION("stopped") {
    record.containers[0].stop = model::ContainerStop();
    ward.probes->follow(record);
    CHECK(ward.probes->size() == 0);
  }
  SECTION("crashed") {
    record.containers[0].claim.state = model::ContainerState::kExited;
    ward.probes->follow(record);
    CHECK(ward.probes->size() == 0);
  }
  SECTION("restarted: with a count of its own") {
    ward.exits(1);
    ward.reactor.run_for(15s);
    ++record.containers[0].restarts;
    ward.probes->follow(record);
    ward.reactor.run_for(15s);
    CHECK(ward.changes.empty());
    ward.reactor.run_for(10s);
    REQUIRE(ward.changes.size() == 1);
    CHECK(ward.changes[0].second.run == 1);
  }
  SECTION("deleted") {
    record.deleting = true;
    ward.probes->follow(record);
    CHECK(ward.probes->size() == 0);
  }
  SECTION("forgotten while it is probed") {
    ward.exits(0, true);
    ward.reactor.run_for(10s);
    ward.probes->forget(record.key().uid);
    ward.reactor.run_for(10s);
    CHECK(ward.changes.empty());
  }
}

TEST_CASE("a probe that hangs fails at its time-out, and holds up no other") {
  Ward ward;
  ward.exits(0, true);
  model::Probe slow = a_probe();
  slow.timeout = 5s;
  slow.failure_threshold = 1;
  ward.probes->follow(ward.pod({}, slow, {}, 1));
  ward.reactor.run_for(1s);
  ward.exits(0);
  ward.probes->follow(ward.pod(a_probe(), {}, {}, 2));
  ward.reactor.run_for(1s);
  REQUIRE(ward.changes.size() == 1);
  CHECK(ward.changes[0].first == base::PodUid("uid-2"));
  ward.reactor.run_for(4s);
  REQUIRE(ward.changes.size() == 2);
  CHECK(ward.changes[1].second.probe == ProbeKind::kLiveness);
  CHECK_FALSE(ward.changes[1].second.passes);
}

TEST_CASE("an exec that the provider cannot do says nothing of the container") {
  Ward ward;
  ward.provider->exec = [] {
    return base::Result<provider::ExecSessionPtr>(base::fail(ErrorKind::kUnavailable, "503"));
  };
  ward.probes->follow(ward.pod({}, a_probe()));
  ward.reactor.run_for(5min);
  CHECK(ward.changes.empty());
  CHECK(ward.provider->execs.size() > 20);
}

TEST_CASE("a port at which nobody listens fails the probe, and not the provider") {
  Ward ward;
  ward.provider->stream = [] {
    return base::Result<async::ByteStreamPtr>(base::fail(ErrorKind::kUnavailable, "connection refused"));
  };
  ward.probes->follow(ward.pod({}, a_probe(model::Handler::Kind::kTcpSocket)));
  ward.reactor.run_for(25s);
  REQUIRE(ward.changes.size() == 1);
  CHECK(ward.told.front() == "Liveness probe failed: connection refused");
  CHECK(ward.providers.find(base::ProviderName("cloud"))->reachable());
}

TEST_CASE("what probes of many pods cost", "[.bench]") {
  Ward ward;
  model::Probe probe = a_probe(model::Handler::Kind::kHttpGet);
  ward.provider->stream = [&] {
    return base::Result<async::ByteStreamPtr>(std::make_unique<test::CannedStream>(
        ward.reactor.timers, std::deque<std::string>{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}));
  };
  for (int i = 1; i <= 5000; ++i) ward.probes->follow(ward.pod(probe, {}, {}, i));
  ward.reactor.run_for(1s);
  const std::clock_t before = std::clock();
  ward.reactor.run_for(100s);
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  WARN("5000 pods with a readiness probe each 10 s use " << seconds << " % of a core");
  CHECK(ward.changes.size() == 5000);
  CHECK(seconds < 10);
}
