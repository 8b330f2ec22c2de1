// Hooks, verdicts of probes, the active deadline and placeholders, through core::advance.
#include <catch2/catch.hpp>

#include "test/unit/core/machine.hpp"
#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;
using model::PodPhase;
using model::RestartPolicy;
using spillway::test::Machine;
using Names = std::vector<std::string>;

namespace {

model::Handler a_hook() {
  model::Handler hook;
  hook.command = {"true"};
  return hook;
}

model::PodSpec with_hooks(bool post_start, bool pre_stop, RestartPolicy policy = RestartPolicy::kAlways) {
  model::PodSpec pod = test::a_pod();
  pod.restart_policy = policy;
  model::ContainerSpec& c = pod.containers.edit()[0];
  if (post_start) c.post_start = a_hook();
  if (pre_stop) c.pre_stop = a_hook();
  return pod;
}

model::PodSpec with_probes() {
  model::PodSpec pod = test::a_pod();
  model::ContainerSpec& c = pod.containers.edit()[0];
  c.readiness_probe = model::Probe();
  c.liveness_probe = model::Probe();
  c.startup_probe = model::Probe();
  return pod;
}

void ends(Machine& m, Hook hook, bool fails = false) {
  event::HookEnded ended;
  ended.container = "main";
  ended.run = m.of("main").restarts;
  ended.hook = hook;
  if (fails) ended.error = base::Error(base::ErrorKind::kInvalid, "exit code 1");
  m.on(ended);
}

void says(Machine& m, ProbeKind probe, bool passes, std::int32_t run = 0) {
  event::ProbeChanged changed;
  changed.container = "main";
  changed.run = run;
  changed.probe = probe;
  changed.passes = passes;
  m.on(changed);
}

bool ready(const Machine& m) {
  return m.status().condition(model::ConditionType::kReady).status == model::PodCondition::Status::kTrue;
}

}  // namespace

TEST_CASE("a container with a postStart hook is ours to start, and is not started before the hook has ended") {
  Machine m(with_hooks(true, false));
  m.instance.state = model::InstanceState::kPending;
  m.boot();
  CHECK(m.stage() == "booting");
  REQUIRE(m.does<action::StartContainer>());
  m.runs("main");
  m.on(event::ContainerStarted{"main"});
  REQUIRE(m.does<action::RunHook>());
  CHECK(m.did<action::RunHook>()->hook == Hook::kPostStart);
  m.instance.state = model::InstanceState::kRunning;
  m.look();
  CHECK_FALSE(m.does<action::RunHook>());
  CHECK(m.stage() == "running");
  CHECK(m.status().phase == PodPhase::kRunning);
  CHECK_FALSE(m.status().containers[0].started);
  CHECK_FALSE(ready(m));
  ends(m, Hook::kPostStart);
  CHECK(m.status().containers[0].started);
  CHECK(ready(m));
}

TEST_CASE("a postStart hook that fails stops the container, which comes back by its policy and has its hook again") {
  Machine m(with_hooks(true, false));
  m.runs("main");
  m.boot();
  REQUIRE(m.does<action::RunHook>());
  ends(m, Hook::kPostStart, true);
  const auto told = m.all<action::Tell>();
  REQUIRE(told.size() == 2);
  CHECK(told[0].reason == "FailedPostStartHook");
  CHECK(told[0].message == "PostStartHook failed: exit code 1");
  CHECK(told[1].reason == "Killing");
  REQUIRE(m.does<action::StopContainer>());
  CHECK(m.did<action::StopContainer>()->grace == 30s);
  m.on(event::ContainerStopAccepted{"main"});
  m.pass(1s);
  m.exits("main", 143);
  m.look();
  CHECK(m.stage() == "running");
  m.pass(10s);
  m.on(event::Tick{});
  REQUIRE(m.does<action::StartContainer>());
  m.on(event::ContainerStarted{"main"});
  REQUIRE(m.does<action::RunHook>());
  CHECK(m.did<action::RunHook>()->run == 1);
}

TEST_CASE("preStop runs before the end of a deleted pod, and what is left of the grace goes to its end") {
  Machine m(with_hooks(false, true));
  m.runs("main");
  m.boot();
  m.user_deletes(30s);
  REQUIRE(m.does<action::RunHook>());
  CHECK(m.did<action::RunHook>()->timeout == 30s);
  CHECK_FALSE(m.does<action::Terminate>());
  SECTION("it ends in time") {
    m.pass(10s);
    ends(m, Hook::kPreStop);
    REQUIRE(m.does<action::Terminate>());
    CHECK(m.did<action::Terminate>()->grace == 20s);
  }
  SECTION("it fails") {
    ends(m, Hook::kPreStop, true);
    CHECK(m.told() == "FailedPreStopHook");
    CHECK(m.does<action::Terminate>());
  }
  SECTION("it never ends") {
    m.pass(30s);
    m.on(event::Tick{});
    REQUIRE(m.does<action::Terminate>());
    CHECK(m.did<action::Terminate>()->grace == 2s);
    CHECK(m.told() == "FailedPreStopHook");
    CHECK(m.did<action::Tell>()->message == "PreStopHook did not end within the grace period");
    ends(m, Hook::kPreStop, true);
    CHECK(m.last.empty());
  }
  SECTION("the grace is made shorter") {
    m.user_deletes(5s);
    CHECK_FALSE(m.does<action::RunHook>());
    CHECK(m.does<action::WakeAt>());
    m.pass(5s);
    m.on(event::Tick{});
    CHECK(m.does<action::Terminate>());
  }
  SECTION("the object is forced away") {
    m.on(event::PodGone{});
    REQUIRE(m.does<action::Terminate>());
    CHECK(m.did<action::Terminate>()->grace == 0s);
  }
}

TEST_CASE("a deletion without grace skips preStop, and so does a container that does not run") {
  Machine now(with_hooks(false, true));
  now.runs("main");
  now.boot();
  now.user_deletes(0s);
  CHECK_FALSE(now.does<action::RunHook>());
  CHECK(now.does<action::Terminate>());
  Machine crashed(with_hooks(false, true));
  crashed.exits("main", 1);
  crashed.boot();
  crashed.user_deletes(30s);
  CHECK_FALSE(crashed.does<action::RunHook>());
  CHECK(crashed.does<action::Terminate>());
}

TEST_CASE("a pod that was deleted while no daemon ran still has its preStop") {
  model::ObservedPod observed = test::with_state(true, "i-1");
  observed.deletion_timestamp = base::WallTime{};
  observed.deletion_grace = 30s;
  Machine m(with_hooks(false, true), observed);
  m.runs("main");
  m.join(m.instance);
  CHECK(m.does<action::RunHook>());
  CHECK_FALSE(m.does<action::Terminate>());
}

TEST_CASE("readiness drives the pod's Ready, and an old run's verdict means nothing") {
  model::PodSpec spec = with_probes();
  spec.containers.edit()[0].startup_probe.reset();
  Machine m(spec);
  m.runs("main");
  m.boot();
  CHECK(m.status().containers[0].started);
  CHECK_FALSE(ready(m));
  says(m, ProbeKind::kReadiness, true, 7);
  CHECK_FALSE(ready(m));
  says(m, ProbeKind::kReadiness, true);
  CHECK(ready(m));
  says(m, ProbeKind::kReadiness, false);
  CHECK_FALSE(ready(m));
  CHECK(m.status().phase == PodPhase::kRunning);
}

TEST_CASE("a startup probe gates started") {
  Machine m(with_probes());
  m.runs("main");
  m.boot();
  says(m, ProbeKind::kReadiness, true);
  CHECK_FALSE(m.status().containers[0].started);
  CHECK_FALSE(ready(m));
  says(m, ProbeKind::kStartup, true);
  CHECK(m.status().containers[0].started);
  CHECK(ready(m));
}

TEST_CASE("a sidecar's startup probe holds back what follows") {
  model::ContainerSpec proxy = test::a_sidecar("proxy");
  proxy.startup_probe = model::Probe();
  Machine m(test::a_pod_with({proxy}));
  m.runs("proxy");
  m.boot();
  CHECK(m.starts().empty());
  event::ProbeChanged changed;
  changed.container = "proxy";
  changed.probe = ProbeKind::kStartup;
  changed.passes = true;
  m.on(changed);
  CHECK(m.starts() == Names{"main"});
}

TEST_CASE("a failed liveness probe stops the container with its grace, after preStop, and the restart is counted") {
  model::PodSpec spec = with_probes();
  spec.containers.edit()[0].liveness_probe->grace = 7s;
  spec.containers.edit()[0].pre_stop = a_hook();
  Machine m(spec);
  m.runs("main");
  m.boot();
  says(m, ProbeKind::kLiveness, false);
  REQUIRE(m.did<action::Tell>() != nullptr);
  CHECK(m.did<action::Tell>()->reason == "Killing");
  CHECK(m.did<action::Tell>()->message == "Container main failed liveness probe, will be restarted");
  REQUIRE(m.does<action::RunHook>());
  CHECK(m.did<action::RunHook>()->timeout == 7s);
  says(m, ProbeKind::kLiveness, false);
  CHECK(m.last.empty());
  m.pass(3s);
  ends(m, Hook::kPreStop);
  REQUIRE(m.does<action::StopContainer>());
  CHECK(m.did<action::StopContainer>()->grace == 4s);
  m.on(event::ContainerStopAccepted{"main"});
  m.pass(1s);
  m.exits("main", 137);
  m.look();
  m.pass(10s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"main"});
  CHECK(m.of("main").restarts == 1);
  CHECK_FALSE(m.of("main").stop.has_value());
}

TEST_CASE("a stop that fails or has no effect is asked for again") {
  Machine m(with_probes());
  m.runs("main");
  m.boot();
  says(m, ProbeKind::kStartup, false);
  REQUIRE(m.does<action::StopContainer>());
  m.on(event::ContainerStopFailed{"main", base::Error(base::ErrorKind::kUnavailable, "503")});
  CHECK(m.told() == "FailedKillPod");
  m.pass(2s);
  m.on(event::Tick{});
  CHECK(m.does<action::StopContainer>());
  m.on(event::ContainerStopAccepted{"main"});
  m.pass(60s);
  m.on(event::Tick{});
  CHECK(m.does<action::StopContainer>());
}

TEST_CASE("a pod that is deleted while a container is being stopped waits for the hook that runs already") {
  model::PodSpec spec = with_probes();
  spec.containers.edit()[0].pre_stop = a_hook();
  Machine m(spec);
  m.runs("main");
  m.boot();
  says(m, ProbeKind::kLiveness, false);
  REQUIRE(m.does<action::RunHook>());
  m.user_deletes(30s);
  CHECK_FALSE(m.does<action::RunHook>());
  CHECK_FALSE(m.does<action::Terminate>());
  ends(m, Hook::kPreStop);
  CHECK(m.does<action::Terminate>());
}

TEST_CASE("a new daemon keeps what was said of a container that still runs") {
  model::ObservedPod observed = test::with_state(true, "i-1");
  observed.status.phase = PodPhase::kRunning;
  Machine m(with_probes(), observed);
  m.runs("main");
  model::ContainerStatus& told = m.record.observed.status.containers.emplace_back();
  told.name = "main";
  told.ready = true;
  told.started = true;
  told.state.kind = model::ContainerStatusState::Kind::kRunning;
  told.state.started_at = std::chrono::floor<std::chrono::seconds>(m.now.wall);
  m.join(m.instance);
  CHECK(ready(m));
}

TEST_CASE("activeDeadlineSeconds: from the start time, then Failed, and the instance is given back") {
  model::ObservedPod observed = test::seen_at();
  observed.active_deadline = 60s;
  Machine m(test::a_pod(), observed);
  m.runs("main");
  SECTION("while it runs") {
    m.boot();
    m.record.observed.status.start_time = m.now.wall;
    m.pass(59s);
    m.on(event::Tick{});
    CHECK(m.stage() == "running");
    REQUIRE(m.does<action::WakeAt>());
    m.pass(1s);
    m.on(event::Tick{});
    CHECK(m.stage() == "stopping");
    REQUIRE(m.does<action::Terminate>());
    CHECK(m.did<action::Terminate>()->grace == 30s);
    m.on(event::TerminateAccepted{});
    m.on(event::InstanceGone{});
  }
  SECTION("while it waits") {
    m.join();
    m.record.observed.status.start_time = m.now.wall;
    m.on(event::Held{model::WaitReason::kNoCapacity, "why", m.now.steady + 10min});
    m.pass(60s);
    m.on(event::Tick{});
  }
  CHECK(m.stage() == "finished");
  CHECK(m.status().phase == PodPhase::kFailed);
  CHECK(m.status().reason == "DeadlineExceeded");
}

TEST_CASE("activeDeadlineSeconds that are set or lowered while the pod runs hold from then on") {
  Machine m(test::a_pod());
  m.runs("main");
  m.boot();
  m.record.observed.status.start_time = m.now.wall;
  const auto sees = [&](std::chrono::seconds deadline) {
    model::ObservedPod observed = m.record.observed;
    observed.active_deadline = deadline;
    m.on(event::PodSeen{observed});
  };
  m.pass(20s);
  sees(100s);
  CHECK(m.stage() == "running");
  REQUIRE(m.does<action::WakeAt>());
  CHECK(m.did<action::WakeAt>()->when == m.now.steady + 80s);
  sees(30s);
  REQUIRE(m.does<action::WakeAt>());
  CHECK(m.did<action::WakeAt>()->when == m.now.steady + 10s);
  SECTION("when it is over") {
    m.pass(10s);
    m.on(event::Tick{});
  }
  SECTION("at once, if it has been over for long") { sees(5s); }
  CHECK(m.stage() == "stopping");
  REQUIRE(m.record.outcome);
  CHECK(m.record.outcome->reason == "DeadlineExceeded");
}

TEST_CASE("a pod that broke a limit of its own is Failed as Evicted, and its instance is given back at once") {
  Machine m(with_hooks(false, true));
  m.runs("main");
  m.boot();
  m.instance.evicted = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\".";
  CHECK_FALSE(tells_nothing_new(m.record, *instance_of(m.record), m.instance));
  m.look();
  CHECK(m.stage() == "stopping");
  CHECK(m.told() == "Evicted");
  CHECK(m.does<action::NoteFailure>());
  // As by a kubelet: a second is left to it and to its hook.
  REQUIRE(m.does<action::RunHook>());
  CHECK(m.did<action::RunHook>()->timeout == 1s);
  m.pass(1s);
  ends(m, Hook::kPreStop, true);
  REQUIRE(m.does<action::Terminate>());
  CHECK(m.did<action::Terminate>()->grace == 2s);
  m.on(event::TerminateAccepted{});
  m.on(event::InstanceGone{});
  CHECK(m.stage() == "finished");
  CHECK(m.status().phase == PodPhase::kFailed);
  CHECK(m.status().reason == "Evicted");
  CHECK(m.status().message == "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\".");
  // It is the pod's own doing, and no disruption.
  CHECK(m.status().condition(model::ConditionType::kDisruptionTarget).status == model::PodCondition::Status::kAbsent);
}

TEST_CASE("a pod whose work is over is not evicted any more") {
  Machine m(test::two_containers(RestartPolicy::kNever));
  m.runs("main");
  m.runs("aside");
  m.boot();
  m.exits("main", 0);
  m.exits("aside", 0);
  m.instance.evicted = "too much";
  m.look();
  REQUIRE(m.record.outcome);
  CHECK(m.record.outcome->phase == PodPhase::kSucceeded);
}

TEST_CASE("a DaemonSet's pod that tolerates everything is shown as Running, and nothing is bought") {
  model::PodSpec spec = test::a_pod_with({test::a_container("setup")});
  spec.owner.kind = "DaemonSet";
  spec.tolerates_everything = true;
  spec.containers.edit()[0].readiness_probe = model::Probe();
  Machine m(spec);
  m.on(event::Joined{});
  CHECK(m.last.empty());
  CHECK(m.stage() == "running");
  CHECK(m.status().phase == PodPhase::kRunning);
  CHECK(ready(m));
  CHECK_FALSE(wanted_state(m.record).has_value());
  const model::PodStatus told = m.status();

  SECTION("it is deleted at once") {
    m.user_deletes(30s);
    CHECK_FALSE(m.does<action::Terminate>());
    CHECK(m.stage() == "finished");
    CHECK(m.status().phase == PodPhase::kSucceeded);
    m.publish();
    CHECK(m.does<action::CloseEntry>());
  }
  SECTION("it is forced away") {
    m.on(event::PodGone{});
    CHECK(m.does<action::Forget>());
  }
  SECTION("a new daemon says the same of it") {
    model::ObservedPod observed = test::seen_at();
    observed.status = told;
    Machine next(spec, observed);
    next.pass(1h);
    next.on(event::Joined{});
    CHECK(model::shows(told, next.status()));
  }
  SECTION("one that was bought for is a pod like any other") {
    CHECK_FALSE(is_placeholder(spec, test::with_state(true, "i-1")));
    model::PodSpec job = spec;
    job.owner.kind = "Job";
    CHECK_FALSE(is_placeholder(job, test::seen_at()));
  }
}
