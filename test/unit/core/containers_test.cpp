// Several containers, init containers, sidecars and their restarts, through core::advance.
#include <catch2/catch.hpp>

#include "test/unit/core/machine.hpp"
#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"
#include "vk-provider/core/pod_status.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;
using model::ContainerState;
using model::InstanceState;
using model::PodPhase;
using model::RestartPolicy;
using spillway::test::a_container;
using spillway::test::a_pod_with;
using spillway::test::a_sidecar;
using spillway::test::Machine;
using spillway::test::two_containers;
using spillway::test::with_state;
using Kind = model::ContainerStatusState::Kind;

namespace {

using Names = std::vector<std::string>;

bool is_true(const model::PodStatus& status, model::ConditionType type) {
  return status.condition(type).status == model::PodCondition::Status::kTrue;
}

}  // namespace

TEST_CASE("init containers run one after the other, then the main ones") {
  Machine m(a_pod_with({a_container("fetch"), a_container("unpack")}));
  m.runs("fetch");
  m.boot();
  CHECK(m.stage() == "running");
  CHECK(m.starts().empty());
  model::PodStatus status = m.status();
  CHECK(status.phase == PodPhase::kPending);
  CHECK_FALSE(is_true(status, model::ConditionType::kInitialized));
  CHECK(status.condition(model::ConditionType::kInitialized).reason == "ContainersNotInitialized");
  CHECK(status.condition(model::ConditionType::kInitialized).message ==
        "containers with incomplete status: [fetch unpack]");
  REQUIRE(status.init_containers.size() == 2);
  CHECK(status.init_containers[0].name == "fetch");
  CHECK(status.init_containers[0].state.kind == Kind::kRunning);
  CHECK_FALSE(status.init_containers[0].ready);
  CHECK(status.init_containers[1].state.reason == "PodInitializing");
  CHECK(status.containers[0].state.reason == "PodInitializing");
  CHECK(is_moving(m.record));

  m.exits("fetch", 0);
  m.look();
  CHECK(m.starts() == Names{"unpack"});
  CHECK(m.of("unpack").restarts == 0);
  CHECK(m.status().init_containers[0].ready);
  CHECK(m.status().init_containers[0].state.reason == "Completed");
  m.exits("unpack", 0);
  m.look();
  CHECK(m.starts() == Names{"main"});
  m.look();
  status = m.status();
  CHECK(status.phase == PodPhase::kRunning);
  CHECK(is_true(status, model::ConditionType::kInitialized));
  CHECK(is_true(status, model::ConditionType::kReady));
  CHECK_FALSE(is_moving(m.record));
  CHECK(m.starts().empty());
}

TEST_CASE("an init container that fails is restarted with back-off, and what follows waits") {
  Machine m(a_pod_with({a_container("fetch")}));
  m.runs("fetch");
  m.boot();
  m.exits("fetch", 3);
  m.look();
  CHECK(m.starts().empty());
  CHECK(m.told() == "BackOff");
  CHECK(m.status().phase == PodPhase::kPending);
  CHECK(m.status().init_containers[0].state.reason == "CrashLoopBackOff");
  CHECK(m.status().init_containers[0].last_state.exit_code == 3);
  CHECK_FALSE(is_moving(m.record));
  m.pass(10s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"fetch"});
  CHECK(m.of("fetch").restarts == 1);
  m.exits("fetch", 0);
  m.look();
  CHECK(m.starts() == Names{"main"});
}

TEST_CASE("restartPolicy Never: a failed init container fails the pod, and main containers never ran") {
  Machine m(a_pod_with({a_container("fetch"), a_container("unpack")}, RestartPolicy::kNever));
  m.runs("fetch");
  m.boot();
  m.exits("fetch", 3);
  m.look();
  CHECK(m.starts().empty());
  CHECK(m.stage() == "finished");
  CHECK(m.does<action::NoteFailure>());
  const model::PodStatus status = m.status();
  CHECK(status.phase == PodPhase::kFailed);
  CHECK(status.reason.empty());
  CHECK(status.init_containers[0].state.kind == Kind::kTerminated);
  CHECK(status.init_containers[0].state.exit_code == 3);
  CHECK(status.init_containers[1].state.reason == "PodInitializing");
  CHECK(status.containers[0].state.kind == Kind::kWaiting);
  CHECK(status.containers[0].state.reason == "PodInitializing");
  CHECK(status.condition(model::ConditionType::kInitialized).reason == "ContainersNotInitialized");
}

TEST_CASE("a rule of the container may restart it where the pod's policy would not") {
  model::ContainerSpec fetch = a_container("fetch");
  fetch.restart_policy = RestartPolicy::kNever;
  model::RestartRule rule;
  SECTION("of these exit codes") { rule.exit_codes = {42, 43}; }
  SECTION("of all but these") {
    rule.in = false;
    rule.exit_codes = {3};
  }
  fetch.restart_rules.push_back(rule);
  Machine m(a_pod_with({fetch}, RestartPolicy::kNever));
  m.runs("fetch");
  m.boot();
  m.exits("fetch", 42);
  m.look();
  CHECK(m.stage() == "running");
  m.pass(10s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"fetch"});
  m.exits("fetch", 3);
  m.look();
  CHECK(m.stage() == "finished");
  CHECK(m.record.outcome->phase == PodPhase::kFailed);
}

TEST_CASE("restartPolicy of a container stands over that of the pod") {
  model::PodSpec spec = two_containers(RestartPolicy::kAlways);
  spec.containers.edit()[1].restart_policy = RestartPolicy::kOnFailure;
  Machine m(spec);
  m.runs("main");
  m.runs("aside");
  m.boot();
  m.exits("aside", 0);
  m.look();
  CHECK_FALSE(m.of("aside").restart_at.has_value());
  CHECK(m.status().phase == PodPhase::kRunning);
  CHECK_FALSE(is_true(m.status(), model::ConditionType::kReady));
  m.pass(1s);
  m.exits("main", 0);
  m.look();
  CHECK(m.of("main").restart_at.has_value());
}

TEST_CASE("OnFailure: what failed comes back, what succeeded does not, and the pod ends with the last one") {
  Machine m(two_containers(RestartPolicy::kOnFailure));
  m.runs("main");
  m.runs("aside");
  m.boot();
  m.exits("aside", 0);
  m.exits("main", 1);
  m.look();
  CHECK(m.stage() == "running");
  m.pass(10s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"main"});
  m.pass(1s);
  m.exits("main", 0);
  m.look();
  CHECK(m.stage() == "finished");
  CHECK(m.record.outcome->phase == PodPhase::kSucceeded);
}

TEST_CASE("each container has its own back-off") {
  Machine m(two_containers(RestartPolicy::kAlways));
  m.runs("main");
  m.runs("aside");
  m.boot();
  m.exits("main", 1);
  m.look();
  m.pass(5s);
  m.exits("aside", 1);
  m.look();
  m.pass(5s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"main"});
  m.pass(5s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"aside"});
}

TEST_CASE("a sidecar starts before what follows, comes back by itself, and ends with the pod") {
  Machine m(a_pod_with({a_sidecar("proxy"), a_container("fetch")}, RestartPolicy::kNever));
  m.runs("proxy");
  m.boot();
  CHECK(m.starts() == Names{"fetch"});
  SECTION("it crashes while an init container runs, and the order goes on") {
    m.exits("proxy", 1);
    m.look();
    CHECK(m.of("proxy").restart_at.has_value());
    m.exits("fetch", 0);
    m.look();
    CHECK(m.starts() == Names{"main"});
    m.pass(10s);
    m.on(event::Tick{});
    CHECK(m.starts() == Names{"proxy"});
  }
  SECTION("nothing happens to it") {
    m.exits("fetch", 0);
    m.look();
    CHECK(m.starts() == Names{"main"});
  }
  CHECK(is_true(m.status(), model::ConditionType::kReady));
  m.pass(1s);
  m.exits("main", 0);
  m.look();
  CHECK(m.stage() == "running");
  REQUIRE(m.does<action::StopContainer>());
  CHECK(m.did<action::StopContainer>()->container == "proxy");
  CHECK(m.did<action::StopContainer>()->grace == 30s);
  m.on(event::ContainerStopAccepted{"proxy"});
  m.pass(1s);
  m.exits("proxy", 143);
  m.look();
  CHECK(m.stage() == "finished");
  CHECK(m.record.outcome->phase == PodPhase::kSucceeded);
  CHECK(std::get<model::Finished>(m.record.stage).kept.has_value());
}

TEST_CASE("several sidecars are stopped in reverse order, and one that will not end ends with the instance") {
  Machine m(a_pod_with({a_sidecar("first"), a_sidecar("second")}, RestartPolicy::kNever));
  m.runs("first");
  m.boot();
  CHECK(m.starts() == Names{"second"});
  CHECK(m.starts() == Names{"main"});
  m.exits("main", 3);
  m.look();
  CHECK(m.did<action::StopContainer>()->container == "second");
  m.on(event::ContainerStopAccepted{"second"});
  m.exits("second", 0);
  m.look();
  CHECK(m.did<action::StopContainer>()->container == "first");
  m.on(event::ContainerStopAccepted{"first"});
  m.pass(46s);
  m.on(event::Tick{});
  CHECK(m.stage() == "stopping");
  CHECK(m.does<action::Terminate>());
  CHECK(m.record.outcome->phase == PodPhase::kFailed);
}

TEST_CASE("an instance that is lost while only sidecars run keeps the outcome of its work") {
  Machine m(a_pod_with({a_sidecar("proxy")}, RestartPolicy::kNever));
  m.runs("proxy");
  m.boot();
  CHECK(m.starts() == Names{"main"});
  const int code = GENERATE(0, 3);
  m.exits("main", code);
  m.look();
  m.pass(1s);
  m.on(event::InstanceMissing{m.now.steady});
  m.on(event::InstanceMissing{m.now.steady});
  m.on(event::InstanceGone{});
  CHECK(m.record.outcome->phase == (code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed));
  CHECK(m.does<action::NoteFailure>() == (code != 0));
}

TEST_CASE("a new daemon finds its place among the init containers from the claims") {
  model::ObservedPod observed = with_state(true, "i-1");
  observed.status.phase = PodPhase::kPending;
  model::ContainerStatus& told = observed.status.init_containers.emplace_back();
  told.name = "fetch";
  told.restart_count = 2;
  Machine m(a_pod_with({a_container("fetch"), a_container("unpack")}), observed);
  m.exits("fetch", 0);
  m.join(m.instance);
  CHECK(m.of("fetch").restarts == 2);
  CHECK(m.starts() == Names{"unpack"});
  m.exits("unpack", 0);
  m.look();
  CHECK(m.starts() == Names{"main"});
}

TEST_CASE("a pod that was told Running stays so under a daemon that knows little of its containers") {
  model::ObservedPod observed = with_state(true, "i-1");
  observed.status.phase = PodPhase::kRunning;
  Machine m(a_pod_with({a_container("fetch")}), observed);
  m.instance.state = InstanceState::kTerminating;
  m.join(m.instance);
  CHECK(m.status().phase == PodPhase::kRunning);
  CHECK(is_true(m.status(), model::ConditionType::kInitialized));
}

TEST_CASE("a container whose first start fails is tried again, and that is no restart") {
  Machine m(a_pod_with({a_container("fetch")}));
  m.exits("fetch", 0);
  m.boot();
  REQUIRE(m.does<action::StartContainer>());
  m.on(event::ContainerStartFailed{"main", base::Error(base::ErrorKind::kUnavailable, "no")});
  CHECK(m.told() == "Failed");
  CHECK(m.status().phase == PodPhase::kPending);
  m.pass(10s);
  m.on(event::Tick{});
  CHECK(m.starts() == Names{"main"});
  CHECK(m.of("main").restarts == 0);
  m.look();
  CHECK(m.of("main").restarts == 0);
  CHECK(m.status().phase == PodPhase::kRunning);
}

TEST_CASE("a listing from before our start does not undo it") {
  Machine m(a_pod_with({a_container("fetch")}));
  m.exits("fetch", 0);
  m.boot();
  const model::Instance before = m.instance;
  CHECK(m.starts() == Names{"main"});
  m.on(event::InstanceSeen{before});
  CHECK_FALSE(m.does<action::StartContainer>());
  CHECK(m.of("main").claim.state == ContainerState::kRunning);
}

TEST_CASE("a start whose answer was lost shows in the next listing, and is no restart") {
  Machine m(a_pod_with({a_container("fetch")}));
  m.exits("fetch", 0);
  m.boot();
  REQUIRE(m.does<action::StartContainer>());
  SECTION("as running") { m.runs("main"); }
  SECTION("as ended") { m.exits("main", 1); }
  m.look();
  CHECK(m.of("main").restarts == 0);
  CHECK_FALSE(m.of("main").start_under_way);
  m.on(event::ContainerStarted{"main"});
  CHECK(m.of("main").restarts == 0);
}

TEST_CASE("a restart whose answer was lost is not repeated for a run that has ended well since") {
  Machine m(two_containers(RestartPolicy::kOnFailure));
  m.runs("main");
  m.runs("aside");
  m.boot();
  m.exits("main", 1);
  m.look();
  m.pass(10s);
  m.on(event::Tick{});
  REQUIRE(m.does<action::StartContainer>());
  m.on(event::ContainerStartFailed{"main", base::Error(base::ErrorKind::kDeadline, "no answer")});
  m.pass(1s);
  m.runs("main");
  m.pass(1s);
  m.exits("main", 0);
  m.look();
  m.pass(40s);
  m.on(event::Tick{});
  CHECK_FALSE(m.does<action::StartContainer>());
  m.exits("aside", 0);
  m.look();
  CHECK(m.stage() == "finished");
  CHECK(m.record.outcome->phase == PodPhase::kSucceeded);
}

TEST_CASE("termination messages are told, and bounded each and together") {
  Machine m(two_containers(RestartPolicy::kNever));
  m.runs("main");
  m.runs("aside");
  m.boot();
  m.claim("main").termination_message = "out of luck";
  m.claim("aside").termination_message = std::string(4095, 'x') + "\xC3\xA4";
  m.exits("main", 1);
  m.exits("aside", 1);
  m.look();
  CHECK(m.status().containers[1].state.message == "out of luck");
  CHECK(m.status().containers[0].state.message == std::string(4095, 'x'));

  std::vector<model::ContainerSpec> inits;
  for (int i = 0; i < 5; ++i) inits.push_back(a_container("init-" + std::to_string(i)));
  Machine many(a_pod_with(inits, RestartPolicy::kNever));
  for (int i = 0; i < 5; ++i) {
    many.claim("init-" + std::to_string(i)).termination_message = std::string(4000, 'y');
    many.exits("init-" + std::to_string(i), 0);
  }
  many.runs("main");
  many.boot();
  CHECK(many.status().init_containers[0].state.message.size() == 2048);
}

TEST_CASE("a pod deleted between its init containers has failed") {
  Machine m(a_pod_with({a_container("fetch")}));
  m.runs("fetch");
  m.boot();
  m.user_deletes();
  CHECK(m.does<action::Terminate>());
  m.on(event::TerminateAccepted{});
  m.on(event::InstanceGone{});
  CHECK(m.record.outcome->phase == PodPhase::kFailed);
}
