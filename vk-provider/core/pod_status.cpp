#include "vk-provider/core/pod_status.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core {
namespace {

using model::ConditionType;
using model::ContainerRecord;
using model::ContainerState;
using model::ContainerStatus;
using model::ContainerStatusState;
using model::PodCondition;
using model::PodPhase;
using model::PodRecord;
using model::PodStatus;

ContainerStatusState waiting(std::string reason, std::string message) {
  ContainerStatusState state;
  state.kind = ContainerStatusState::Kind::kWaiting;
  state.reason = std::move(reason);
  state.message = std::move(message);
  return state;
}

ContainerStatusState lost_container(const ContainerRecord& container, base::Now now) {
  ContainerStatusState state = to_status_state(container.claim);
  if (state.kind == ContainerStatusState::Kind::kTerminated) return state;
  const auto started_at = state.started_at;
  state = {};
  state.kind = ContainerStatusState::Kind::kTerminated;
  state.exit_code = 137;
  state.reason = "ContainerStatusUnknown";
  state.message = "The container could not be located when the pod was terminated";
  state.started_at = started_at;
  state.finished_at = std::chrono::floor<std::chrono::seconds>(now.wall);
  return state;
}

ContainerStatusState crash_loop(const ContainerRecord& container, const model::PodKey& pod) {
  const auto delay = std::chrono::duration_cast<std::chrono::seconds>(
      base::backoff_delay(kRestartBackoff, container.crashes_in_a_row));
  return waiting("CrashLoopBackOff", fmt::format("back-off {}s restarting failed container={} pod={}_{}({})",
                                                 delay.count(), container.claim.name, pod.name, pod.ns, pod.uid.str()));
}

ContainerStatusState state_of(const PodRecord& record, const ContainerRecord* container, base::Now now) {
  if (const auto* w = std::get_if<model::Waiting>(&record.stage))
    return waiting(std::string(to_string(w->why)), w->message);
  if (const auto* stopping = std::get_if<model::Stopping>(&record.stage);
      stopping != nullptr && stopping->why == model::StopReason::kImagePull) {
    return waiting("ErrImagePull", stopping->message);
  }
  if (container == nullptr) return waiting("ContainerCreating", "");
  if (record.outcome) {
    if (record.ran) return lost_container(*container, now);
    return waiting(record.outcome->reason.empty() ? "ContainerCreating" : record.outcome->reason,
                   record.outcome->message);
  }
  if (container->restart_at || container->restart_under_way) return crash_loop(*container, record.key());
  return to_status_state(container->claim);
}

std::string with_scheme(const PodRecord& record, const std::string& id) {
  if (id.empty() || id.find("://") != std::string::npos || !record.placement) return id;
  return record.placement->provider.str() + "://" + id;
}

std::vector<ContainerStatus> container_statuses(const PodRecord& record, base::Now now) {
  std::vector<ContainerStatus> statuses;
  statuses.reserve(record.spec->containers.size());
  for (const model::ContainerSpec& spec : record.spec->containers) {
    const auto it = std::find_if(record.containers.begin(), record.containers.end(),
                                 [&](const ContainerRecord& c) { return c.claim.name == spec.name; });
    const ContainerRecord* container = it == record.containers.end() ? nullptr : &*it;
    ContainerStatus& status = statuses.emplace_back();
    status.name = spec.name;
    status.image = spec.image;
    status.state = state_of(record, container, now);
    status.ready = status.state.kind == ContainerStatusState::Kind::kRunning;
    status.started = status.ready;
    if (container == nullptr) continue;
    status.restart_count = container->restarts;
    if (container->last_state) status.last_state = *container->last_state;
    status.last_state.container_id = with_scheme(record, status.last_state.container_id);
    status.state.container_id = with_scheme(record, status.state.container_id);
    status.image_id = container->claim.image_id;
    status.container_id = with_scheme(record, container->claim.container_id);
  }
  std::sort(statuses.begin(), statuses.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return statuses;
}

void set(PodStatus& status, const PodStatus& observed, ConditionType type, bool value, base::Now now,
         std::string reason = {}, std::string message = {}) {
  PodCondition& condition = status.condition(type);
  condition.status = value ? PodCondition::Status::kTrue : PodCondition::Status::kFalse;
  condition.reason = std::move(reason);
  condition.message = std::move(message);
  const PodCondition& before = observed.condition(type);
  condition.last_transition = before.status == condition.status && before.last_transition
                                  ? before.last_transition
                                  : std::chrono::floor<std::chrono::seconds>(now.wall);
}

std::string unready_message(const std::vector<ContainerStatus>& containers) {
  std::string names;
  for (const ContainerStatus& c : containers) {
    if (!c.ready) names += (names.empty() ? "" : " ") + c.name;
  }
  return "containers with unready status: [" + names + "]";
}

void set_conditions(PodStatus& status, const PodRecord& record, base::Now now) {
  const PodStatus& observed = record.observed.status;
  const bool has_instance = std::holds_alternative<model::Running>(record.stage);
  const bool all_ready =
      std::all_of(status.containers.begin(), status.containers.end(), [](const auto& c) { return c.ready; });

  set(status, observed, ConditionType::kPodScheduled, true, now);
  set(status, observed, ConditionType::kInitialized, true, now,
      status.phase == PodPhase::kSucceeded ? "PodCompleted" : "");
  set(status, observed, ConditionType::kPodReadyToStartContainers, has_instance, now);
  std::string reason;
  std::string message;
  if (status.phase == PodPhase::kSucceeded) {
    reason = "PodCompleted";
  } else if (status.phase == PodPhase::kFailed) {
    reason = "PodFailed";
  } else if (!all_ready) {
    reason = "ContainersNotReady";
    message = unready_message(status.containers);
  }
  const bool containers_ready = all_ready && reason.empty();
  set(status, observed, ConditionType::kContainersReady, containers_ready, now, reason, message);
  if (containers_ready && !record.observed.readiness_gates_true) {
    set(status, observed, ConditionType::kReady, false, now, "ReadinessGatesNotReady",
        "a condition of spec.readinessGates is not True");
  } else {
    set(status, observed, ConditionType::kReady, containers_ready, now, reason, message);
  }
  if (record.outcome && !record.outcome->disruption.empty()) {
    set(status, observed, ConditionType::kDisruptionTarget, true, now, record.outcome->disruption,
        record.outcome->message);
  } else {
    status.condition(ConditionType::kDisruptionTarget) = observed.condition(ConditionType::kDisruptionTarget);
  }
}

PodStatus make_status(const PodRecord& record, const base::SharedText& host_ip, base::Now now) {
  PodStatus status;
  status.host_ip = host_ip;
  status.start_time = record.observed.status.start_time
                          ? record.observed.status.start_time
                          : std::optional(std::chrono::floor<std::chrono::seconds>(now.wall));
  if (record.outcome) {
    status.phase = record.outcome->phase;
    status.reason = record.outcome->reason;
    status.message = record.outcome->message;
  } else if (const auto* running = std::get_if<model::Running>(&record.stage)) {
    status.phase = PodPhase::kRunning;
    if (record.provider.address_routable) status.pod_ip = running->instance.address;
  } else {
    status.phase = PodPhase::kPending;
  }
  status.containers = container_statuses(record, now);
  set_conditions(status, record, now);
  return status;
}

bool has_something_to_say(const PodRecord& record) {
  if (record.api_gone || model::is_terminal(record.observed.status.phase)) return false;
  if (record.outcome) {
    // What is left of a lost or deleted pod is ended first; then its end is told.
    const auto* stopping = std::get_if<model::Stopping>(&record.stage);
    return std::holds_alternative<model::Finished>(record.stage) ||
           (stopping != nullptr && stopping->why == model::StopReason::kCompleted);
  }
  if (const auto* creating = std::get_if<model::Creating>(&record.stage)) return creating->intent_written;
  if (const auto* stopping = std::get_if<model::Stopping>(&record.stage)) {
    return stopping->why == model::StopReason::kImagePull;
  }
  if (const auto* running = std::get_if<model::Running>(&record.stage)) {
    // Absent from a listing once: nothing is concluded, and nothing new is known.
    return running->instance.state != model::InstanceState::kUnknown;
  }
  if (const auto* waiting = std::get_if<model::Waiting>(&record.stage)) {
    // Whoever can read our note may have it Running: what stands on the pod is truer than what we could say.
    return waiting->why != model::WaitReason::kUnreadableState;
  }
  return std::holds_alternative<model::Booting>(record.stage);
}

}  // namespace

std::optional<PodStatus> wanted_status(const PodRecord& record, const base::SharedText& host_ip, base::Now now) {
  if (!has_something_to_say(record)) return std::nullopt;
  return make_status(record, host_ip, now);
}

PodStatus starting_status(const PodRecord& record, const base::SharedText& host_ip, base::Now now) {
  return make_status(record, host_ip, now);
}

std::optional<model::StateRecord> wanted_state(const PodRecord& record) {
  if (!record.placement) return std::nullopt;
  model::StateRecord state;
  state.placement = *record.placement;
  state.ran = record.ran;
  if (const auto* booting = std::get_if<model::Booting>(&record.stage)) state.instance = booting->instance.ref.id;
  if (const auto* running = std::get_if<model::Running>(&record.stage)) state.instance = running->instance.ref.id;
  if (const auto* stopping = std::get_if<model::Stopping>(&record.stage)) state.instance = stopping->ref.id;
  if (const auto* finished = std::get_if<model::Finished>(&record.stage); finished != nullptr && finished->kept) {
    state.instance = finished->kept->id;
  }
  return state;
}

std::string wanted_addresses(const PodRecord& record) {
  const auto* running = std::get_if<model::Running>(&record.stage);
  if (running == nullptr || running->instance.ports.empty()) return {};
  std::string text = "{";
  for (const model::InstancePort& port : running->instance.ports) {
    if (text.size() > 1) text += ',';
    const bool v6 = port.host.find(':') != std::string::npos;
    text += fmt::format("\"{}\":\"{}{}{}:{}\"", port.container_port, v6 ? "[" : "", port.host, v6 ? "]" : "",
                        port.public_port);
  }
  return text + "}";
}

}  // namespace spillway::core
