// pod_step, one container at a time: start, hooks, probes, stop, restart.
#include "vk-provider/core/pod_step.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::core {
namespace {

using base::Duration;
using base::TimePoint;
using model::ContainerRecord;
using model::ContainerRole;
using model::ContainerStop;
using model::Instance;
using model::StopReason;

// What a container is left after a hook that took the whole grace period; as with a kubelet.
constexpr std::chrono::seconds kLeastGrace{2};
// After its grace period, until the provider's next listing shows the end.
constexpr Duration kStopAgain = std::chrono::seconds(15);

/// "Container main failed liveness probe, will be restarted", as with a kubelet.
std::string killing(const std::string& container, ProbeKind probe) {
  return "Container " + container + " failed " + (probe == ProbeKind::kStartup ? "startup" : "liveness") +
         " probe, will be restarted";
}

bool is_asking(const ContainerRecord& c) { return c.stop && c.stop->step == ContainerStop::Step::kAsking; }

}  // namespace

void PodStep::follow_containers() {
  const Instance* instance = current_instance();
  if (instance == nullptr || ending() || r_.placeholder) return;
  if (work_is_over(r_)) return end_sidecars(*instance);
  start_containers(instance->ref);
  run_post_start_hooks(instance->ref);
  drive_stops(instance->ref);
}

void PodStep::start_containers(const model::InstanceRef& ref) {
  for (const size_t i : due_for_first_start(r_)) {
    r_.containers[i].start_under_way = true;
    act(action::StartContainer{ref, r_.containers[i].claim.name});
  }
  for (ContainerRecord& c : r_.containers) {
    if (!c.restart_at || c.start_under_way || *c.restart_at > now_.steady) continue;
    c.start_under_way = true;
    act(action::StartContainer{ref, c.claim.name, c.start_unsure});
  }
  const auto next = next_restart(r_);
  if (!next) return;
  for (const ContainerRecord& c : r_.containers) {
    if (c.restart_at == next) tell(true, "BackOff", "Back-off restarting failed container " + c.claim.name);
  }
  wake_at(*next);
}

void PodStep::on(const event::ContainerStarted& e) {
  const auto index = find_container(e.container);
  if (!index || !r_.containers[*index].start_under_way) return;
  note_started(r_, *index, now_);
  follow_containers();
}

void PodStep::on(const event::ContainerStartFailed& e) {
  const auto index = find_container(e.container);
  if (!index || !r_.containers[*index].start_under_way) return;
  ContainerRecord& c = r_.containers[*index];
  c.start_under_way = false;
  c.start_unsure = c.start_unsure || e.error.kind == base::ErrorKind::kUnknownOutcome;
  ++c.crashes_in_a_row;
  c.restart_at = now_.steady + base::backoff_delay(kRestartBackoff, c.crashes_in_a_row);
  tell(true, "Failed", "Error: cannot start container " + e.container + ": " + e.error.message);
  wake_at(*c.restart_at);
}

void PodStep::run_post_start_hooks(const model::InstanceRef& ref) {
  for (size_t i = 0; i < r_.containers.size(); ++i) {
    ContainerRecord& c = r_.containers[i];
    const bool due = runs(c) && !c.stop && c.post_start == ContainerRecord::PostStart::kNone;
    if (!due || !spec_of(*r_.spec, i).post_start) continue;
    c.post_start = ContainerRecord::PostStart::kUnderWay;
    act(action::RunHook{ref, c.claim.name, c.restarts, Hook::kPostStart, policy_.start_deadline});
  }
}

void PodStep::on(const event::HookEnded& e) {
  const auto index = find_container(e.container);
  if (!index || r_.containers[*index].restarts != e.run) return;
  ContainerRecord& c = r_.containers[*index];
  if (e.hook == Hook::kPreStop) return pre_stop_ended(*index, e.error);
  if (c.post_start != ContainerRecord::PostStart::kUnderWay || ending()) return;
  if (!e.error) {
    c.post_start = ContainerRecord::PostStart::kDone;
    return follow_containers();
  }
  tell(true, "FailedPostStartHook", "PostStartHook failed: " + e.error->message);
  kill_container(*index, r_.spec->grace, "FailedPostStartHook");
}

void PodStep::on(const event::ProbeChanged& e) {
  const auto index = find_container(e.container);
  if (!index || ending()) return;
  ContainerRecord& c = r_.containers[*index];
  if (!runs(c) || c.restarts != e.run || c.stop) return;
  if (e.probe == ProbeKind::kReadiness) {
    c.ready = e.passes;
    return;
  }
  if (e.passes) {
    if (e.probe == ProbeKind::kStartup) c.started = true;
    return follow_containers();
  }
  const model::ContainerSpec& spec = spec_of(*r_.spec, *index);
  const auto& probe = e.probe == ProbeKind::kStartup ? spec.startup_probe : spec.liveness_probe;
  const std::chrono::seconds grace = probe && probe->grace ? *probe->grace : r_.spec->grace;
  kill_container(*index, grace, killing(e.container, e.probe));
}

void PodStep::kill_container(size_t index, std::chrono::seconds grace, std::string why) {
  const Instance* instance = current_instance();
  if (instance == nullptr || ending() || !runs(r_.containers[index]) || r_.containers[index].stop) return;
  r_.containers[index].ready = false;
  tell(false, "Killing", std::move(why));
  stop_container(instance->ref, index, grace);
}

void PodStep::stop_container(const model::InstanceRef& ref, size_t index, std::chrono::seconds grace) {
  ContainerRecord& c = r_.containers[index];
  ContainerStop stop;
  stop.by = now_.steady + grace;
  stop.until = stop.by;
  c.stop = stop;
  if (grace <= std::chrono::seconds(0) || !spec_of(*r_.spec, index).pre_stop) return ask_stop(ref, index);
  act(action::RunHook{ref, c.claim.name, c.restarts, Hook::kPreStop, grace});
  wake_at(stop.until);
}

void PodStep::ask_stop(const model::InstanceRef& ref, size_t index) {
  ContainerRecord& c = r_.containers[index];
  const auto least = spec_of(*r_.spec, index).pre_stop ? kLeastGrace : std::chrono::seconds(0);
  const auto left = std::chrono::ceil<std::chrono::seconds>(c.stop->by - now_.steady);
  c.stop->step = ContainerStop::Step::kAsking;
  act(action::StopContainer{ref, c.claim.name, std::max(left, least)});
}

void PodStep::on(const event::ContainerStopAccepted& e) {
  const auto index = find_container(e.container);
  if (!index || !is_asking(r_.containers[*index])) return;
  ContainerStop& stop = *r_.containers[*index].stop;
  stop.step = ContainerStop::Step::kAsked;
  stop.until = std::max(stop.by, now_.steady) + kStopAgain;
  wake_at(stop.until);
}

void PodStep::on(const event::ContainerStopFailed& e) {
  const auto index = find_container(e.container);
  if (!index || !is_asking(r_.containers[*index])) return;
  ContainerStop& stop = *r_.containers[*index].stop;
  stop.step = ContainerStop::Step::kAsked;
  stop.until = now_.steady + base::heed_retry_after(base::backoff_delay(kProviderBackoff, 2), e.error);
  tell(true, "FailedKillPod", "error killing container " + e.container + ": " + e.error.message);
  wake_at(stop.until);
}

void PodStep::drive_stops(const model::InstanceRef& ref) {
  for (size_t i = 0; i < r_.containers.size(); ++i) {
    const auto& stop = r_.containers[i].stop;
    if (!stop || stop->step == ContainerStop::Step::kAsking) continue;
    if (now_.steady >= stop->until) {
      if (stop->step == ContainerStop::Step::kHook) tell(true, "FailedPreStopHook", std::string(kHookTooSlow));
      ask_stop(ref, i);
    } else {
      wake_at(stop->until);
    }
  }
}

/// The pod has done its work: its sidecars are stopped, the last one first.
void PodStep::end_sidecars(const Instance& instance) {
  for (size_t i = r_.containers.size(); i-- > 0;) {
    ContainerRecord& c = r_.containers[i];
    if (role_of(*r_.spec, i) == ContainerRole::kSidecar) c.restart_at.reset();
    if (c.start_under_way) return;  // its answer, or a claim, comes here again
    if (!runs(c)) continue;
    if (!c.stop) return stop_container(instance.ref, i, r_.spec->grace);
    // It does not end by itself: the whole instance has to.
    if (now_.steady >= c.stop->by + kStopAgain) return complete(instance.ref, false);
    wake_at(c.stop->by + kStopAgain);
    return drive_stops(instance.ref);
  }
  complete(instance.ref, r_.provider.keeps_stopped);
}

void PodStep::end_with_exits() {
  r_.outcome = outcome_of_exits(r_);
  if (r_.outcome->phase == model::PodPhase::kFailed) act(action::NoteFailure{});
}

void PodStep::complete(model::InstanceRef ref, bool keep) {
  end_with_exits();
  if (keep) return finish(std::move(ref));
  stop(std::move(ref), StopReason::kCompleted);
}

void PodStep::run_pre_stop_hooks(model::Stopping& stopping) {
  const std::chrono::seconds grace = grace_of(stopping);
  if (grace <= std::chrono::seconds(0)) return;
  for (size_t i = 0; i < r_.containers.size(); ++i) {
    const ContainerRecord& c = r_.containers[i];
    if (!runs(c) || !spec_of(*r_.spec, i).pre_stop) continue;
    if (c.stop && c.stop->step != ContainerStop::Step::kHook) continue;  // it had its hook
    ++stopping.hooks_left;
    if (!c.stop) act(action::RunHook{stopping.ref, c.claim.name, c.restarts, Hook::kPreStop, grace});
  }
  stopping.hooks_ran = stopping.hooks_left > 0;
}

void PodStep::await_pre_stop_hooks(model::Stopping& stopping) {
  const std::chrono::seconds grace = grace_of(stopping);
  if (stopping.hooks_left == 0 || (r_.deleting && grace_left() <= std::chrono::seconds(0))) return terminate(stopping);
  stopping.retry_at = now_.steady + grace;
  wake_at(stopping.retry_at);
}

void PodStep::pre_stop_ended(size_t index, const std::optional<base::Error>& error) {
  auto* stopping = find<model::Stopping>();
  const auto& stop = r_.containers[index].stop;
  const bool awaited =
      stopping != nullptr ? stopping->hooks_left > 0 : stop && stop->step == ContainerStop::Step::kHook;
  if (!awaited) return;
  if (error) tell(true, "FailedPreStopHook", "PreStopHook failed: " + error->message);
  if (stopping != nullptr) {
    if (--stopping->hooks_left == 0) terminate(*stopping);
    return;
  }
  if (const Instance* instance = current_instance()) ask_stop(instance->ref, index);
}

}  // namespace spillway::core
