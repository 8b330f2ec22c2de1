#include "vk-provider/core/container_fsm.hpp"

#include <algorithm>

#include "vk-provider/core/container_order.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core {
namespace {

using model::ContainerRecord;
using model::ContainerState;
using model::ContainerStatusState;
using model::InstanceContainer;
using model::RestartPolicy;

/// How much of a back-off may have passed before its exit was seen. More is believed of no machine's clock.
constexpr base::Duration kSeenLate = std::chrono::seconds(10);

base::WallTime to_seconds(base::WallTime t) { return std::chrono::floor<std::chrono::seconds>(t); }

/// restartPolicy and restartPolicyRules of the container, then those of the pod.
bool policy_wants_restart(const model::PodSpec& pod, size_t index, const std::optional<int>& exit_code) {
  const model::ContainerSpec& spec = spec_of(pod, index);
  const model::ContainerRole role = role_of(pod, index);
  if (role == model::ContainerRole::kInit && exit_code == 0) return false;  // it has done its work
  for (const model::RestartRule& rule : spec.restart_rules) {
    if (!exit_code) break;
    const bool listed = std::ranges::find(rule.exit_codes, *exit_code) != rule.exit_codes.end();
    if (listed == rule.in) return true;  // Restart is the only action that there is
  }
  switch (spec.restart_policy.value_or(pod.restart_policy)) {
    case RestartPolicy::kAlways: return true;
    case RestartPolicy::kOnFailure: return exit_code != 0;
    case RestartPolicy::kNever: return false;
  }
  return false;
}

bool wants_restart(const model::PodRecord& record, size_t index, const InstanceContainer& claim) {
  if (!record.provider.can_restart || record.deleting || record.outcome) return false;
  return policy_wants_restart(*record.spec, index, claim.exit_code);
}

const model::ContainerStatus* told_of(const model::PodStatus& status, const std::string& name) {
  for (const auto* list : {&status.containers, &status.init_containers}) {
    const auto it = std::ranges::find(*list, name, [](const auto& s) -> const std::string& { return s.name.str(); });
    if (it != list->end()) return &*it;
  }
  return nullptr;
}

/// An exit is new if the container was not seen ended before, or ended at another time than the one we answered.
bool is_new_exit(const ContainerRecord& before, const InstanceContainer& claim) {
  if (claim.finished_at) return before.handled_exit != claim.finished_at;
  return before.claim.state != ContainerState::kExited && !before.restart_at && !before.start_under_way;
}

/// True if the claim shows a run that came of a restart which was not counted: the answer to the start was lost, with
/// or without the daemon, or the listing was faster than the answer.
bool is_uncounted_restart(const model::PodRecord& record, const ContainerRecord& before,
                          const InstanceContainer& claim) {
  if (before.restart_at || before.start_under_way) {
    if (before.claim.state == ContainerState::kWaiting) return false;  // its first start
    if (!claim.started_at || !before.handled_exit) return claim.state == ContainerState::kRunning;
    return *claim.started_at > *before.handled_exit;
  }
  // Another process knew it as crashed; this one looks at it for the first time.
  if (before.claim.state != ContainerState::kWaiting || !claim.started_at) return false;
  const model::ContainerStatus* told = told_of(record.observed.status, claim.name);
  if (told == nullptr || told->state.kind != ContainerStatusState::Kind::kWaiting) return false;
  // What was told has whole seconds, and between an exit and a restart lie many.
  return told->last_state.finished_at && to_seconds(*claim.started_at) > *told->last_state.finished_at;
}

/// A back-off counts from the end of the run, as with a kubelet; a listing may show that end late.
base::Duration seen_late(const InstanceContainer& claim, base::Now now) {
  if (!claim.finished_at) return {};
  return std::clamp<base::Duration>(now.wall - *claim.finished_at, base::Duration::zero(), kSeenLate);
}

void schedule_restart(ContainerRecord& container, const InstanceContainer& claim, base::Now now) {
  const bool ran_long =
      claim.started_at && claim.finished_at && *claim.finished_at - *claim.started_at >= kRestartForgotten;
  if (ran_long) container.crashes_in_a_row = 0;
  ++container.crashes_in_a_row;
  container.last_state = to_status_state(claim);
  const base::Duration delay = base::backoff_delay(kRestartBackoff, container.crashes_in_a_row);
  container.restart_at = now.steady + delay - seen_late(claim, now);
}

/// What is known of a run that is seen for the first time: from a former daemon, what stands on the pod.
void begin_run(const model::PodRecord& record, ContainerRecord& container, const InstanceContainer& claim) {
  const model::ContainerStatus* told = told_of(record.observed.status, claim.name);
  const bool same_run = told != nullptr && told->state.kind == ContainerStatusState::Kind::kRunning &&
                        claim.started_at && told->state.started_at == to_seconds(*claim.started_at);
  container.ready = same_run && told->ready;
  container.started = same_run && told->started;
  container.post_start = container.started ? ContainerRecord::PostStart::kDone : ContainerRecord::PostStart::kNone;
  container.stop.reset();
}

void apply_exit(model::PodRecord& record, size_t index, const InstanceContainer& claim, base::Now now) {
  ContainerRecord& container = record.containers[index];
  const bool fresh = is_new_exit(container, claim);
  // A listing that was made before our restart took effect still shows the old end.
  if (!fresh && !container.restart_at && container.claim.state != ContainerState::kExited) return;
  container.claim = claim;
  if (!fresh) return;
  container.start_under_way = false;
  container.start_unsure = false;
  container.restart_at.reset();  // of a start whose answer was lost: this is its run
  container.stop.reset();
  if (!wants_restart(record, index, claim)) return;
  container.handled_exit = claim.finished_at;
  schedule_restart(container, claim, now);
}

void apply_claim(model::PodRecord& record, size_t index, const InstanceContainer& claim, base::Now now) {
  ContainerRecord& container = record.containers[index];
  const bool restarted = is_uncounted_restart(record, container, claim);
  if (restarted) {
    ++container.restarts;
    container.start_under_way = false;
  }
  if (claim.state == ContainerState::kExited) return apply_exit(record, index, claim, now);
  // Made before our start took effect.
  if (claim.state == ContainerState::kWaiting && claim.created && ever_ran(container)) return;
  if (claim.state == ContainerState::kRunning) {
    if (restarted || !runs(container)) begin_run(record, container, claim);
    container.restart_at.reset();
    container.start_under_way = false;
    container.start_unsure = false;
    if (claim.started_at && now.wall - *claim.started_at >= kRestartForgotten) container.crashes_in_a_row = 0;
  }
  container.claim = claim;
}

}  // namespace

std::string bounded_text(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  text.resize(most);
  return text;
}

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
      state.message = claim.termination_message.empty()
                          ? claim.message
                          : base::SharedText(bounded_text(claim.termination_message, kTerminationMessage));
      if (claim.started_at) state.started_at = to_seconds(*claim.started_at);
      if (claim.finished_at) state.finished_at = to_seconds(*claim.finished_at);
      state.container_id = claim.container_id;
      break;
  }
  return state;
}

std::vector<ContainerRecord> make_container_records(const model::PodSpec& spec, const model::PodStatus& observed) {
  std::vector<ContainerRecord> records;
  const size_t count = init_containers(spec).size() + spec.containers.size();
  records.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    ContainerRecord& record = records.emplace_back();
    record.claim.name = spec_of(spec, i).name;
    const model::ContainerStatus* told = told_of(observed, record.claim.name);
    if (told == nullptr) continue;
    record.restarts = told->restart_count;
    record.crashes_in_a_row = told->restart_count > 0 ? 1 : 0;
    if (told->last_state.kind != ContainerStatusState::Kind::kNone) record.last_state = told->last_state;
  }
  return records;
}

void apply_claims(model::PodRecord& record, const model::Instance& instance, base::Now now) {
  for (const InstanceContainer& claim : instance.containers) {
    const auto it = std::ranges::find_if(record.containers, [&](const auto& c) { return c.claim.name == claim.name; });
    if (it == record.containers.end()) continue;
    apply_claim(record, static_cast<size_t>(it - record.containers.begin()), claim, now);
  }
}

void note_started(model::PodRecord& record, size_t index, base::Now now) {
  ContainerRecord& container = record.containers[index];
  if (container.claim.state == ContainerState::kExited) ++container.restarts;
  container.start_under_way = false;
  container.start_unsure = false;
  container.restart_at.reset();
  InstanceContainer claim = container.claim;
  claim.state = ContainerState::kRunning;
  claim.started_at = now.wall;
  claim.exit_code.reset();
  claim.reason.clear();
  claim.message.clear();
  claim.termination_message.clear();
  begin_run(record, container, claim);
  container.claim = std::move(claim);
}

void claim_all_well(model::PodRecord& record, base::Now now) {
  for (size_t i = 0; i < record.containers.size(); ++i) {
    ContainerRecord& c = record.containers[i];
    const bool done = role_of(*record.spec, i) == model::ContainerRole::kInit;
    const model::ContainerStatus* told = told_of(record.observed.status, c.claim.name);
    const bool known = told != nullptr && told->state.started_at;
    c.claim.state = done ? ContainerState::kExited : ContainerState::kRunning;
    c.claim.started_at = known ? *told->state.started_at : now.wall;
    if (done) c.claim.exit_code = 0;
    if (done) c.claim.finished_at = c.claim.started_at;
    c.ready = true;
    c.started = true;
    c.post_start = ContainerRecord::PostStart::kDone;
  }
}

bool tells_nothing_new(const model::PodRecord& record, const model::Instance& known, const model::Instance& listed) {
  const bool same = known.ref == listed.ref && known.state == listed.state && known.message == listed.message &&
                    known.image_error == listed.image_error && known.preempted == listed.preempted &&
                    known.evicted == listed.evicted && known.address == listed.address && known.ports == listed.ports &&
                    known.price_per_hour == listed.price_per_hour && known.billing == listed.billing &&
                    known.created_at == listed.created_at;
  if (!same) return false;
  return std::all_of(listed.containers.begin(), listed.containers.end(), [&](const InstanceContainer& claim) {
    return std::any_of(record.containers.begin(), record.containers.end(),
                       [&](const ContainerRecord& c) { return c.claim == claim; });
  });
}

model::Outcome outcome_of_exits(const model::PodRecord& record) {
  model::Outcome outcome;
  outcome.phase = model::PodPhase::kSucceeded;
  for (size_t i = init_containers(*record.spec).size(); i < record.containers.size(); ++i) {
    if (record.containers[i].claim.exit_code != 0) outcome.phase = model::PodPhase::kFailed;
  }
  return outcome;
}

std::optional<base::TimePoint> next_restart(const model::PodRecord& record) {
  std::optional<base::TimePoint> next;
  for (const ContainerRecord& c : record.containers) {
    if (c.restart_at && !c.start_under_way && (!next || *c.restart_at < *next)) next = c.restart_at;
  }
  return next;
}

}  // namespace spillway::core
