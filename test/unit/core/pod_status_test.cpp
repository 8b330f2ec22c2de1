#include "vk-provider/core/pod_status.hpp"

#include <catch2/catch.hpp>

#include "test/support/pod_builder.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;
using model::ConditionType;
using model::PodCondition;
using Kind = model::ContainerStatusState::Kind;

namespace {

const base::Now kNow{base::TimePoint(1h),
                     base::WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 2)) + 123456us};
const base::WallTime kSecond = std::chrono::floor<std::chrono::seconds>(kNow.wall);

model::PodRecord record_in(model::Stage stage) {
  model::PodRecord record = admit(test::share(test::a_pod()), test::seen_at(), kNow);
  record.placement = test::a_placement();
  record.provider = test::facts();
  record.containers.resize(1);
  record.containers[0].claim.name = "main";
  record.stage = std::move(stage);
  return record;
}

model::PodRecord running() {
  model::Instance instance = test::an_instance(model::InstanceState::kRunning);
  instance.containers[0].started_at = kNow.wall;
  instance.containers[0].container_id = "abc";
  instance.address = "203.0.113.9";
  model::PodRecord record = record_in(model::Running{instance});
  record.containers[0].claim = instance.containers[0];
  record.ran = true;
  return record;
}

bool is(const model::PodStatus& status, ConditionType type, bool value) {
  return status.condition(type).status == (value ? PodCondition::Status::kTrue : PodCondition::Status::kFalse);
}

}  // namespace

TEST_CASE("nothing is said before there is something to say") {
  CHECK_FALSE(wanted_status(record_in(model::Admitted{}), "192.0.2.1", kNow));
  CHECK_FALSE(wanted_status(record_in(model::Choosing{}), "192.0.2.1", kNow));
  CHECK_FALSE(wanted_status(record_in(model::Creating{}), "192.0.2.1", kNow));
  model::Stopping deleted;
  deleted.why = model::StopReason::kDeleted;
  CHECK_FALSE(wanted_status(record_in(deleted), "192.0.2.1", kNow));
  model::Waiting unreadable;
  unreadable.why = model::WaitReason::kUnreadableState;
  CHECK_FALSE(wanted_status(record_in(unreadable), "192.0.2.1", kNow));
}

TEST_CASE("while it is bought: Pending, ContainerCreating, scheduled and initialized but not ready") {
  const model::PodStatus status = starting_status(record_in(model::Creating{}), "192.0.2.1", kNow);
  CHECK(status.phase == model::PodPhase::kPending);
  CHECK(status.start_time == kSecond);
  CHECK(status.host_ip == "192.0.2.1");
  REQUIRE(status.containers.size() == 1);
  CHECK(status.containers[0].state.kind == Kind::kWaiting);
  CHECK(status.containers[0].state.reason == "ContainerCreating");
  CHECK(is(status, ConditionType::kPodScheduled, true));
  CHECK(is(status, ConditionType::kInitialized, true));
  CHECK(is(status, ConditionType::kPodReadyToStartContainers, false));
  CHECK(is(status, ConditionType::kReady, false));
  CHECK(status.condition(ConditionType::kReady).reason == "ContainersNotReady");
  CHECK(status.condition(ConditionType::kReady).message == "containers with unready status: [main]");
}

TEST_CASE("running and ready; the podIP only where addresses are routable") {
  model::PodRecord record = running();
  auto status = wanted_status(record, "192.0.2.1", kNow);
  REQUIRE(status);
  CHECK(status->phase == model::PodPhase::kRunning);
  CHECK(status->pod_ip.empty());
  CHECK(status->containers[0].ready);
  CHECK(status->containers[0].started);
  CHECK(status->containers[0].container_id == "cloud://abc");
  CHECK(status->containers[0].state.started_at == kSecond);
  CHECK(is(*status, ConditionType::kReady, true));
  CHECK(status->condition(ConditionType::kReady).reason.empty());
  record.provider.address_routable = true;
  CHECK(wanted_status(record, "192.0.2.1", kNow)->pod_ip == "203.0.113.9");
}

TEST_CASE("a condition's transition time moves only when its status does, and startTime never") {
  model::PodRecord record = running();
  const auto first = wanted_status(record, "192.0.2.1", kNow);
  record.observed.status = *first;
  const base::Now later{kNow.steady + 1h, kNow.wall + 1h};
  CHECK(*wanted_status(record, "192.0.2.1", later) == *first);
  record.observed.status.condition(ConditionType::kReady).status = PodCondition::Status::kFalse;
  const auto mended = wanted_status(record, "192.0.2.1", later);
  CHECK(mended->condition(ConditionType::kReady).last_transition ==
        std::chrono::floor<std::chrono::seconds>(later.wall));
  CHECK(mended->start_time == first->start_time);
}

TEST_CASE("a readiness gate that is not True keeps the pod unready, its containers ready") {
  model::PodRecord record = running();
  record.observed.readiness_gates_true = false;
  const auto status = wanted_status(record, "192.0.2.1", kNow);
  CHECK(is(*status, ConditionType::kContainersReady, true));
  CHECK(is(*status, ConditionType::kReady, false));
  CHECK(status->condition(ConditionType::kReady).reason == "ReadinessGatesNotReady");
}

TEST_CASE("in its restart back-off a container is waiting, and its last state is told") {
  model::PodRecord record = running();
  auto& container = record.containers[0];
  container.claim = test::exited(3, kNow.wall).containers[0];
  container.restart_at = kNow.steady + 10s;
  container.crashes_in_a_row = 2;
  container.restarts = 4;
  container.last_state = model::ContainerStatusState();
  container.last_state->kind = Kind::kTerminated;
  container.last_state->exit_code = 3;
  const auto status = wanted_status(record, "192.0.2.1", kNow);
  CHECK(status->phase == model::PodPhase::kRunning);
  CHECK(status->containers[0].state.reason == "CrashLoopBackOff");
  CHECK(status->containers[0].state.message.starts_with(
      "back-off 20s restarting failed container=main pod=web-0_team-a("));
  CHECK(status->containers[0].restart_count == 4);
  CHECK(status->containers[0].last_state.exit_code == 3);
  CHECK_FALSE(status->containers[0].ready);
}

TEST_CASE("waiting shows why") {
  model::Waiting waiting;
  waiting.why = model::WaitReason::kImagePull;
  waiting.message = "manifest unknown";
  const auto status = wanted_status(record_in(waiting), "192.0.2.1", kNow);
  CHECK(status->phase == model::PodPhase::kPending);
  CHECK(status->containers[0].state.reason == "ImagePullBackOff");
  CHECK(status->containers[0].state.message == "manifest unknown");
}

TEST_CASE("the end: exit codes, reasons and conditions") {
  model::PodRecord record = running();
  record.stage = model::Finished{};
  record.containers[0].claim = test::exited(0, kNow.wall).containers[0];
  record.outcome = model::Outcome{model::PodPhase::kSucceeded, "", "", ""};
  auto status = wanted_status(record, "192.0.2.1", kNow);
  CHECK(status->phase == model::PodPhase::kSucceeded);
  CHECK(status->containers[0].state.kind == Kind::kTerminated);
  CHECK(status->containers[0].state.reason == "Completed");
  CHECK(status->condition(ConditionType::kReady).reason == "PodCompleted");
  CHECK(is(*status, ConditionType::kReady, false));

  record.outcome = model::Outcome{model::PodPhase::kFailed, "Preempted", "taken back", "PreemptionByProvider"};
  record.containers[0].claim = test::an_instance(model::InstanceState::kRunning).containers[0];
  status = wanted_status(record, "192.0.2.1", kNow);
  CHECK(status->containers[0].state.exit_code == 137);
  CHECK(status->containers[0].state.reason == "ContainerStatusUnknown");
  CHECK(is(*status, ConditionType::kDisruptionTarget, true));
  CHECK(status->condition(ConditionType::kDisruptionTarget).reason == "PreemptionByProvider");
}

TEST_CASE("a terminal phase in the API is never left") {
  model::PodRecord record = running();
  record.observed.status.phase = model::PodPhase::kFailed;
  CHECK_FALSE(wanted_status(record, "192.0.2.1", kNow));
}

TEST_CASE("published ports become a map of addresses") {
  model::PodRecord record = running();
  CHECK(wanted_addresses(record).empty());
  model::InstancePort port;
  port.container_port = 8080;
  port.host = "203.0.113.7";
  port.public_port = 31744;
  std::get<model::Running>(record.stage).instance.ports = {port};
  CHECK(wanted_addresses(record) == R"({"8080":"203.0.113.7:31744"})");
  std::get<model::Running>(record.stage).instance.ports[0].host = "2001:db8::1";
  CHECK(wanted_addresses(record) == R"({"8080":"[2001:db8::1]:31744"})");
}
