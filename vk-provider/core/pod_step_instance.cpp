// pod_step, while there is an instance: boot, run, restart, lose.
#include "vk-provider/core/pod_step.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::core {
namespace {

using base::Duration;
using base::TimePoint;
using model::Admitted;
using model::Booting;
using model::Creating;
using model::Finished;
using model::Instance;
using model::InstanceState;
using model::Running;
using model::Stopping;
using model::StopReason;

// Absence counts only when it is seen twice, and then a get has to agree.
constexpr int kMissingListings = 2;
// A cloud may leave everything out of its listings and call them complete, for hours: one get per pod and listing would
// use up its rate limit.
constexpr base::BackoffPolicy kDoubtBackoff{std::chrono::seconds(1), std::chrono::seconds(30)};

/// Their claims stand in the record's containers; a second copy would only take room.
Instance without_containers(Instance instance) {
  std::exchange(instance.containers, {});  // to clear it would keep its memory
  instance.tag = {};
  return instance;
}

/// True if nothing may run before we start it: all that comes first has a postStart hook.
bool waits_for_us(const model::PodSpec& spec) {
  const size_t count = init_containers(spec).empty() ? spec.containers.size() : 1;
  for (size_t i = 0; i < count; ++i) {
    if (starts_itself(spec, i)) return false;
  }
  return true;
}

}  // namespace

void PodStep::on(const event::Created& e) {
  if (const auto* creating = find<Creating>(); creating != nullptr && creating->step == Creating::Step::kCreate) {
    if (e.at_most && (!r_.price_cap || *e.at_most < *r_.price_cap)) r_.price_cap = e.at_most;
    return adopt(e.instance);
  }
  r_.resume_under_way = false;
  if (is<Booting>()) return on_instance(e.instance);
  auto* stopping = find<Stopping>();
  if (stopping == nullptr) return;
  bought_late(e.instance);
  if (stopping->gone) await_late_creates();
}

void PodStep::on(const event::InstanceSeen& e) {
  if (const auto* creating = find<Creating>(); creating != nullptr && creating->step == Creating::Step::kLookUp) {
    return adopt(e.instance);
  }
  if (is<Booting>() || is<Running>()) return on_instance(e.instance);
  if (is<Stopping>()) bought_late(e.instance);
  if (const auto* finished = find<Finished>(); finished != nullptr && finished->unseen) return adopt(e.instance);
  r_.missing = 0;
}

void PodStep::on(const event::InstanceMissing& e) {
  if (auto* creating = find<Creating>()) {
    if (creating->step != Creating::Step::kLookUp || e.listing_began < creating->until) return;
    if (creating->known) return doubt_listing(*creating->known);
    return not_bought(*creating);
  }
  const TimePoint known_since = r_.entered.at(r_.stage.index());
  if (e.listing_began < known_since) return;
  if (const auto* stopping = find<Stopping>()) {
    if (stopping->gone) {
      if (!r_.resume_under_way && e.listing_began >= r_.create_may_land_until) stopped();
      return;
    }
    if (!stopping->call_under_way) doubt_listing(stopping->ref);
    return;
  }
  if (auto* finished = find<Finished>()) {
    if (finished->kept && !finished->unseen && ++r_.missing >= kMissingListings) doubt_listing(*finished->kept);
    return;
  }
  const Instance* instance = current_instance();
  if (instance == nullptr || ++r_.missing < kMissingListings) return;
  if (instance->ref.id.empty()) return lost();
  doubt_listing(instance->ref);
}

/// Nothing came of the create. The same tag again: if we are wrong, the provider returns the instance that exists.
void PodStep::not_bought(Creating& creating) {
  if (ending()) return finish({});
  ++creating.failures;
  if (!creating.intent_written) {
    creating.step = Creating::Step::kIntent;
    return act(action::WriteIntent{});
  }
  creating.step = Creating::Step::kCreate;
  act(action::Create{});
}

void PodStep::doubt_listing(const model::InstanceRef& ref) {
  if (now_.steady < r_.confirm_at) return;
  r_.confirm_at = now_.steady + base::backoff_delay(kDoubtBackoff, ++r_.confirms);
  act(action::Confirm{ref});
}

void PodStep::on(const event::InstanceGone&) {
  if (is<Stopping>()) return await_late_creates();
  if (auto* creating = find<Creating>(); creating != nullptr && creating->known) {
    creating->known.reset();
    return not_bought(*creating);
  }
  if (auto* finished = find<Finished>(); finished != nullptr && r_.missing >= kMissingListings) finished->kept.reset();
  if (r_.missing >= kMissingListings && current_instance() != nullptr) lost();
}

void PodStep::adopt(const Instance& instance) {
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
  if (ending() && instance.state == InstanceState::kRunning) apply_claims(r_, instance, now_);
  if (ending()) return stop(instance.ref, r_.deleting ? StopReason::kDeleted : StopReason::kTerminalPod);
  // What runs is not ended for its price: its work would be lost.
  if (!r_.ran && r_.price_cap && instance.price_per_hour && *instance.price_per_hour > *r_.price_cap) {
    tell(true, "TooDear",
         "the instance costs $" + instance.price_per_hour->to_dollars() + " per hour, over the cap of $" +
             r_.price_cap->to_dollars());
    return stop(instance.ref, StopReason::kTooDear);
  }
  // It ran, and what is there does not any more: its container was removed while nobody looked. Never a silent restart.
  if (r_.ran && instance.state == InstanceState::kPending) return stop(instance.ref, StopReason::kLost);
  const auto* creating = find<Creating>();
  const bool resumed = is<Admitted>() || (creating != nullptr && creating->step == Creating::Step::kLookUp);
  // It ran before: also an instance of which little is known now must not take the pod back to Pending.
  if (r_.ran) {
    enter(Running{without_containers(instance)});
  } else {
    enter(Booting{instance, now_.steady});
  }
  on_instance(instance);
  if (!is<Booting>()) return;
  // The create died half way, with a daemon or with its answer.
  if (resumed && instance.state == InstanceState::kPending) resume();
  wake_at(now_.steady + policy_.write_instance_after);
  wake_at(now_.steady + policy_.start_deadline);
}

void PodStep::tick_booting(Booting& booting) {
  const TimePoint deadline = booting.since + policy_.start_deadline;
  if (now_.steady >= deadline) return stop(booting.instance.ref, StopReason::kStartTimeout);
  if (booting.resume_at && now_.steady >= *booting.resume_at) {
    booting.resume_at.reset();
    if (booting.instance.state == InstanceState::kPending) resume();
  }
  wake_at(deadline);
}

void PodStep::on_instance(const Instance& instance) {
  r_.missing = 0;
  r_.preempted = r_.preempted || instance.preempted;
  if (auto* booting = find<Booting>()) booting->instance = without_containers(instance);
  if (auto* running = find<Running>()) running->instance = without_containers(instance);
  switch (instance.state) {
    case InstanceState::kPending:
      if (is<Booting>() && waits_for_us(*r_.spec)) {
        apply_claims(r_, instance, now_);
        follow_containers();
      }
      return;
    case InstanceState::kUnknown:
    case InstanceState::kTerminating: return;
    case InstanceState::kFailed:
      if (instance.image_error && !r_.ran) return stop(instance.ref, StopReason::kImagePull, instance.message);
      return stop(instance.ref, r_.ran ? StopReason::kLost : StopReason::kBootFailed, instance.message);
    case InstanceState::kRunning:
    case InstanceState::kExited: break;
  }
  if (is<Booting>()) {
    r_.ran = true;
    enter(Running{without_containers(instance)});
  }
  apply_claims(r_, instance, now_);
  if (!instance.evicted.empty() && !ending() && !work_is_over(r_)) return evict(instance);
  follow_containers();
}

void PodStep::evict(const Instance& instance) {
  tell(true, "Evicted", instance.evicted);
  act(action::NoteFailure{});
  fail("Evicted", instance.evicted);
  stop(instance.ref, StopReason::kEvicted);
}

void PodStep::stand_in_for_missing_instance(std::optional<model::InstanceRef> known) {
  Instance instance;
  if (r_.placement) instance.ref.provider = r_.placement->provider;
  if (known) instance.ref = *std::move(known);
  r_.containers = make_container_records(*r_.spec, r_.observed.status);
  enter(Running{instance});
  r_.missing = 1;
  if (!r_.placement) return lost();
  act(action::LookUp{});
}

void PodStep::lost() {
  if (const Instance* instance = current_instance(); instance != nullptr && create_may_land()) {
    enter_stopping(instance->ref, StopReason::kLost, {});
    return await_late_creates();
  }
  if (!r_.ran) return start_failed("InstanceLost", "the instance vanished before it ran");
  // Its work was done, and only sidecars were still to be stopped.
  if (work_is_over(r_)) {
    end_with_exits();
    return finish({});
  }
  const bool initialized = is_initialized(r_);
  for (model::ContainerRecord& c : r_.containers) {
    if (c.claim.state == model::ContainerState::kExited || (!initialized && !ever_ran(c))) continue;
    c.claim.state = model::ContainerState::kExited;
    c.claim.exit_code.reset();
    c.claim.finished_at = now_.wall;
  }
  fail_as_lost();
  finish({});
}

void PodStep::fail_as_lost() {
  const std::string where = r_.placement ? " at provider " + r_.placement->provider.str() : std::string();
  const std::string message =
      r_.preempted ? "the provider took the instance back" + where : "the instance" + where + " is gone";
  tell(true, r_.preempted ? "Preempted" : "InstanceLost", message);
  fail(r_.preempted ? "Preempted" : "InstanceLost", message,
       r_.preempted ? "PreemptionByProvider" : "DeletionByProvider");
}

}  // namespace spillway::core
