#include "vk-provider/core/container_fsm.hpp"

#include <algorithm>

#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core {
namespace {

using model::ContainerRecord;
using model::ContainerState;
using model::ContainerStatusState;
using model::InstanceContainer;
using model::RestartPolicy;

base::WallTime to_seconds(base::WallTime t) { return std::chrono::floor<std::chrono::seconds>(t); }

bool wants_restart(const model::PodRecord& record, const InstanceContainer& claim) {
  if (!record.provider.can_restart || record.deleting || record.outcome) return false;
  switch (record.spec->restart_policy) {
    case RestartPolicy::kAlways: return true;
    case RestartPolicy::kOnFailure: return !claim.exit_code || *claim.exit_code != 0;
    case RestartPolicy::kNever: return false;
  }
  return false;
}

/// An exit is new if the container was not seen ended before, or ended at another time than the one we answered.
bool is_new_exit(const ContainerRecord& before, const InstanceContainer& claim) {
  if (claim.finished_at) return before.handled_exit != claim.finished_at;
  return before.claim.state != ContainerState::kExited && !before.restart_at && !before.restart_under_way;
}

/// True if the claim shows a run that came of a restart which was not counted: the answer to the start was lost, with
/// or without the daemon, or the listing was faster than the answer.
bool is_uncounted_restart(const model::PodRecord& record, const ContainerRecord& before,
                          const InstanceContainer& claim) {
  if (before.restart_at || before.restart_under_way) {
    if (!claim.started_at || !before.handled_exit) return claim.state == ContainerState::kRunning;
    return *claim.started_at > *before.handled_exit;
  }
  // Another process knew it as crashed; this one looks at it for the first time.
  if (before.claim.state != ContainerState::kWaiting || !claim.started_at) return false;
  const auto& told = record.observed.status.containers;
  const auto it = std::find_if(told.begin(), told.end(), [&](const auto& status) { return status.name == claim.name; });
  if (it == told.end() || it->state.kind != ContainerStatusState::Kind::kWaiting) return false;
  // What was told has whole seconds, and between an exit and a restart lie many.
  return it->last_state.finished_at && to_seconds(*claim.started_at) > *it->last_state.finished_at;
}

void schedule_restart(ContainerRecord& container, const InstanceContainer& claim, base::Now now) {
  const bool ran_long =
      claim.started_at && claim.finished_at && *claim.finished_at - *claim.started_at >= kRestartForgotten;
  if (ran_long) container.crashes_in_a_row = 0;
  ++container.crashes_in_a_row;
  container.last_state = to_status_state(claim);
  container.restart_at = now.steady + base::backoff_delay(kRestartBackoff, container.crashes_in_a_row);
}

}  // namespace

ContainerStatusState to_status_state(const InstanceContainer& claim) {
  ContainerStatusState state;
  switch (claim.state) {
    case ContainerState::kWaiting:
      state.kind = ContainerStatusState::Kind::kWaiting;
      state.reason = claim.reason.empty() ? "ContainerCreating" : claim.reason;
      state.message = claim.message;
      break;
    case ContainerState::kRunning:
      state.kind = ContainerStatusState::Kind::kRunning;
      if (claim.started_at) state.started_at = to_seconds(*claim.started_at);
      break;
    case ContainerState::kExited:
      state.kind = ContainerStatusState::Kind::kTerminated;
      // 137 is what a kubelet writes when it cannot know.
      state.exit_code = claim.exit_code.value_or(137);
      if (!claim.reason.empty()) {
        state.reason = claim.reason;
      } else if (!claim.exit_code) {
        state.reason = "ContainerStatusUnknown";
      } else if (claim.oom_killed) {
        state.reason = "OOMKilled";
      } else {
        state.reason = *claim.exit_code == 0 ? "Completed" : "Error";
      }
      state.message = claim.message;
      if (claim.started_at) state.started_at = to_seconds(*claim.started_at);
      if (claim.finished_at) state.finished_at = to_seconds(*claim.finished_at);
      state.container_id = claim.container_id;
      break;
  }
  return state;
}

std::vector<ContainerRecord> make_container_records(const model::PodSpec& spec, const model::PodStatus& observed) {
  std::vector<ContainerRecord> records;
  records.reserve(spec.containers.size());
  for (const model::ContainerSpec& container : spec.containers) {
    ContainerRecord& record = records.emplace_back();
    record.claim.name = container.name;
    const auto it = std::find_if(observed.containers.begin(), observed.containers.end(),
                                 [&](const model::ContainerStatus& s) { return s.name == container.name; });
    if (it == observed.containers.end()) continue;
    record.restarts = it->restart_count;
    record.crashes_in_a_row = it->restart_count > 0 ? 1 : 0;
    if (it->last_state.kind != ContainerStatusState::Kind::kNone) record.last_state = it->last_state;
  }
  return records;
}

void apply_claims(model::PodRecord& record, const model::Instance& instance, base::Now now) {
  for (const InstanceContainer& claim : instance.containers) {
    const auto it = std::find_if(record.containers.begin(), record.containers.end(),
                                 [&](const ContainerRecord& c) { return c.claim.name == claim.name; });
    if (it == record.containers.end()) continue;
    ContainerRecord& container = *it;
    if (is_uncounted_restart(record, container, claim)) {
      ++container.restarts;
      container.restart_under_way = false;
    }
    if (claim.state == ContainerState::kExited) {
      const bool fresh = is_new_exit(container, claim);
      // A listing that was made before our restart took effect still shows the old end.
      if (!fresh && !container.restart_at && container.claim.state != ContainerState::kExited) continue;
      container.claim = claim;
      if (fresh && wants_restart(record, claim)) {
        container.handled_exit = claim.finished_at;
        schedule_restart(container, claim, now);
      }
      continue;
    }
    if (claim.state == ContainerState::kRunning) {
      container.restart_at.reset();
      container.restart_under_way = false;
      if (claim.started_at && now.wall - *claim.started_at >= kRestartForgotten) container.crashes_in_a_row = 0;
    }
    container.claim = claim;
  }
}

bool tells_nothing_new(const model::PodRecord& record, const model::Instance& known, const model::Instance& listed) {
  const bool same = known.ref == listed.ref && known.state == listed.state && known.message == listed.message &&
                    known.image_error == listed.image_error && known.preempted == listed.preempted &&
                    known.address == listed.address && known.ports == listed.ports &&
                    known.price_per_hour == listed.price_per_hour && known.billing == listed.billing &&
                    known.created_at == listed.created_at;
  if (!same) return false;
  return std::all_of(listed.containers.begin(), listed.containers.end(), [&](const InstanceContainer& claim) {
    return std::any_of(record.containers.begin(), record.containers.end(),
                       [&](const ContainerRecord& c) { return c.claim == claim; });
  });
}

bool all_ended(const model::PodRecord& record) {
  return !record.containers.empty() &&
         std::all_of(record.containers.begin(), record.containers.end(), [](const auto& c) {
           return c.claim.state == ContainerState::kExited && !c.restart_at && !c.restart_under_way;
         });
}

model::Outcome outcome_of_exits(const model::PodRecord& record) {
  model::Outcome outcome;
  const bool all_zero = std::all_of(record.containers.begin(), record.containers.end(),
                                    [](const auto& c) { return c.claim.exit_code == 0; });
  outcome.phase = all_zero ? model::PodPhase::kSucceeded : model::PodPhase::kFailed;
  return outcome;
}

std::optional<base::TimePoint> next_restart(const model::PodRecord& record) {
  std::optional<base::TimePoint> next;
  for (const ContainerRecord& c : record.containers) {
    if (c.restart_at && !c.restart_under_way && (!next || *c.restart_at < *next)) next = c.restart_at;
  }
  return next;
}

}  // namespace spillway::core
