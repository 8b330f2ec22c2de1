// What may happen to a pod, and what we may do about it: two closed lists.
//
// Values. control/pod_controller turns the world into events and performs actions; core/pod_fsm stands between.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/placement.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

enum class Hook : std::uint8_t { kPostStart, kPreStop };
enum class ProbeKind : std::uint8_t { kStartup, kReadiness, kLiveness };

namespace event {

/// The live object, new or changed.
struct PodSeen {
  model::ObservedPod observed;
};
/// The object is gone from the API: deleted, or missing from a complete list.
struct PodGone {};
/// The providers were asked: what they hold for this pod, if anything. `intent_may_land_until` is when a create that a
/// former daemon may have sent can no longer turn up.
struct Joined {
  std::optional<model::Instance> instance;
  model::ProviderFacts provider;
  base::TimePoint intent_may_land_until;
  std::optional<base::Money> price_cap{};
  /// Set: it cannot be said what is held (the provider is not configured any more). Neither buy nor terminate.
  std::string problem{};
};
/// No provider can honour the pod, or no client can ask for its image. Failed at `fail_at`.
struct Refused {
  std::string message;
  base::TimePoint fail_at;
  model::WaitReason why = model::WaitReason::kRefused;
};
/// It cannot be bought now; asked again at `until`.
struct Held {
  model::WaitReason why{};
  std::string message;
  base::TimePoint until;
};
struct Chosen {
  model::Placement placement;
  model::ProviderFacts provider;
  std::optional<base::Money> price_cap;
};
struct IntentWritten {};
struct IntentFailed {
  base::Error error;
};
struct Created {
  model::Instance instance;
  /// Set if it is dearer than offered, and a cap is passed by that.
  std::optional<base::Money> at_most{};
};
struct CreateFailed {
  base::Error error;
};
/// What a listing, a look-up or a get says of this pod's instance.
struct InstanceSeen {
  model::Instance instance;
};
/// A complete listing does not hold it.
struct InstanceMissing {
  base::TimePoint listing_began;
};
/// get says "not found": gone for good.
struct InstanceGone {};
struct TerminateAccepted {};
struct TerminateFailed {
  base::Error error;
};
struct ContainerStarted {
  std::string container;
};
struct ContainerStartFailed {
  std::string container;
  base::Error error;
};
struct ContainerStopAccepted {
  std::string container;
};
struct ContainerStopFailed {
  std::string container;
  base::Error error;
};
/// A lifecycle hook has ended. `run` is the container's count of restarts when it was begun: what concerns an earlier
/// run means nothing.
struct HookEnded {
  std::string container;
  std::int32_t run = 0;
  Hook hook{};
  std::optional<base::Error> error{};
};
/// A probe of a container changed its mind.
struct ProbeChanged {
  std::string container;
  std::int32_t run = 0;
  ProbeKind probe{};
  bool passes = false;
  std::string message{};  // why it fails, for people
};
/// A status PATCH was acknowledged: the object now says so.
struct StatusWritten {
  std::string resource_version;
  model::PodStatus status;
  std::optional<model::StateRecord> state;
  std::string addresses;
};
/// The closing entry stands.
struct EntryClosed {};
struct PodDeleteFailed {
  base::Error error;
};
struct PodDeleteAccepted {};
/// It failed long ago, and newer ones of its owner show how: it is to go, as if a user had deleted it.
struct Discarded {};
/// Time that was asked for by WakeAt has come.
struct Tick {};

}  // namespace event

using Event =
    std::variant<event::PodSeen, event::PodGone, event::Joined, event::Refused, event::Held, event::Chosen,
                 event::IntentWritten, event::IntentFailed, event::Created, event::CreateFailed, event::InstanceSeen,
                 event::InstanceMissing, event::InstanceGone, event::TerminateAccepted, event::TerminateFailed,
                 event::ContainerStarted, event::ContainerStartFailed, event::ContainerStopAccepted,
                 event::ContainerStopFailed, event::HookEnded, event::ProbeChanged, event::StatusWritten,
                 event::EntryClosed, event::PodDeleteFailed, event::PodDeleteAccepted, event::Discarded, event::Tick>;

namespace action {

/// Check the pod, resolve its environment, pass the brake, choose an offer: answers Refused, Held or Chosen.
struct Choose {};
/// PATCH the placement (and the status) onto the pod, at the version that we know: IntentWritten or IntentFailed.
struct WriteIntent {};
/// PATCH the status that the record stands for, if it still differs: StatusWritten. The controller asks for it itself,
/// by comparing after each event.
struct WriteStatus {};
/// Buy what the placement says: Created or CreateFailed.
struct Create {};
/// Ask the provider for the tag: InstanceSeen, or nothing.
struct LookUp {};
/// Ask the provider for the end: TerminateAccepted or TerminateFailed.
struct Terminate {
  model::InstanceRef ref;
  std::chrono::seconds grace{0};
};
/// get: InstanceGone, InstanceSeen, or nothing if it could not be asked.
struct Confirm {
  model::InstanceRef ref;
};
/// Start what was only made, or what has ended: ContainerStarted or ContainerStartFailed.
struct StartContainer {
  model::InstanceRef ref;
  std::string container;
  bool look_first = false;  // an earlier start may have happened: only if `get` does not show that it did
};
/// Stop one container: ContainerStopAccepted or ContainerStopFailed. That it ended, the provider's claims say.
struct StopContainer {
  model::InstanceRef ref;
  std::string container;
  std::chrono::seconds grace{0};
};
/// Run a hook of a container that runs, for at most `timeout`: HookEnded.
struct RunHook {
  model::InstanceRef ref;
  std::string container;
  std::int32_t run = 0;
  Hook hook{};
  base::Duration timeout{};
};
/// Write what has to outlive the pod: EntryClosed.
struct CloseEntry {};
/// DELETE with grace 0 and the UID: PodDeleteAccepted or PodDeleteFailed; PodGone comes from the watch.
struct DeletePod {};
/// An Event on the pod, for people.
struct Tell {
  bool warning = false;
  std::string reason;
  std::string message;
};
/// The launch failed in a way that its owner would repeat: the brake should know.
struct NoteFailure {};
/// Send a Tick then. Only the earliest counts.
struct WakeAt {
  base::TimePoint when;
};
/// Nothing is left: drop the record.
struct Forget {};

}  // namespace action

using Action = std::variant<action::Choose, action::WriteIntent, action::WriteStatus, action::Create, action::LookUp,
                            action::Terminate, action::Confirm, action::StartContainer, action::StopContainer,
                            action::RunHook, action::CloseEntry, action::DeletePod, action::Tell, action::NoteFailure,
                            action::WakeAt, action::Forget>;

}  // namespace spillway::core
