#include "vk-provider/core/pod_fsm.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::core {
namespace {

using base::Duration;
using base::ErrorKind;
using base::TimePoint;
using model::Admitted;
using model::Booting;
using model::Choosing;
using model::Creating;
using model::Finished;
using model::Instance;
using model::InstanceState;
using model::PodRecord;
using model::Running;
using model::StateAnnotation;
using model::Stopping;
using model::StopReason;
using model::Waiting;
using model::WaitReason;

constexpr base::BackoffPolicy kApiBackoff{std::chrono::milliseconds(200), std::chrono::seconds(10)};
constexpr base::BackoffPolicy kProviderBackoff{std::chrono::seconds(1), std::chrono::seconds(30)};
constexpr Duration kLookUpEvery = std::chrono::seconds(1);
constexpr Duration kTerminateAgain = std::chrono::seconds(30);
constexpr Duration kSoldOutFor = std::chrono::seconds(30);
constexpr Duration kBadOfferFor = std::chrono::hours(1);
constexpr Duration kProviderFullFor = std::chrono::minutes(5);
constexpr Duration kProviderSickFor = std::chrono::minutes(1);
constexpr Duration kUnwritableFor = std::chrono::minutes(5);
// After so many refusals of the same purchase another offer is tried.
constexpr int kCreateFailures = 3;
// Absence counts only when it is seen twice, and then a get has to agree.
constexpr int kMissingListings = 2;

/// Their claims stand in the record's containers; a second copy would only take room.
Instance without_containers(Instance instance) {
  instance.containers = {};
  return instance;
}

/// What was written on the pod is needed once, when it is joined; from then on only whether it changed.
void keep_fingerprint(model::ObservedPod& observed) {
  if (!observed.state.record) return;
  observed.state_fingerprint = model::fingerprint(*observed.state.record);
  observed.state.record.reset();
}

/// One step: the record, the time, and the actions that come of it.
class Step {
 public:
  Step(PodRecord& record, base::Now now, const PodPolicy& policy) : r_(record), now_(now), policy_(policy) {}

  Actions take() { return std::move(actions_); }

  void on(const event::PodSeen& e) {
    // The watch lags behind the answers to our own writes.
    if (model::is_older_version(e.observed.resource_version, r_.observed.resource_version)) return;
    r_.observed = e.observed;
    if (r_.observed.deletion_timestamp) {
      const TimePoint by = now_.steady + r_.observed.deletion_grace;
      if (!r_.deleting || by < r_.delete_by) r_.delete_by = by;
      if (!std::exchange(r_.deleting, true) || is<Stopping>()) return on_delete();
    }
    // Somebody else ended the pod (C045): what it says is respected, and what it bought is given back.
    if (model::is_terminal(r_.observed.status.phase) && !r_.outcome && !is<Admitted>()) {
      r_.outcome = observed_outcome();
      end_because_terminal();
    }
    if (is<Finished>()) progress_finish();
  }

  void on(const event::PodGone&) {
    r_.api_gone = true;
    // A graceful deletion keeps the object until we let it go: this one was forced.
    if (!std::exchange(r_.deleting, true) || r_.delete_by > now_.steady) r_.delete_by = now_.steady;
    on_delete();
  }

  void on(const event::Joined& e) {
    if (!is<Admitted>()) return;
    r_.provider = e.provider;
    const bool unreadable = r_.observed.state.kind == StateAnnotation::Kind::kUnreadable;
    if (const std::string problem = unreadable ? r_.observed.state.problem.str() : e.problem; !problem.empty()) {
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
    if (e.instance) return adopt(*e.instance);
    if (r_.outcome || (r_.deleting && !r_.placement)) return finish({});
    if (r_.ran) return stand_in_for_missing_instance();
    if (!r_.placement) return choose();
    look_up(std::max(e.intent_may_land_until, now_.steady + r_.provider.settle_time));
  }

  void on(const event::Refused& e) {
    if (!is<Choosing>()) return;
    tell(true, "Unsupported", e.message);
    wait(WaitReason::kRefused, e.message, e.fail_at);
  }

  void on(const event::Held& e) {
    if (!is<Choosing>()) return;
    tell(true, std::string(e.why == WaitReason::kConfig ? "Failed" : model::to_string(e.why)), e.message);
    wait(e.why, e.message, e.until);
  }

  void on(const event::Chosen& e) {
    if (!is<Choosing>()) return;
    r_.placement = e.placement;
    r_.provider = e.provider;
    r_.price_cap = e.price_cap;
    r_.attempt = e.placement.attempt;
    r_.containers = make_container_records(*r_.spec, r_.observed.status);
    enter(Creating{});
    act(action::WriteIntent{});
  }

  void on(const event::IntentWritten&) {
    auto* creating = find<Creating>();
    if (creating == nullptr || creating->step != Creating::Step::kIntent) return;
    if (ending()) return finish({});
    creating->intent_written = true;
    creating->failures = 0;
    creating->step = Creating::Step::kCreate;
    act(action::Create{});
  }

  void on(const event::IntentFailed& e) {
    auto* creating = find<Creating>();
    if (creating == nullptr || creating->step != Creating::Step::kIntent) return;
    if (e.error.kind == ErrorKind::kNotFound) {
      creating->step = Creating::Step::kRetry;  // nothing is under way any more
      return on(event::PodGone{});
    }
    if (ending()) return finish({});
    if (e.error.kind == ErrorKind::kInvalid || e.error.kind == ErrorKind::kPermission) {
      tell(true, "FailedToWriteIntent", "nothing is bought, because the pod cannot be written: " + e.error.message);
      return wait(WaitReason::kStartFailed, e.error.message, now_.steady + kUnwritableFor);
    }
    retry_at(*creating, e.error, kApiBackoff);
  }

  void on(const event::Created& e) {
    if (const auto* creating = find<Creating>(); creating != nullptr && creating->step == Creating::Step::kCreate) {
      return adopt(e.instance);
    }
    if (is<Booting>()) on_instance(e.instance);
  }

  void on(const event::CreateFailed& e) {
    auto* creating = find<Creating>();
    if (creating == nullptr || creating->step != Creating::Step::kCreate) return;
    switch (e.error.kind) {
      case ErrorKind::kNoCapacity:
        act(action::CoolDown{r_.placement->provider, r_.placement->offer, kSoldOutFor});
        return try_next_offer();
      case ErrorKind::kQuota:
        tell(true, "QuotaExceeded", e.error.message);
        act(action::CoolDown{r_.placement->provider, {}, kProviderFullFor});
        return try_next_offer();
      case ErrorKind::kInvalid:
      case ErrorKind::kUnsupported:
        if (ending()) return finish({});
        enter(Choosing{});
        act(action::Refuse{"provider " + r_.placement->provider.str() + " refuses the pod: " + e.error.message});
        return;
      case ErrorKind::kImage: return image_failed(e.error.message);
      case ErrorKind::kUnauthenticated:
      case ErrorKind::kPermission:
      case ErrorKind::kRateLimited:
      case ErrorKind::kUnavailable:
        if (ending()) return finish({});
        if (creating->failures == 0) tell(true, "FailedCreate", e.error.message);
        if (creating->failures + 1 >= kCreateFailures) {
          act(action::CoolDown{r_.placement->provider, {}, kProviderSickFor});
          return try_next_offer();
        }
        return retry_at(*creating, e.error, kProviderBackoff);
      default: return look_up(now_.steady + r_.provider.settle_time);
    }
  }

  void on(const event::InstanceSeen& e) {
    if (const auto* creating = find<Creating>(); creating != nullptr && creating->step == Creating::Step::kLookUp) {
      return adopt(e.instance);
    }
    if (is<Booting>() || is<Running>()) return on_instance(e.instance);
    r_.missing = 0;
  }

  void on(const event::InstanceMissing& e) {
    if (auto* creating = find<Creating>()) {
      if (creating->step != Creating::Step::kLookUp || e.listing_began < creating->until) return;
      if (ending()) return finish({});
      // Nothing was bought. The same tag again: if we are wrong, the provider returns the instance that exists.
      ++creating->failures;
      if (!creating->intent_written) {
        creating->step = Creating::Step::kIntent;
        return act(action::WriteIntent{});
      }
      creating->step = Creating::Step::kCreate;
      return act(action::Create{});
    }
    const TimePoint known_since = r_.entered.at(r_.stage.index());
    if (e.listing_began < known_since) return;
    if (const auto* stopping = find<Stopping>()) {
      if (!stopping->call_under_way) act(action::Confirm{stopping->ref});
      return;
    }
    if (auto* finished = find<Finished>()) {
      if (finished->kept && ++r_.missing >= kMissingListings) finished->kept.reset();
      return;
    }
    const Instance* instance = current_instance();
    if (instance == nullptr || ++r_.missing < kMissingListings) return;
    if (instance->ref.id.empty()) return lost();
    act(action::Confirm{instance->ref});
  }

  void on(const event::InstanceGone&) {
    if (is<Stopping>()) return stopped();
    if (r_.missing >= kMissingListings && current_instance() != nullptr) lost();
  }

  void on(const event::TerminateAccepted&) {
    auto* stopping = find<Stopping>();
    if (stopping == nullptr) return;
    stopping->call_under_way = false;
    stopping->failures = 0;
    const auto grace = stopping->asked_grace.value_or(std::chrono::seconds(0));
    stopping->retry_at = now_.steady + grace + kTerminateAgain;
    act(action::Confirm{stopping->ref});
    if (grace > grace_left()) return terminate(*stopping);
    wake_at(stopping->retry_at);
  }

  void on(const event::TerminateFailed& e) {
    auto* stopping = find<Stopping>();
    if (stopping == nullptr) return;
    stopping->call_under_way = false;
    if (e.error.kind == ErrorKind::kNotFound) {
      stopping->retry_at = now_.steady + kTerminateAgain;
      wake_at(stopping->retry_at);
      return act(action::Confirm{stopping->ref});
    }
    if (stopping->failures++ == 0) tell(true, "FailedKillPod", e.error.message);
    Duration delay = base::backoff_delay(kProviderBackoff, stopping->failures);
    if (e.error.retry_after) delay = std::max<Duration>(delay, *e.error.retry_after);
    stopping->retry_at = now_.steady + delay;
    wake_at(stopping->retry_at);
  }

  void on(const event::ContainerStarted& e) {
    model::ContainerRecord* container = find_container(e.container);
    if (container == nullptr || !container->restart_under_way) return;
    container->restart_under_way = false;
    container->restart_at.reset();
    ++container->restarts;
    container->claim.state = model::ContainerState::kRunning;
    container->claim.started_at = now_.wall;
    container->claim.exit_code.reset();
    container->claim.reason.clear();
    container->claim.message.clear();
  }

  void on(const event::ContainerStartFailed& e) {
    model::ContainerRecord* container = find_container(e.container);
    if (container == nullptr || !container->restart_under_way) return;
    container->restart_under_way = false;
    ++container->crashes_in_a_row;
    container->restart_at = now_.steady + base::backoff_delay(kRestartBackoff, container->crashes_in_a_row);
    tell(true, "Failed", "Error: cannot start container " + e.container + ": " + e.error.message);
    wake_at(*container->restart_at);
  }

  void on(const event::StatusWritten& e) {
    if (!model::is_older_version(e.resource_version, r_.observed.resource_version)) {
      r_.observed.resource_version = e.resource_version;
      r_.observed.status = e.status;
      r_.observed.addresses = e.addresses;
      if (e.state) {
        r_.observed.state.kind = StateAnnotation::Kind::kRecord;
        r_.observed.state.record = *e.state;
      }
    }
    if (is<Finished>()) progress_finish();
  }

  void on(const event::EntryClosed&) {
    auto* finished = find<Finished>();
    if (finished == nullptr || finished->step != Finished::Step::kClosing) return;
    finished->step = Finished::Step::kDeleting;
    delete_pod(*finished);
  }

  void on(const event::PodDeleteAccepted&) {
    if (auto* finished = find<Finished>()) finished->step = Finished::Step::kDeleted;
  }

  void on(const event::PodDeleteFailed& e) {
    auto* finished = find<Finished>();
    if (finished == nullptr || finished->step != Finished::Step::kDeleting) return;
    finished->delete_under_way = false;
    // Not found, or another UID under that name: this pod is gone.
    if (e.error.kind == ErrorKind::kNotFound || e.error.kind == ErrorKind::kConflict) return on(event::PodGone{});
    finished->retry_at = now_.steady + std::max<Duration>(e.error.retry_after.value_or(std::chrono::milliseconds(0)),
                                                          std::chrono::seconds(1));
    wake_at(finished->retry_at);
  }

  void on(const event::Tick&) {
    if (const auto* waiting = find<Waiting>()) return tick_waiting(*waiting);
    if (auto* creating = find<Creating>()) return tick_creating(*creating);
    if (const auto* booting = find<Booting>()) return tick_booting(*booting);
    if (is<Running>()) return start_due_containers();
    if (auto* stopping = find<Stopping>()) {
      if (stopping->call_under_way) return;
      if (now_.steady < stopping->retry_at) return wake_at(stopping->retry_at);
      return terminate(*stopping);
    }
    auto* finished = find<Finished>();
    if (finished == nullptr || finished->step != Finished::Step::kDeleting || finished->delete_under_way) return;
    if (now_.steady < finished->retry_at) return wake_at(finished->retry_at);
    delete_pod(*finished);
  }

 private:
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(r_.stage);
  }
  template <class T>
  T* find() {
    return std::get_if<T>(&r_.stage);
  }

  void act(Action a) { actions_.push_back(std::move(a)); }
  void tell(bool warning, std::string reason, std::string message) {
    act(action::Tell{warning, std::move(reason), std::move(message)});
  }
  void wake_at(TimePoint when) {
    if (when != TimePoint::max()) act(action::WakeAt{when});
  }
  void enter(model::Stage stage) {
    r_.stage = std::move(stage);
    r_.entered.at(r_.stage.index()) = now_.steady;
    r_.missing = 0;
  }

  /// Nothing more is to be started for this pod.
  bool ending() const { return r_.deleting || r_.outcome.has_value(); }

  std::chrono::seconds grace_left() const {
    if (!r_.deleting || r_.delete_by <= now_.steady) return std::chrono::seconds(0);
    return std::chrono::ceil<std::chrono::seconds>(r_.delete_by - now_.steady);
  }

  const Instance* current_instance() {
    if (const auto* booting = find<Booting>()) return &booting->instance;
    if (const auto* running = find<Running>()) return &running->instance;
    return nullptr;
  }

  model::ContainerRecord* find_container(const std::string& name) {
    const auto it = std::find_if(r_.containers.begin(), r_.containers.end(),
                                 [&](const auto& c) { return c.claim.name == name; });
    return it == r_.containers.end() ? nullptr : &*it;
  }

  model::Outcome observed_outcome() const {
    model::Outcome outcome;
    outcome.phase = r_.observed.status.phase;
    outcome.reason = r_.observed.status.reason;
    outcome.message = r_.observed.status.message;
    return outcome;
  }

  // ---- waiting and choosing

  void choose() {
    if (ending()) return finish({});
    enter(Choosing{});
    act(action::Choose{});
  }

  void wait(WaitReason why, std::string message, TimePoint until) {
    enter(Waiting{why, until, std::move(message)});
    wake_at(until);
  }

  void tick_waiting(const Waiting& waiting) {
    if (waiting.why == WaitReason::kUnreadableState) return;
    if (now_.steady < waiting.until) return wake_at(waiting.until);
    if (waiting.why == WaitReason::kRefused) {
      fail("Unsupported", waiting.message);
      return finish({});
    }
    choose();
  }

  void try_next_offer() {
    r_.tried.push_back(r_.placement->offer);
    choose();
  }

  void fail(std::string reason, std::string message, std::string disruption = {}) {
    model::Outcome outcome;
    outcome.reason = std::move(reason);
    outcome.message = std::move(message);
    outcome.disruption = std::move(disruption);
    r_.outcome = std::move(outcome);
  }

  void image_failed(const std::string& message) {
    ++r_.image_failures;
    if (ending()) return finish({});
    tell(true, "Failed", "Failed to pull image: " + message);
    wait(WaitReason::kImagePull, message, now_.steady + base::backoff_delay(kImageBackoff, r_.image_failures));
  }

  /// An instance never came to run. The next offer, or the end.
  void start_failed(const std::string& reason, const std::string& message) {
    r_.tried.push_back(r_.placement->offer);
    ++r_.start_failures;
    tell(true, reason, message);
    if (!r_.outcome && r_.start_failures >= policy_.max_start_attempts) {
      act(action::NoteFailure{});
      fail(reason, message);
    }
    choose();
  }

  // ---- creating

  void retry_at(Creating& creating, const base::Error& error, const base::BackoffPolicy& backoff) {
    ++creating.failures;
    Duration delay = base::backoff_delay(backoff, creating.failures);
    if (error.retry_after) delay = std::max<Duration>(delay, *error.retry_after);
    creating.step = Creating::Step::kRetry;
    creating.until = now_.steady + delay;
    wake_at(creating.until);
  }

  void look_up(TimePoint until) {
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

  void tick_creating(Creating& creating) {
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

  // ---- an instance exists

  void adopt(const Instance& instance) {
    if (!r_.placement) {
      // The annotation was lost, but the tag says whose it is.
      model::Placement placement;
      placement.pod = r_.key().uid;
      placement.provider = instance.ref.provider;
      placement.tag = instance.tag;
      r_.placement = placement;
    }
    if (r_.containers.empty()) r_.containers = make_container_records(*r_.spec, r_.observed.status);
    if (r_.outcome && !r_.deleting && instance.state == InstanceState::kExited && r_.provider.keeps_stopped) {
      return finish(instance.ref);
    }
    if (ending()) return stop(instance.ref, r_.deleting ? StopReason::kDeleted : StopReason::kTerminalPod);
    if (r_.price_cap && instance.price_per_hour && *instance.price_per_hour > *r_.price_cap) {
      tell(true, "TooDear", "the instance costs $" + instance.price_per_hour->to_dollars() + " per hour, over the cap of $" +
                                r_.price_cap->to_dollars());
      act(action::CoolDown{r_.placement->provider, r_.placement->offer, kBadOfferFor});
      return stop(instance.ref, StopReason::kTooDear);
    }
    const auto* creating = find<Creating>();
    const bool resumed = is<Admitted>() || (creating != nullptr && creating->step == Creating::Step::kLookUp);
    enter(Booting{instance, now_.steady});
    on_instance(instance);
    if (!is<Booting>()) return;
    // Creating again with the same tag carries an unfinished instance on: the create died half way, with a daemon or
    // with its answer.
    if (resumed && instance.state == InstanceState::kPending) act(action::Create{});
    wake_at(now_.steady + policy_.write_instance_after);
    wake_at(now_.steady + policy_.start_deadline);
  }

  void tick_booting(const Booting& booting) {
    const TimePoint deadline = booting.since + policy_.start_deadline;
    if (now_.steady >= deadline) {
      act(action::CoolDown{r_.placement->provider, r_.placement->offer, kBadOfferFor});
      return stop(booting.instance.ref, StopReason::kStartTimeout);
    }
    wake_at(deadline);
  }

  void on_instance(const Instance& instance) {
    r_.missing = 0;
    r_.preempted = r_.preempted || instance.preempted;
    if (auto* booting = find<Booting>()) booting->instance = without_containers(instance);
    if (auto* running = find<Running>()) running->instance = without_containers(instance);
    switch (instance.state) {
      case InstanceState::kPending:
      case InstanceState::kUnknown:
      case InstanceState::kTerminating: return;
      case InstanceState::kFailed:
        if (instance.image_error && !r_.ran) return stop(instance.ref, StopReason::kImagePull, instance.message);
        return stop(instance.ref, r_.ran ? StopReason::kLost : StopReason::kBootFailed, instance.message);
      case InstanceState::kRunning:
      case InstanceState::kExited: break;
    }
    if (is<Booting>()) {
      if (!r_.ran) tell(false, "Started", started_message());
      r_.ran = true;
      enter(Running{without_containers(instance)});
    }
    apply_claims(r_, instance, now_);
    if (all_ended(r_)) return completed(instance);
    start_due_containers();
  }

  std::string started_message() const {
    return "Started at provider " + r_.placement->provider.str() + ", offer " + r_.placement->offer.str() + ", $" +
           r_.placement->price_per_hour.to_dollars() + " per hour";
  }

  void start_due_containers() {
    const auto* running = find<Running>();
    if (running == nullptr || ending()) return;
    for (model::ContainerRecord& container : r_.containers) {
      if (!container.restart_at || container.restart_under_way || *container.restart_at > now_.steady) continue;
      container.restart_under_way = true;
      act(action::StartContainer{running->instance.ref, container.claim.name});
    }
    const auto next = next_restart(r_);
    if (!next) return;
    for (const model::ContainerRecord& container : r_.containers) {
      if (container.restart_at == next) {
        tell(true, "BackOff", "Back-off restarting failed container " + container.claim.name);
      }
    }
    wake_at(*next);
  }

  void completed(const Instance& instance) {
    r_.outcome = outcome_of_exits(r_);
    if (r_.outcome->phase == model::PodPhase::kFailed) act(action::NoteFailure{});
    if (r_.provider.keeps_stopped) return finish(instance.ref);
    stop(instance.ref, StopReason::kCompleted);
  }

  /// The pod ran, and a complete listing of its provider does not hold its instance. One listing proves nothing.
  void stand_in_for_missing_instance() {
    Instance instance;
    if (r_.placement) instance.ref.provider = r_.placement->provider;
    if (r_.observed.state.record) instance.ref.id = r_.observed.state.record->instance;
    r_.containers = make_container_records(*r_.spec, r_.observed.status);
    if (r_.deleting && !instance.ref.id.empty()) return stop(instance.ref, StopReason::kDeleted);
    enter(Running{instance});
    r_.missing = 1;
    if (!r_.placement) return lost();
    act(action::LookUp{});
  }

  void lost() {
    if (is<Booting>()) return start_failed("InstanceLost", "the instance vanished before it ran");
    for (model::ContainerRecord& c : r_.containers) {
      if (c.claim.state == model::ContainerState::kExited) continue;
      c.claim.state = model::ContainerState::kExited;
      c.claim.exit_code.reset();
      c.claim.finished_at = now_.wall;
    }
    fail_as_lost();
    finish({});
  }

  void fail_as_lost() {
    const std::string where = r_.placement ? " at provider " + r_.placement->provider.str() : std::string();
    const std::string message =
        r_.preempted ? "the provider took the instance back" + where : "the instance" + where + " is gone";
    tell(true, r_.preempted ? "Preempted" : "InstanceLost", message);
    fail(r_.preempted ? "Preempted" : "InstanceLost", message,
         r_.preempted ? "PreemptionByProvider" : "DeletionByProvider");
  }

  // ---- stopping

  void end_because_terminal() {
    if (const Instance* instance = current_instance()) return stop(instance->ref, StopReason::kTerminalPod);
    if (is<Waiting>() || is<Choosing>()) return finish({});
    if (const auto* creating = find<Creating>(); creating != nullptr && creating->step == Creating::Step::kRetry) {
      finish({});
    }
  }

  void on_delete() {
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
      // What is under way is waited for: its answer decides whether there is something to end.
      if (creating->step == Creating::Step::kRetry) finish({});
      return;
    }
    if (auto* stopping = find<Stopping>()) {
      const bool shorter = stopping->asked_grace && *stopping->asked_grace > grace_left();
      if (shorter && !stopping->call_under_way) terminate(*stopping);
      return;
    }
    if (auto* finished = find<Finished>()) {
      if (finished->kept) return stop(model::InstanceRef(*finished->kept), StopReason::kDeleted);
      progress_finish();
    }
  }

  void stop(model::InstanceRef ref, StopReason why, std::string message = {}) {
    Stopping stopping;
    stopping.message = std::move(message);
    stopping.ref = std::move(ref);
    stopping.why = why;
    stopping.since = now_.steady;
    enter(std::move(stopping));
    terminate(*find<Stopping>());
  }

  void terminate(Stopping& stopping) {
    std::chrono::seconds grace{0};
    if (stopping.why == StopReason::kDeleted) grace = grace_left();
    if (stopping.why == StopReason::kTerminalPod && !r_.deleting) grace = r_.spec->grace;
    stopping.asked_grace = grace;
    stopping.call_under_way = true;
    act(action::Terminate{stopping.ref, grace});
  }

  void stopped() {
    const StopReason why = find<Stopping>()->why;
    const std::string message = find<Stopping>()->message;
    switch (why) {
      case StopReason::kDeleted:
        if (!r_.outcome) r_.outcome = outcome_of_exits(r_);
        return finish({});
      case StopReason::kCompleted:
      case StopReason::kTerminalPod: return finish({});
      case StopReason::kImagePull: return image_failed(message);
      case StopReason::kBootFailed: return start_failed("StartFailed", message);
      case StopReason::kStartTimeout: return start_failed("StartTimeout", "the instance did not run within the start deadline");
      case StopReason::kTooDear: return try_next_offer();
      case StopReason::kLost: return lost();
    }
  }

  // ---- the end

  void finish(std::optional<model::InstanceRef> kept) {
    if (!r_.outcome) {
      fail(r_.api_gone ? "" : "Deleted", "the pod was deleted before it ran");
    }
    Finished finished;
    finished.kept = std::move(kept);
    enter(std::move(finished));
    if (r_.deleting && find<Finished>()->kept) return stop(model::InstanceRef(*find<Finished>()->kept), StopReason::kDeleted);
    progress_finish();
  }

  void delete_pod(Finished& finished) {
    finished.delete_under_way = true;
    act(action::DeletePod{});
  }

  /// The terminal status is published first, then the entry is closed, then the object goes.
  void progress_finish() {
    auto* finished = find<Finished>();
    if (finished->kept) return;
    if (r_.api_gone) return act(action::Forget{});
    if (!r_.deleting || finished->step != Finished::Step::kResting) return;
    if (!model::is_terminal(r_.observed.status.phase)) return;
    finished->step = Finished::Step::kClosing;
    act(action::CloseEntry{});
  }

  PodRecord& r_;
  base::Now now_;
  const PodPolicy& policy_;
  Actions actions_;
};

}  // namespace

PodRecord admit(model::PodSpecPtr spec, model::ObservedPod observed, base::Now now) {
  PodRecord record;
  record.spec = std::move(spec);
  record.observed = std::move(observed);
  record.stage = Admitted{};
  record.entered.at(record.stage.index()) = now.steady;
  if (record.observed.deletion_timestamp) {
    record.deleting = true;
    record.delete_by = now.steady + record.observed.deletion_grace;
  }
  return record;
}

Actions advance(PodRecord& record, const Event& event, base::Now now, const PodPolicy& policy) {
  Step step(record, now, policy);
  std::visit([&](const auto& e) { step.on(e); }, event);
  if (!std::holds_alternative<Admitted>(record.stage)) keep_fingerprint(record.observed);
  return step.take();
}

}  // namespace spillway::core
