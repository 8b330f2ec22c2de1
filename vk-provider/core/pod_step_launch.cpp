// pod_step, up to the purchase: join, choose, intent, create.
#include "vk-provider/core/pod_step.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"
#include "vk-provider/core/refusal.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::core {
namespace {

using base::Duration;
using base::ErrorKind;
using base::TimePoint;
using model::Admitted;
using model::Choosing;
using model::Creating;
using model::StateAnnotation;
using model::StopReason;
using model::Waiting;
using model::WaitReason;

constexpr base::BackoffPolicy kApiBackoff{std::chrono::milliseconds(200), std::chrono::seconds(10)};
constexpr Duration kUnwritableFor = std::chrono::minutes(5);
// After so many refusals of the same purchase another offer is tried.
constexpr int kCreateFailures = 3;

/// True if it cannot be said whether a create that failed so bought something.
bool may_have_bought(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kNotFound:
    case ErrorKind::kConflict:
    case ErrorKind::kGone:
    case ErrorKind::kDeadline:
    case ErrorKind::kUnknownOutcome:
    case ErrorKind::kCancelled:
    case ErrorKind::kInternal: return true;
    case ErrorKind::kNoCapacity:
    case ErrorKind::kQuota:
    case ErrorKind::kInvalid:
    case ErrorKind::kUnsupported:
    case ErrorKind::kImage:
    case ErrorKind::kUnauthenticated:
    case ErrorKind::kPermission:
    case ErrorKind::kRateLimited:
    case ErrorKind::kUnavailable: return false;
  }
  return true;
}

}  // namespace

void PodStep::on(const event::Joined& e) {
  if (!is<Admitted>()) return;
  if (is_placeholder(*r_.spec, r_.observed)) return stand_as_placeholder();
  r_.provider = e.provider;
  r_.price_cap = e.price_cap;
  const bool unreadable = r_.observed.state.kind == StateAnnotation::Kind::kUnreadable;
  if (unreadable || !e.problem.empty()) {
    const std::string problem = unreadable ? r_.observed.state.problem.str() : e.problem;
    tell(true, "UnreadableState", problem + "; nothing is bought or ended for this pod");
    return wait(WaitReason::kUnreadableState, problem, TimePoint::max());
  }
  if (r_.observed.state.kind == StateAnnotation::Kind::kRecord) {
    r_.placement = r_.observed.state.record->placement;
    r_.attempt = r_.placement->attempt;
    r_.ran = r_.observed.state.record->ran;
  }
  r_.ran = r_.ran || r_.observed.status.phase == model::PodPhase::kRunning;
  if (model::is_terminal(r_.observed.status.phase)) r_.outcome = observed_outcome();
  // What never ran may have been asked for twice by the former daemon.
  if (r_.placement && !r_.ran) r_.create_may_land_until = e.intent_may_land_until;
  if (e.instance) return adopt(*e.instance);
  std::optional<model::InstanceRef> known = named_instance();
  if (known) r_.containers = make_container_records(*r_.spec, r_.observed.status);
  // One listing that leaves it out proves nothing.
  if (known && r_.deleting) return stop(*std::move(known), StopReason::kDeleted);
  if (known && r_.outcome) {
    finish(std::move(known));
    find<model::Finished>()->unseen = true;
    return;
  }
  if ((r_.outcome && !create_may_land()) || (r_.deleting && !r_.placement)) return finish({});
  if (r_.ran) return stand_in_for_missing_instance(std::move(known));
  if (!r_.placement) return choose();
  look_up(std::max(e.intent_may_land_until, now_.steady + r_.provider.settle_time));
  find<Creating>()->known = std::move(known);
}

std::optional<model::InstanceRef> PodStep::named_instance() const {
  if (!r_.placement || r_.observed.state.record->instance.empty()) return std::nullopt;
  model::InstanceRef ref;
  ref.provider = r_.placement->provider;
  ref.id = r_.observed.state.record->instance;
  return ref;
}

void PodStep::stand_as_placeholder() {
  r_.placeholder = true;
  r_.ran = true;
  r_.containers = make_container_records(*r_.spec, r_.observed.status);
  claim_all_well(r_, now_);
  if (model::is_terminal(r_.observed.status.phase)) r_.outcome = observed_outcome();
  model::Instance instance;
  instance.state = model::InstanceState::kRunning;
  enter(model::Running{instance});
  if (ending()) end_placeholder();
}

void PodStep::end_placeholder() {
  for (model::ContainerRecord& c : r_.containers) {
    if (!runs(c)) continue;
    c.claim.state = model::ContainerState::kExited;
    c.claim.exit_code = 0;
    c.claim.finished_at = now_.wall;
  }
  if (!r_.outcome) r_.outcome = outcome_of_exits(r_);
  finish({});
}

void PodStep::on(const event::Refused& e) {
  if (!is<Choosing>()) return;
  tell(true, std::string(model::to_string(e.why)), event_text_of(e.message));
  wait(e.why, e.message, e.fail_at);
}

void PodStep::on(const event::Held& e) {
  if (!is<Choosing>()) return;
  // The reasons of a kubelet's events; those of our own are the words of the waiting reason.
  const std::string_view reason = e.why == WaitReason::kConfig      ? "Failed"
                                  : e.why == WaitReason::kMount     ? "FailedMount"
                                  : e.why == WaitReason::kImagePull ? "BackOff"
                                                                    : model::to_string(e.why);
  tell(true, std::string(reason), e.message);
  wait(e.why, e.message, e.until);
}

void PodStep::on(const event::Chosen& e) {
  if (!is<Choosing>()) return;
  r_.placement = e.placement;
  r_.provider = e.provider;
  r_.price_cap = e.price_cap;
  r_.attempt = e.placement.attempt;
  r_.create_may_land_until = {};
  r_.containers = make_container_records(*r_.spec, r_.observed.status);
  enter(Creating{});
  act(action::WriteIntent{});
}

void PodStep::on(const event::IntentWritten&) {
  auto* creating = find<Creating>();
  if (creating == nullptr || creating->step != Creating::Step::kIntent) return;
  if (ending()) return finish({});
  creating->intent_written = true;
  creating->failures = 0;
  creating->step = Creating::Step::kCreate;
  act(action::Create{});
}

void PodStep::on(const event::IntentFailed& e) {
  auto* creating = find<Creating>();
  if (creating == nullptr || creating->step != Creating::Step::kIntent) return;
  if (e.error.kind == ErrorKind::kNotFound) {
    creating->step = Creating::Step::kRetry;  // nothing is under way any more
    return on(event::PodGone{});
  }
  if (ending()) return finish({});
  if (e.error.kind == ErrorKind::kInvalid || e.error.kind == ErrorKind::kPermission) {
    tell(true, "FailedToWriteIntent", "nothing is bought, because the pod cannot be written: " + e.error.message);
    r_.placement.reset();
    --r_.attempt;  // there was none
    return wait(WaitReason::kStartFailed, e.error.message, now_.steady + kUnwritableFor);
  }
  retry_at(*creating, e.error, kApiBackoff);
}

void PodStep::on(const event::CreateFailed& e) {
  if (std::exchange(r_.resume_under_way, false)) {
    if (may_have_bought(e.error.kind)) r_.create_may_land_until = now_.steady + r_.provider.settle_time;
    if (auto* booting = find<model::Booting>()) return resume_failed(*booting, e.error);
    if (auto* stopping = find<model::Stopping>(); stopping != nullptr && stopping->gone) await_late_creates();
    return;
  }
  auto* creating = find<Creating>();
  if (creating == nullptr || creating->step != Creating::Step::kCreate) return;
  if (may_have_bought(e.error.kind)) return look_up(now_.steady + r_.provider.settle_time);
  switch (e.error.kind) {
    case ErrorKind::kNoCapacity:
    case ErrorKind::kInvalid:
    case ErrorKind::kUnsupported: return try_next_offer();
    case ErrorKind::kQuota: tell(true, "QuotaExceeded", e.error.message); return try_next_offer();
    case ErrorKind::kImage: return image_failed(e.error.message);
    default:  // no credentials, no permission, too fast, away
      if (ending()) return finish({});
      if (creating->failures == 0) tell(true, "FailedCreate", e.error.message);
      if (creating->failures + 1 >= kCreateFailures) return try_next_offer();
      return retry_at(*creating, e.error, kProviderBackoff);
  }
}

void PodStep::choose() {
  if (ending()) return finish({});
  enter(Choosing{});
  act(action::Choose{});
}

void PodStep::wait(WaitReason why, std::string message, TimePoint until) {
  enter(Waiting{why, until, std::move(message)});
  wake_at(until);
}

void PodStep::tick_waiting(const Waiting& waiting) {
  if (waiting.why == WaitReason::kUnreadableState) return;
  if (now_.steady < waiting.until) return wake_at(waiting.until);
  if (waiting.why == WaitReason::kRefused || waiting.why == WaitReason::kInvalidImage) {
    fail(std::string(model::to_string(waiting.why)), waiting.message);
    return finish({});
  }
  choose();
}

void PodStep::try_next_offer() {
  r_.tried.push_back(r_.placement->offer);
  choose();
}

void PodStep::image_failed(const std::string& message) {
  ++r_.image_failures;
  if (ending()) return finish({});
  // Each try has rented a machine.
  act(action::NoteFailure{});
  tell(true, "Failed", "Failed to pull image: " + message);
  wait(WaitReason::kImagePull, message, now_.steady + base::backoff_delay(kImageBackoff, r_.image_failures));
}

void PodStep::start_failed(const std::string& reason, const std::string& message) {
  r_.tried.push_back(r_.placement->offer);
  ++r_.start_failures;
  tell(true, reason, message);
  if (!r_.outcome && r_.start_failures >= policy_.max_start_attempts) {
    act(action::NoteFailure{});
    fail(reason, message);
  }
  choose();
}

void PodStep::retry_at(Creating& creating, const base::Error& error, const base::BackoffPolicy& backoff) {
  ++creating.failures;
  creating.step = Creating::Step::kRetry;
  creating.until = now_.steady + base::heed_retry_after(base::backoff_delay(backoff, creating.failures), error);
  wake_at(creating.until);
}

void PodStep::resume() {
  r_.resume_under_way = true;
  act(action::Create{});
}

/// The instance exists, and the call that was to carry it on failed: again, until the start deadline ends it.
void PodStep::resume_failed(model::Booting& booting, const base::Error& error) {
  if (error.kind == ErrorKind::kImage) {
    return stop(booting.instance.ref, StopReason::kImagePull, error.message);
  }
  if (booting.resume_failures++ == 0) tell(true, "FailedCreate", error.message);
  booting.resume_at =
      now_.steady + base::heed_retry_after(base::backoff_delay(kProviderBackoff, booting.resume_failures), error);
  wake_at(*booting.resume_at);
}

void PodStep::look_up(TimePoint until) {
  auto* creating = find<Creating>();
  if (creating == nullptr) {
    enter(Creating{});
    creating = find<Creating>();
    creating->intent_written = true;
    r_.containers = make_container_records(*r_.spec, r_.observed.status);
  }
  creating->step = Creating::Step::kLookUp;
  creating->until = until;
  act(action::LookUp{});
  wake_at(std::min(until, now_.steady + kLookUpEvery));
}

void PodStep::tick_creating(Creating& creating) {
  if (creating.step == Creating::Step::kLookUp) {
    act(action::LookUp{});
    return wake_at(now_.steady + kLookUpEvery);
  }
  if (creating.step != Creating::Step::kRetry) return;
  if (now_.steady < creating.until) return wake_at(creating.until);
  if (ending()) return finish({});
  creating.step = creating.intent_written ? Creating::Step::kCreate : Creating::Step::kIntent;
  if (creating.intent_written) return act(action::Create{});
  act(action::WriteIntent{});
}

}  // namespace spillway::core
