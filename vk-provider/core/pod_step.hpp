// One step of pod_fsm: the record, the time, and the actions that come of it.
//
// Internal to core/; made by advance() for one event and thrown away. Its definitions stand in pod_step_launch.cpp (up
// to the purchase), pod_step_instance.cpp (while there is an instance), pod_step_containers.cpp (what it does to single
// containers) and pod_step_end.cpp (the way out); what concerns all stages is in pod_fsm.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core {

/// Between two tries of a call to a provider that is in trouble.
inline constexpr base::BackoffPolicy kProviderBackoff{std::chrono::seconds(1), std::chrono::seconds(30)};

/// Between two looks for what a create with an unknown outcome may have bought.
inline constexpr base::Duration kLookUpEvery = std::chrono::seconds(1);

/// Of an event: its container is stopped all the same.
inline constexpr std::string_view kHookTooSlow = "PreStopHook did not end within the grace period";

class PodStep {
 public:
  PodStep(model::PodRecord& record, base::Now now, const PodPolicy& policy) : r_(record), now_(now), policy_(policy) {}

  Actions take() { return std::move(actions_); }

  void on(const event::PodSeen& e);
  void on(const event::PodGone&);
  void on(const event::Joined& e);
  void on(const event::Refused& e);
  void on(const event::Held& e);
  void on(const event::Chosen& e);
  void on(const event::IntentWritten&);
  void on(const event::IntentFailed& e);
  void on(const event::Created& e);
  void on(const event::CreateFailed& e);
  void on(const event::InstanceSeen& e);
  void on(const event::InstanceMissing& e);
  void on(const event::InstanceGone&);
  void on(const event::TerminateAccepted&);
  void on(const event::TerminateFailed& e);
  void on(const event::ContainerStarted& e);
  void on(const event::ContainerStartFailed& e);
  void on(const event::ContainerStopAccepted& e);
  void on(const event::ContainerStopFailed& e);
  void on(const event::HookEnded& e);
  void on(const event::ProbeChanged& e);
  void on(const event::StatusWritten& e);
  void on(const event::EntryClosed&);
  void on(const event::PodDeleteAccepted&);
  void on(const event::PodDeleteFailed& e);
  void on(const event::Discarded&);
  void on(const event::Tick&);
  /// What is looked at after every event.
  void after();

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
  void tell(bool warning, std::string reason, std::string message);
  void wake_at(base::TimePoint when);
  void enter(model::Stage stage);

  /// Nothing more is to be started for this pod.
  bool ending() const { return r_.deleting || r_.outcome.has_value(); }

  std::chrono::seconds grace_left() const;
  const model::Instance* current_instance() const;
  std::optional<size_t> find_container(const std::string& name) const;
  model::Outcome observed_outcome() const;

  // waiting and choosing
  void choose();
  void wait(model::WaitReason why, std::string message, base::TimePoint until);
  void tick_waiting(const model::Waiting& waiting);
  void try_next_offer();
  void fail(std::string reason, std::string message, std::string disruption = {});
  void image_failed(const std::string& message);

  /// An instance never came to run. The next offer, or the end.
  void start_failed(const std::string& reason, const std::string& message);

  // creating
  /// Creating again with the same tag carries an unfinished instance on.
  void resume();
  void resume_failed(model::Booting& booting, const base::Error& error);
  void retry_at(model::Creating& creating, const base::Error& error, const base::BackoffPolicy& backoff);
  void look_up(base::TimePoint until);
  void tick_creating(model::Creating& creating);
  void not_bought(model::Creating& creating);

  /// What the record on the pod names; no value if it names none.
  std::optional<model::InstanceRef> named_instance() const;

  // nothing is bought
  void stand_as_placeholder();
  void end_placeholder();

  // an instance exists
  void adopt(const model::Instance& instance);
  void tick_booting(model::Booting& booting);
  void on_instance(const model::Instance& instance);
  void evict(const model::Instance& instance);

  /// A listing leaves the instance out: asks for the instance itself, less often the longer the two disagree.
  void doubt_listing(const model::InstanceRef& ref);

  /// The pod ran, and a complete listing of its provider does not hold its instance. One listing proves nothing.
  void stand_in_for_missing_instance(std::optional<model::InstanceRef> known);
  void lost();
  void fail_as_lost();

  // its containers
  /// Does what is due for the containers of an instance; ends the pod's work once it is over.
  void follow_containers();
  void start_containers(const model::InstanceRef& ref);
  void run_post_start_hooks(const model::InstanceRef& ref);
  void kill_container(size_t index, std::chrono::seconds grace, std::string why);
  void stop_container(const model::InstanceRef& ref, size_t index, std::chrono::seconds grace);
  void ask_stop(const model::InstanceRef& ref, size_t index);
  void drive_stops(const model::InstanceRef& ref);
  void end_sidecars(const model::Instance& instance);
  void complete(model::InstanceRef ref, bool keep);
  /// The pod's work is over: it ends as its containers did.
  void end_with_exits();
  void run_pre_stop_hooks(model::Stopping& stopping);
  void await_pre_stop_hooks(model::Stopping& stopping);
  void pre_stop_ended(size_t index, const std::optional<base::Error>& error);

  // stopping
  bool note_deletion();
  /// Ends a pod whose activeDeadlineSeconds are over, or asks to be woken when they are.
  void heed_active_deadline();
  void end_because_terminal();
  void on_delete();
  void enter_stopping(model::InstanceRef ref, model::StopReason why, std::string message);
  void stop(model::InstanceRef ref, model::StopReason why, std::string message = {});
  void terminate(model::Stopping& stopping);
  /// What the instance may take to end, as things stand.
  std::chrono::seconds grace_of(const model::Stopping& stopping) const;
  /// The instance is gone. The attempt is not over while a create under its tag may still buy another one.
  void await_late_creates();
  void look_for_late_creates();
  bool create_may_land() const { return r_.resume_under_way || now_.steady < r_.create_may_land_until; }
  /// While one instance is ended there is another one under its tag.
  void bought_late(const model::Instance& instance);
  void stopped();

  // the end
  void finish(std::optional<model::InstanceRef> kept);
  void delete_pod(model::Finished& finished);

  /// The terminal status is published first, then the entry is closed, then the object goes.
  void progress_finish();
  model::PodRecord& r_;
  base::Now now_;
  const PodPolicy& policy_;
  Actions actions_;
};

}  // namespace spillway::core
