// pod_step, the way out: stop, publish, close, delete.
#include "vk-provider/core/pod_step.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::core {
namespace {

using base::Duration;
using base::ErrorKind;
using model::Admitted;
using model::Choosing;
using model::Creating;
using model::Finished;
using model::Instance;
using model::Stopping;
using model::StopReason;
using model::Waiting;
using model::WaitReason;

constexpr Duration kTerminateAgain = std::chrono::seconds(30);
// What a container is left after a hook that took the whole grace period; as with a kubelet.
constexpr std::chrono::seconds kLeastGrace{2};
// Of a pod that takes too much of its machine; as with a kubelet.
constexpr std::chrono::seconds kEvictionGrace{1};

}  // namespace

void PodStep::on(const event::TerminateAccepted&) {
  auto* stopping = find<Stopping>();
  if (stopping == nullptr || stopping->hooks_left > 0) return;
  stopping->call_under_way = false;
  stopping->failures = 0;
  const auto grace = stopping->asked_grace.value_or(std::chrono::seconds(0));
  stopping->retry_at = now_.steady + grace + kTerminateAgain;
  act(action::Confirm{stopping->ref});
  if (grace > grace_of(*stopping)) return terminate(*stopping);
  wake_at(stopping->retry_at);
}

void PodStep::on(const event::TerminateFailed& e) {
  auto* stopping = find<Stopping>();
  if (stopping == nullptr || stopping->hooks_left > 0) return;
  stopping->call_under_way = false;
  if (e.error.kind == ErrorKind::kNotFound) {
    stopping->retry_at = now_.steady + kTerminateAgain;
    wake_at(stopping->retry_at);
    return act(action::Confirm{stopping->ref});
  }
  if (stopping->failures++ == 0) tell(true, "FailedKillPod", e.error.message);
  stopping->retry_at =
      now_.steady + base::heed_retry_after(base::backoff_delay(kProviderBackoff, stopping->failures), e.error);
  wake_at(stopping->retry_at);
}

void PodStep::on(const event::EntryClosed&) {
  auto* finished = find<Finished>();
  if (finished == nullptr || finished->step != Finished::Step::kClosing) return;
  finished->step = Finished::Step::kDeleting;
  delete_pod(*finished);
}

void PodStep::on(const event::PodDeleteAccepted&) {
  if (auto* finished = find<Finished>()) finished->step = Finished::Step::kDeleted;
}

void PodStep::on(const event::PodDeleteFailed& e) {
  auto* finished = find<Finished>();
  if (finished == nullptr || finished->step != Finished::Step::kDeleting) return;
  finished->delete_under_way = false;
  // Not found, or another UID under that name: this pod is gone.
  if (e.error.kind == ErrorKind::kNotFound || e.error.kind == ErrorKind::kConflict) return on(event::PodGone{});
  finished->retry_at = now_.steady + base::heed_retry_after(std::chrono::seconds(1), e.error);
  wake_at(finished->retry_at);
}

void PodStep::on(const event::Discarded&) {
  if (!is<Finished>() || std::exchange(r_.deleting, true)) return;
  r_.delete_by = now_.steady;
  on_delete();
}

void PodStep::heed_active_deadline() {
  if (!r_.observed.active_deadline || ending() || r_.placeholder) return;
  const auto& started = r_.observed.status.start_time;
  if (!started || is<Admitted>() || (is<model::Running>() && work_is_over(r_))) return;
  if (const auto* waiting = find<Waiting>(); waiting != nullptr && waiting->why == WaitReason::kUnreadableState) return;
  const base::WallTime end = *started + *r_.observed.active_deadline;
  if (now_.wall < end) return wake_at(now_.steady + (end - now_.wall));
  fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
  end_because_terminal();
}

void PodStep::after() { heed_active_deadline(); }

void PodStep::end_because_terminal() {
  if (r_.placeholder && is<model::Running>()) return end_placeholder();
  if (const Instance* instance = current_instance()) return stop(instance->ref, StopReason::kTerminalPod);
  if (is<Waiting>() || is<Choosing>()) return finish({});
  if (const auto* creating = find<Creating>(); creating != nullptr && creating->step == Creating::Step::kRetry) {
    finish({});
  }
}

void PodStep::on_delete() {
  if (r_.placeholder && is<model::Running>()) return end_placeholder();
  if (const Instance* instance = current_instance()) return stop(instance->ref, StopReason::kDeleted);
  if (is<Waiting>()) {
    if (find<Waiting>()->why == WaitReason::kUnreadableState) {
      if (r_.api_gone) act(action::Forget{});
      return;
    }
    return finish({});
  }
  if (is<Choosing>()) return finish({});
  if (const auto* creating = find<Creating>()) {
    if (creating->known) return stop(model::InstanceRef(*creating->known), StopReason::kDeleted);
    // What is under way is waited for: its answer decides whether there is something to end.
    if (creating->step == Creating::Step::kRetry) finish({});
    return;
  }
  if (auto* stopping = find<Stopping>()) {
    if (stopping->gone) return;
    if (stopping->hooks_left > 0) return await_pre_stop_hooks(*stopping);
    const bool shorter = stopping->asked_grace && *stopping->asked_grace > grace_of(*stopping);
    if (shorter && !stopping->call_under_way) terminate(*stopping);
    return;
  }
  if (auto* finished = find<Finished>()) {
    if (finished->kept) return stop(model::InstanceRef(*finished->kept), StopReason::kDeleted);
    progress_finish();
  }
}

void PodStep::enter_stopping(model::InstanceRef ref, StopReason why, std::string message) {
  Stopping stopping;
  stopping.message = std::move(message);
  stopping.ref = std::move(ref);
  stopping.why = why;
  stopping.since = now_.steady;
  enter(std::move(stopping));
}

void PodStep::stop(model::InstanceRef ref, StopReason why, std::string message) {
  enter_stopping(std::move(ref), why, std::move(message));
  run_pre_stop_hooks(*find<Stopping>());
  await_pre_stop_hooks(*find<Stopping>());
}

std::chrono::seconds PodStep::grace_of(const Stopping& stopping) const {
  std::chrono::seconds grace{0};
  if (r_.deleting && (stopping.why == StopReason::kDeleted || stopping.why == StopReason::kTerminalPod)) {
    grace = grace_left();
  } else if (stopping.why == StopReason::kTerminalPod) {
    grace = r_.spec->grace;
  } else if (stopping.why == StopReason::kEvicted) {
    grace = kEvictionGrace;
  }
  return stopping.hooks_ran && !r_.api_gone ? std::max(grace, kLeastGrace) : grace;
}

void PodStep::terminate(Stopping& stopping) {
  std::chrono::seconds grace = grace_of(stopping);
  if (stopping.hooks_ran && !r_.deleting) {
    const auto used = std::chrono::floor<std::chrono::seconds>(now_.steady - stopping.since);
    grace = std::max(grace - used, kLeastGrace);
  }
  stopping.asked_grace = grace;
  stopping.call_under_way = true;
  stopping.hooks_left = 0;
  act(action::Terminate{stopping.ref, grace});
}

void PodStep::await_late_creates() {
  auto* stopping = find<Stopping>();
  stopping->gone = true;
  stopping->call_under_way = false;
  if (!create_may_land()) return stopped();
  look_for_late_creates();
}

/// Only a listing ends this, or an answer: that time has passed proves nothing.
void PodStep::look_for_late_creates() {
  if (r_.resume_under_way) return;
  act(action::LookUp{});
  wake_at(now_.steady + kLookUpEvery);
}

void PodStep::bought_late(const Instance& instance) {
  auto* stopping = find<Stopping>();
  if (instance.ref.id == stopping->ref.id) return;
  if (!stopping->gone) {
    // First the one, then what a look-up finds.
    r_.create_may_land_until = std::max(r_.create_may_land_until, now_.steady + r_.provider.settle_time);
    return;
  }
  stopping->ref = instance.ref;
  stopping->gone = false;
  stopping->failures = 0;
  terminate(*stopping);
}

void PodStep::stopped() {
  const StopReason why = find<Stopping>()->why;
  const std::string message = find<Stopping>()->message;
  switch (why) {
    case StopReason::kDeleted:
      if (!r_.outcome) r_.outcome = outcome_of_exits(r_);
      return finish({});
    case StopReason::kCompleted:
    case StopReason::kEvicted:
    case StopReason::kTerminalPod: return finish({});
    case StopReason::kImagePull: return image_failed(message);
    case StopReason::kBootFailed: return start_failed("StartFailed", message);
    case StopReason::kStartTimeout:
      return start_failed("StartTimeout", "the instance did not run within the start deadline");
    case StopReason::kTooDear: return try_next_offer();
    case StopReason::kLost: return lost();
  }
}

void PodStep::finish(std::optional<model::InstanceRef> kept) {
  // An intent that was not written must not come onto the pod with its last status: whoever reads it would look for
  // what was never bought.
  if (const auto* creating = find<Creating>(); creating != nullptr && !creating->intent_written) r_.placement.reset();
  if (!r_.outcome) {
    fail(r_.api_gone ? "" : "Deleted", "the pod was deleted before it ran");
  }
  Finished finished;
  finished.kept = std::move(kept);
  enter(std::move(finished));
  if (r_.deleting && find<Finished>()->kept)
    return stop(model::InstanceRef(*find<Finished>()->kept), StopReason::kDeleted);
  progress_finish();
}

void PodStep::delete_pod(Finished& finished) {
  finished.delete_under_way = true;
  act(action::DeletePod{});
}

void PodStep::progress_finish() {
  auto* finished = find<Finished>();
  if (finished->kept) return;
  if (r_.api_gone) return act(action::Forget{});
  if (!r_.deleting || finished->step != Finished::Step::kResting) return;
  if (!model::is_terminal(r_.observed.status.phase)) return;
  finished->step = Finished::Step::kClosing;
  act(action::CloseEntry{});
}

}  // namespace spillway::core
