#include "vk-provider/core/pod_status.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"
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

/// What is said of a container that was not started yet: with init containers, all wait for the pod's initialization.
ContainerStatusState not_started(const PodRecord& record) {
  return waiting(init_containers(*record.spec).empty() ? "ContainerCreating" : "PodInitializing", "");
}

ContainerStatusState claimed_state(const PodRecord& record, const ContainerRecord& container) {
  const model::InstanceContainer& claim = container.claim;
  const bool plain = claim.reason.empty() || claim.reason == "ContainerCreating";
  if (claim.state == ContainerState::kWaiting && plain) return not_started(record);
  return to_status_state(claim);
}

ContainerStatusState state_of(const PodRecord& record, const ContainerRecord* container, base::Now now) {
  if (const auto* w = std::get_if<model::Waiting>(&record.stage))
    return waiting(std::string(to_string(w->why)), w->message);
  if (const auto* stopping = std::get_if<model::Stopping>(&record.stage);
      stopping != nullptr && stopping->why == model::StopReason::kImagePull) {
    return waiting("ErrImagePull", stopping->message);
  }
  if (container == nullptr) return not_started(record);
  if (record.outcome) {
    const bool never_started = !is_initialized(record) && !ever_ran(*container);
    if (record.ran && !never_started) return lost_container(*container, now);
    if (record.ran || record.outcome->reason.empty()) return not_started(record);
    return waiting(record.outcome->reason, record.outcome->message);
  }
  const bool again = container->start_under_way && container->claim.state == ContainerState::kExited;
  if (container->restart_at || again) return crash_loop(*container, record.key());
  return claimed_state(record, *container);
}

std::string with_scheme(const PodRecord& record, const std::string& id) {
  if (id.empty() || id.find("://") != std::string::npos || !record.placement) return id;
  return record.placement->provider.str() + "://" + id;
}

/// Of the container with this index: init containers first, then the main ones.
ContainerStatus container_status(const PodRecord& record, size_t index, base::Now now) {
  const model::ContainerSpec& spec = spec_of(*record.spec, index);
  const ContainerRecord* container = index < record.containers.size() ? &record.containers[index] : nullptr;
  ContainerStatus status;
  status.name = spec.name;
  status.image = spec.image;
  status.state = state_of(record, container, now);
  if (container == nullptr) return status;
  const bool runs = status.state.kind == ContainerStatusState::Kind::kRunning;
  status.started = runs && is_started(spec, *container);
  status.ready = runs && is_ready(spec, *container);
  if (role_of(*record.spec, index) == model::ContainerRole::kInit) {
    status.ready = status.state.kind == ContainerStatusState::Kind::kTerminated && status.state.exit_code == 0;
  }
  status.restart_count = container->restarts;
  if (container->last_state) status.last_state = *container->last_state;
  status.last_state.container_id = with_scheme(record, status.last_state.container_id);
  status.state.container_id = with_scheme(record, status.state.container_id);
  status.image_id = container->claim.image_id;
  status.container_id = with_scheme(record, container->claim.container_id);
  return status;
}

/// The messages of all containers together have a bound, too.
void bound_messages(PodStatus& status) {
  const size_t count = status.containers.size() + status.init_containers.size();
  if (count <= kTerminationMessages / kTerminationMessage) return;
  for (auto* list : {&status.containers, &status.init_containers}) {
    for (ContainerStatus& c : *list) {
      for (ContainerStatusState* state : {&c.state, &c.last_state}) {
        if (state->kind != ContainerStatusState::Kind::kTerminated) continue;
        state->message = bounded_text(state->message, kTerminationMessages / count);
      }
    }
  }
}

void set_container_statuses(PodStatus& status, const PodRecord& record, base::Now now) {
  const size_t inits = init_containers(*record.spec).size();
  status.init_containers.reserve(inits);
  for (size_t i = 0; i < inits; ++i) status.init_containers.push_back(container_status(record, i, now));
  status.containers.reserve(record.spec->containers.size());
  for (size_t i = 0; i < record.spec->containers.size(); ++i) {
    status.containers.push_back(container_status(record, inits + i, now));
  }
  std::ranges::sort(status.containers, {}, &ContainerStatus::name);
  bound_messages(status);
}

void set(PodStatus& status, const PodStatus& observed, ConditionType type, bool value, base::Now now,
         std::string reason = {}, std::string message = {}) {
  PodCondition& condition = status.condition(type);
  condition.status = value ? PodCondition::Status::kTrue : PodCondition::Status::kFalse;
  condition.reason = std::move(reason);
  condition.message = std::move(message);
  const PodCondition& before = observed.condition(type);
  condition.last_transition = before.last_transition;
  if (before.status != condition.status || !before.last_transition) {
    condition.last_transition = std::chrono::floor<std::chrono::seconds>(now.wall);
  }
}

std::string list_of(std::string_view what, const std::vector<std::string>& names) {
  return fmt::format("containers with {} status: [{}]", what, fmt::join(names, " "));
}

/// Those that keep the pod from being ready: sidecars and main containers.
std::vector<std::string> unready_containers(const PodStatus& status, const PodRecord& record) {
  std::vector<std::string> names;
  for (size_t i = 0; i < status.init_containers.size(); ++i) {
    const ContainerStatus& c = status.init_containers[i];
    if (role_of(*record.spec, i) == model::ContainerRole::kSidecar && !c.ready) names.push_back(c.name);
  }
  for (const ContainerStatus& c : status.containers) {
    if (!c.ready) names.push_back(c.name);
  }
  return names;
}

void set_initialized(PodStatus& status, const PodRecord& record, base::Now now) {
  const PodStatus& observed = record.observed.status;
  // What was said once stays: what a new daemon does not know yet is no news.
  const bool was_running = observed.phase == PodPhase::kRunning;
  if (status.phase == PodPhase::kSucceeded)
    return set(status, observed, ConditionType::kInitialized, true, now, "PodCompleted");
  if (is_initialized(record) || was_running) return set(status, observed, ConditionType::kInitialized, true, now);
  std::vector<std::string> names;
  for (size_t i = 0; i < status.init_containers.size(); ++i) {
    const bool passed = i < record.containers.size() && lets_pass(record, i);
    if (!passed) names.push_back(status.init_containers[i].name);
  }
  set(status, observed, ConditionType::kInitialized, false, now, "ContainersNotInitialized",
      list_of("incomplete", names));
}

void set_conditions(PodStatus& status, const PodRecord& record, base::Now now) {
  const PodStatus& observed = record.observed.status;
  const bool has_instance = std::holds_alternative<model::Running>(record.stage);
  const std::vector<std::string> unready = unready_containers(status, record);

  set(status, observed, ConditionType::kPodScheduled, true, now);
  set_initialized(status, record, now);
  set(status, observed, ConditionType::kPodReadyToStartContainers, has_instance, now);
  std::string reason;
  std::string message;
  if (status.phase == PodPhase::kSucceeded) {
    reason = "PodCompleted";
  } else if (status.phase == PodPhase::kFailed) {
    reason = "PodFailed";
  } else if (!unready.empty()) {
    reason = "ContainersNotReady";
    message = list_of("unready", unready);
  }
  const bool containers_ready = reason.empty();
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
  status.start_time = record.observed.status.start_time;
  if (!status.start_time) status.start_time = std::chrono::floor<std::chrono::seconds>(now.wall);
  if (record.outcome) {
    status.phase = record.outcome->phase;
    status.reason = record.outcome->reason;
    status.message = record.outcome->message;
  } else if (const auto* running = std::get_if<model::Running>(&record.stage)) {
    const bool pending = !is_initialized(record) || awaits_first_start(record);
    // A phase does not go back: what a new daemon does not know yet is no news.
    const bool was_running = record.observed.status.phase == PodPhase::kRunning;
    status.phase = pending && !was_running ? PodPhase::kPending : PodPhase::kRunning;
    if (record.provider.address_routable) status.pod_ip = running->instance.address;
  } else {
    status.phase = PodPhase::kPending;
  }
  status.debug_containers = record.observed.debug_containers;
  set_container_statuses(status, record, now);
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

std::optional<ContainerStatus> find_container_status(const PodRecord& record, std::string_view name, base::Now now) {
  const size_t count = init_containers(*record.spec).size() + record.spec->containers.size();
  for (size_t i = 0; i < count; ++i) {
    if (spec_of(*record.spec, i).name == name) return container_status(record, i, now);
  }
  return std::nullopt;
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
