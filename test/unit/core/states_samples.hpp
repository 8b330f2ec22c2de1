// Records of every stage and events of every kind, for the table of states. Data; knows no expectation.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/support/pod_builder.hpp"
#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core::states {

using namespace std::chrono_literals;
using base::ErrorKind;
using model::InstanceState;
using model::PodRecord;

inline constexpr base::TimePoint kSteady{1000s};
inline constexpr base::WallTime kWall{1'700'000'000s};
inline constexpr base::Now kNow{kSteady, kWall};
inline constexpr base::Now kLater{kSteady + 1h, kWall + 1h};  // everything that was waited for is due

// ---- records

struct Situation {
  Situation() = default;
  std::string name;
  PodRecord record;
  std::vector<std::string> only;  // events that are tried; empty: all
};

inline PodRecord a_record(model::Stage stage) {
  PodRecord r = admit(test::share(test::a_pod()), test::seen_at(), kNow);
  r.placement = test::a_placement();
  r.provider = test::facts();
  r.price_cap = base::Money::from_micros(2'000'000);
  r.attempt = 1;
  r.containers = make_container_records(*r.spec, r.observed.status);
  r.stage = std::move(stage);
  r.entered.at(r.stage.index()) = kSteady;
  return r;
}

inline PodRecord deleting(PodRecord r) {
  r.deleting = true;
  r.delete_by = kSteady + 30s;
  r.observed.deletion_timestamp = kWall;
  r.observed.deletion_grace = 30s;
  return r;
}

inline PodRecord failed(PodRecord r) {
  r.outcome = model::Outcome();
  return r;
}

inline model::StateRecord a_state(bool ran) {
  model::StateRecord state;
  state.placement = test::a_placement();
  state.instance = base::InstanceId("i-1");
  state.ran = ran;
  return state;
}

inline PodRecord admitted(model::StateAnnotation::Kind kind, bool ran) {
  PodRecord r = admit(test::share(test::a_pod()), test::seen_at(), kNow);
  r.observed.state.kind = kind;
  if (kind == model::StateAnnotation::Kind::kUnreadable) r.observed.state.problem = "why";
  if (kind == model::StateAnnotation::Kind::kRecord) r.observed.state.record = a_state(ran);
  return r;
}

inline model::Waiting waiting(model::WaitReason why) { return {why, kSteady + 1s, "why"}; }

inline model::Creating creating(model::Creating::Step step) {
  model::Creating c;
  c.step = step;
  c.until = kSteady + 1s;
  c.intent_written = step != model::Creating::Step::kIntent;
  return c;
}

inline model::Stopping stopping(model::StopReason why, bool call_under_way) {
  model::Stopping s;
  s.ref = test::an_instance(InstanceState::kRunning).ref;
  s.why = why;
  s.retry_at = kSteady + 1s;
  s.call_under_way = call_under_way;
  s.asked_grace = 30s;
  s.message = "why";
  return s;
}

inline PodRecord running() {
  PodRecord r = a_record(model::Running{test::an_instance(InstanceState::kRunning)});
  apply_claims(r, test::an_instance(InstanceState::kRunning), kNow);
  r.ran = true;
  return r;
}

inline PodRecord running_once(bool kept) {
  PodRecord r = running();
  auto spec = *r.spec;
  spec.restart_policy = model::RestartPolicy::kNever;
  r.spec = test::share(std::move(spec));
  r.provider.keeps_stopped = kept;
  return r;
}

inline PodRecord crashed(bool starting) {
  PodRecord r = running();
  r.containers[0].claim.state = model::ContainerState::kExited;
  r.containers[0].crashes_in_a_row = 1;
  r.containers[0].restart_at = kSteady + 1s;
  r.containers[0].start_under_way = starting;
  return r;
}

inline model::ContainerSpec a_container(const std::string& name) {
  model::ContainerSpec spec;
  spec.name = name;
  spec.image = "registry.example/app:1";
  return spec;
}

inline model::Handler a_hook() {
  model::Handler hook;
  hook.command = {"true"};
  return hook;
}

/// An init container `init` before `main`, which was only made.
inline PodRecord initializing(model::ContainerState init, int exit_code) {
  auto spec = test::a_pod();
  model::PodExtras extras;
  extras.init_containers.edit().push_back(a_container("init"));
  spec.extras = std::move(extras);
  PodRecord r = a_record(model::Running{test::an_instance(InstanceState::kRunning)});
  r.spec = test::share(std::move(spec));
  r.ran = true;
  r.containers = make_container_records(*r.spec, r.observed.status);
  r.containers[0].claim.state = init;
  if (init == model::ContainerState::kExited) r.containers[0].claim.exit_code = exit_code;
  r.containers[1].claim.created = true;
  return r;
}

/// `main` has both hooks; the last one that was begun is under way.
inline PodRecord hooked(bool stopping) {
  PodRecord r = running();
  auto spec = *r.spec;
  spec.containers.edit()[0].post_start = a_hook();
  spec.containers.edit()[0].pre_stop = a_hook();
  r.spec = test::share(std::move(spec));
  r.containers[0].post_start = model::ContainerRecord::PostStart::kUnderWay;
  if (!stopping) return r;
  r.containers[0].post_start = model::ContainerRecord::PostStart::kDone;
  model::ContainerStop stop;
  stop.by = kSteady + 30s;
  stop.until = stop.by;
  r.containers[0].stop = stop;
  return r;
}

/// `main` is done, and the sidecar `proxy` runs on.
inline PodRecord with_sidecar() {
  PodRecord r = initializing(model::ContainerState::kRunning, 0);
  auto spec = *r.spec;
  spec.restart_policy = model::RestartPolicy::kNever;
  spec.extras->init_containers.edit()[0].restart_policy = model::RestartPolicy::kAlways;
  r.spec = test::share(std::move(spec));
  r.containers[1].claim.state = model::ContainerState::kRunning;
  return r;
}

inline PodRecord stopping_after_hooks() {
  model::Stopping stage = stopping(model::StopReason::kDeleted, false);
  stage.hooks_left = 1;
  stage.hooks_ran = true;
  stage.asked_grace.reset();
  PodRecord r = hooked(false);
  r.stage = std::move(stage);
  return deleting(std::move(r));
}

inline PodRecord finished(model::Finished::Step step, bool kept) {
  model::Finished f;
  f.step = step;
  f.delete_under_way = step == model::Finished::Step::kDeleting;
  if (kept) f.kept = test::an_instance(InstanceState::kExited).ref;
  PodRecord r = failed(a_record(std::move(f)));
  return step == model::Finished::Step::kResting ? r : deleting(std::move(r));
}

inline std::vector<Situation> situations() {
  using Step = model::Creating::Step;
  using End = model::Finished::Step;
  using Kind = model::StateAnnotation::Kind;
  using Stop = model::StopReason;
  std::vector<Situation> all;
  const auto add = [&](std::string name, PodRecord record, std::vector<std::string> only = {}) {
    Situation& s = all.emplace_back();
    s.name = std::move(name);
    s.record = std::move(record);
    s.only = std::move(only);
  };
  const std::vector<std::string> joins{"Joined(nothing)", "Joined(pending)", "Joined(running)",
                                       "Joined(provider unknown)"};
  const std::vector<std::string> ends{"InstanceGone"};
  const std::vector<std::string> late{
      "Created(pending)",      "Created(another)", "CreateFailed(unavailable)", "CreateFailed(unknown_outcome)",
      "InstanceSeen(another)", "InstanceMissing",  "PodSeen(deleting)",         "Tick(due)"};
  const std::vector<std::string> hooks{"PodSeen(deleting)",
                                       "PodGone",
                                       "HookEnded(postStart)",
                                       "HookEnded(postStart failed)",
                                       "HookEnded(preStop)",
                                       "HookEnded(preStop failed)",
                                       "ProbeChanged(liveness fails)",
                                       "ContainerStopAccepted",
                                       "ContainerStopFailed",
                                       "Tick(due)"};
  add("admitted", admitted(Kind::kAbsent, false));
  add("admitted, with an intent", admitted(Kind::kRecord, false), joins);
  add("admitted, was running", admitted(Kind::kRecord, true), joins);
  add("admitted, with a state that cannot be read", admitted(Kind::kUnreadable, false), joins);
  add("admitted, deleting", deleting(admitted(Kind::kRecord, false)), joins);
  add("waiting(NoCapacity)", a_record(waiting(model::WaitReason::kNoCapacity)));
  add("waiting(UnsupportedPodSpec)", a_record(waiting(model::WaitReason::kRefused)));
  add("waiting(UnreadableState)", a_record(waiting(model::WaitReason::kUnreadableState)));
  add("choosing", a_record(model::Choosing{}));
  add("creating/intent", a_record(creating(Step::kIntent)));
  add("creating/intent, deleting", deleting(a_record(creating(Step::kIntent))));
  add("creating/create", a_record(creating(Step::kCreate)));
  add("creating/create, deleting", deleting(a_record(creating(Step::kCreate))));
  add("creating/retry", a_record(creating(Step::kRetry)));
  add("creating/look_up", a_record(creating(Step::kLookUp)));
  add("creating/look_up, deleting", deleting(a_record(creating(Step::kLookUp))));
  add("booting", a_record(model::Booting{test::an_instance(InstanceState::kPending), kSteady}));
  PodRecord resumed = a_record(model::Booting{test::an_instance(InstanceState::kPending), kSteady});
  resumed.resume_under_way = true;
  add("booting, unfinished create carried on", resumed);
  add("running", running());
  add("running, restartPolicy Never", running_once(true));
  add("running, restartPolicy Never, provider keeps nothing", running_once(false));
  add("running, container in back-off", crashed(false));
  add("running, container being started", crashed(true));
  add("running, an init container runs", initializing(model::ContainerState::kRunning, 0),
      {"InstanceSeen(init exit 0)", "InstanceSeen(init exit 3)", "ContainerStarted"});
  add("running, a sidecar beside it, restartPolicy Never", with_sidecar(), {"InstanceSeen(exit 0)"});
  add("running, postStart hook under way", hooked(false), hooks);
  add("running, container being stopped, preStop hook under way", hooked(true), hooks);
  PodRecord asking = hooked(true);
  asking.containers[0].stop->step = model::ContainerStop::Step::kAsking;
  add("running, container being stopped", asking, hooks);
  add("stopping(deleted), hooks under way", stopping_after_hooks());
  add("stopping(deleted), asking", deleting(a_record(stopping(Stop::kDeleted, true))));
  add("stopping(deleted), asked", deleting(a_record(stopping(Stop::kDeleted, false))));
  add("stopping(completed)", failed(a_record(stopping(Stop::kCompleted, false))), ends);
  add("stopping(image_pull)", a_record(stopping(Stop::kImagePull, false)), ends);
  add("stopping(boot_failed)", a_record(stopping(Stop::kBootFailed, false)), ends);
  add("stopping(start_timeout)", a_record(stopping(Stop::kStartTimeout, false)), ends);
  add("stopping(too_dear)", a_record(stopping(Stop::kTooDear, false)), ends);
  PodRecord lost = a_record(stopping(Stop::kLost, false));
  lost.ran = true;
  add("stopping(lost)", lost, ends);
  add("stopping(evicted)", failed(a_record(stopping(Stop::kEvicted, false))), ends);
  add("stopping(terminal_pod)", failed(a_record(stopping(Stop::kTerminalPod, false))), ends);
  model::Stopping gone = stopping(Stop::kBootFailed, false);
  gone.gone = true;
  PodRecord unanswered = a_record(gone);
  unanswered.resume_under_way = true;
  add("stopping(boot_failed), gone, its create not answered", unanswered, late);
  PodRecord may_land = a_record(gone);
  may_land.create_may_land_until = kSteady + 1s;
  add("stopping(boot_failed), gone, its create may have bought another", may_land, late);
  add("finished/resting", finished(End::kResting, false));
  add("finished/resting, instance kept", finished(End::kResting, true));
  add("finished/resting, deleting", deleting(finished(End::kResting, false)));
  add("finished/closing", finished(End::kClosing, false));
  add("finished/deleting", finished(End::kDeleting, false));
  add("finished/deleted", finished(End::kDeleted, false));
  return all;
}

// ---- events

/// One thing that happens, or several in a row of which the last is looked at.
struct Happening {
  Happening() = default;
  std::string name;
  std::function<std::vector<Event>(const PodRecord&)> make;
  base::Now now = kNow;
  bool special = false;  // tried only where a situation asks for it
};

inline model::ObservedPod next_sight(const PodRecord& r) {
  model::ObservedPod observed = r.observed;
  observed.resource_version = "101";
  return observed;
}

inline Event pod_seen_deleting(const PodRecord& r) {
  model::ObservedPod observed = next_sight(r);
  observed.deletion_timestamp = kWall;
  observed.deletion_grace = 30s;
  return event::PodSeen{std::move(observed)};
}

inline Event pod_seen_terminal(const PodRecord& r) {
  model::ObservedPod observed = next_sight(r);
  observed.status.phase = model::PodPhase::kFailed;
  return event::PodSeen{std::move(observed)};
}

inline Event status_written(const PodRecord& r) {
  event::StatusWritten written;
  written.resource_version = "101";
  if (r.outcome) written.status.phase = r.outcome->phase;
  return written;
}

inline Event joined(std::optional<model::Instance> instance, std::string problem = {}) {
  event::Joined joined;
  joined.problem = std::move(problem);
  joined.instance = std::move(instance);
  joined.provider = test::facts();
  joined.intent_may_land_until = kSteady;
  return joined;
}

inline model::Instance failed_instance(bool image) {
  model::Instance instance = test::an_instance(InstanceState::kFailed);
  instance.image_error = image;
  return instance;
}

inline model::Instance dear_instance() {
  model::Instance instance = test::an_instance(InstanceState::kPending);
  instance.price_per_hour = base::Money::from_micros(3'000'000);
  return instance;
}

inline model::Instance init_exited(int code) {
  model::Instance instance = test::exited(code, kWall);
  instance.state = InstanceState::kRunning;
  instance.containers[0].name = "init";
  return instance;
}

inline Event hook_ended(Hook hook, bool fails) {
  event::HookEnded ended;
  ended.container = "main";
  ended.hook = hook;
  if (fails) ended.error = base::Error(ErrorKind::kInvalid, "why");
  return ended;
}

inline Event probe_changed(ProbeKind probe, bool passes) {
  event::ProbeChanged changed;
  changed.container = "main";
  changed.probe = probe;
  changed.passes = passes;
  changed.message = "why";
  return changed;
}

inline base::Error error(ErrorKind kind) { return {kind, "why"}; }

inline std::vector<ErrorKind> all_kinds() {
  std::vector<ErrorKind> kinds;
  for (int i = 0; i <= static_cast<int>(ErrorKind::kInternal); ++i) kinds.push_back(static_cast<ErrorKind>(i));
  return kinds;
}

inline std::vector<Happening> happenings() {
  std::vector<Happening> all;
  const auto add = [&](std::string name, std::function<std::vector<Event>(const PodRecord&)> make,
                       base::Now now = kNow) {
    Happening& h = all.emplace_back();
    h.name = std::move(name);
    h.make = std::move(make);
    h.now = now;
  };
  const auto plain = [&](std::string name, Event event) {
    add(std::move(name), [event](const PodRecord&) { return std::vector<Event>{event}; });
  };
  const auto of_kinds = [&](const std::string& name, auto make) {
    for (const ErrorKind kind : all_kinds()) {
      plain(name + "(" + std::string(to_string(kind)) + ")", make(error(kind)));
    }
  };
  add("PodSeen(same)", [](const PodRecord& r) { return std::vector<Event>{event::PodSeen{next_sight(r)}}; });
  add("PodSeen(deleting)", [](const PodRecord& r) { return std::vector<Event>{pod_seen_deleting(r)}; });
  add("PodSeen(terminal)", [](const PodRecord& r) { return std::vector<Event>{pod_seen_terminal(r)}; });
  plain("PodGone", event::PodGone{});
  plain("Joined(nothing)", joined({}));
  plain("Joined(pending)", joined(test::an_instance(InstanceState::kPending)));
  plain("Joined(running)", joined(test::an_instance(InstanceState::kRunning)));
  plain("Joined(provider unknown)", joined({}, "why"));
  plain("Refused", event::Refused{"why", kSteady + 60s});
  plain("Held(NoCapacity)", event::Held{model::WaitReason::kNoCapacity, "why", kSteady + 15s});
  plain("Chosen", event::Chosen{test::a_placement(2), test::facts(), base::Money::from_micros(2'000'000)});
  plain("IntentWritten", event::IntentWritten{});
  of_kinds("IntentFailed", [](base::Error e) { return event::IntentFailed{std::move(e)}; });
  plain("Created(pending)", event::Created{test::an_instance(InstanceState::kPending)});
  plain("Created(running)", event::Created{test::an_instance(InstanceState::kRunning)});
  plain("Created(too dear)", event::Created{dear_instance()});
  of_kinds("CreateFailed", [](base::Error e) { return event::CreateFailed{std::move(e)}; });
  for (const InstanceState state :
       {InstanceState::kPending, InstanceState::kUnknown, InstanceState::kTerminating, InstanceState::kRunning}) {
    plain("InstanceSeen(" + std::string(to_string(state)) + ")", event::InstanceSeen{test::an_instance(state)});
  }
  plain("InstanceSeen(exit 0)", event::InstanceSeen{test::exited(0, kWall)});
  plain("InstanceSeen(exit 3)", event::InstanceSeen{test::exited(3, kWall)});
  plain("InstanceSeen(init exit 0)", event::InstanceSeen{init_exited(0)});
  all.back().special = true;
  plain("InstanceSeen(init exit 3)", event::InstanceSeen{init_exited(3)});
  all.back().special = true;
  model::Instance evicted = test::an_instance(InstanceState::kRunning);
  evicted.evicted = "it takes too much";
  plain("InstanceSeen(over a limit)", event::InstanceSeen{evicted});
  plain("InstanceSeen(failed)", event::InstanceSeen{failed_instance(false)});
  plain("InstanceSeen(failed by image)", event::InstanceSeen{failed_instance(true)});
  model::Instance another = test::an_instance(InstanceState::kPending);
  another.ref.id = base::InstanceId("i-2");
  plain("InstanceSeen(another)", event::InstanceSeen{another});
  all.back().special = true;
  plain("Created(another)", event::Created{another});
  all.back().special = true;
  const Event missing = event::InstanceMissing{kSteady + 1s};
  plain("InstanceMissing", missing);
  add("InstanceMissing twice", [missing](const PodRecord&) { return std::vector<Event>{missing, missing}; });
  plain("InstanceGone", event::InstanceGone{});
  add("InstanceMissing twice + InstanceGone",
      [missing](const PodRecord&) { return std::vector<Event>{missing, missing, event::InstanceGone{}}; });
  plain("TerminateAccepted", event::TerminateAccepted{});
  of_kinds("TerminateFailed", [](base::Error e) { return event::TerminateFailed{std::move(e)}; });
  plain("ContainerStarted", event::ContainerStarted{"main"});
  plain("ContainerStartFailed", event::ContainerStartFailed{"main", error(ErrorKind::kUnavailable)});
  plain("ContainerStopAccepted", event::ContainerStopAccepted{"main"});
  plain("ContainerStopFailed", event::ContainerStopFailed{"main", error(ErrorKind::kUnavailable)});
  plain("HookEnded(postStart)", hook_ended(Hook::kPostStart, false));
  plain("HookEnded(postStart failed)", hook_ended(Hook::kPostStart, true));
  plain("HookEnded(preStop)", hook_ended(Hook::kPreStop, false));
  plain("HookEnded(preStop failed)", hook_ended(Hook::kPreStop, true));
  plain("ProbeChanged(startup passes)", probe_changed(ProbeKind::kStartup, true));
  plain("ProbeChanged(readiness passes)", probe_changed(ProbeKind::kReadiness, true));
  plain("ProbeChanged(liveness fails)", probe_changed(ProbeKind::kLiveness, false));
  add("StatusWritten", [](const PodRecord& r) { return std::vector<Event>{status_written(r)}; });
  plain("EntryClosed", event::EntryClosed{});
  plain("PodDeleteAccepted", event::PodDeleteAccepted{});
  plain("Discarded", event::Discarded{});
  of_kinds("PodDeleteFailed", [](base::Error e) { return event::PodDeleteFailed{std::move(e)}; });
  plain("Tick", event::Tick{});
  add("Tick(due)", [](const PodRecord&) { return std::vector<Event>{event::Tick{}}; }, kLater);
  return all;
}

}  // namespace spillway::core::states
