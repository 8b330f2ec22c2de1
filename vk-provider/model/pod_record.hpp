// What we know of one pod: its spec, its live object, its stage, and what was tried for it.
//
// A value, keyed by the pod's UID, owned by control/pod_store; written only by core/pod_fsm. The stage is a variant, so
// that a state which makes no sense cannot be spelled.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/maybe_time.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/placement.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::model {

/// Why a pod waits; also the waiting reason of its containers (to_string).
enum class WaitReason : std::uint8_t {
  kRefused,              // no provider can honour it; Failed when the brake's hold is over
  kInvalidImage,         // the name of an image cannot be parsed; Failed when the brake's hold is over
  kConfig,               // what its environment refers to is missing or cannot be read
  kMount,                // the same of the files of its volumes
  kNoCapacity,           // no offer fits now
  kBudget,               // what fits would pass a cap on money
  kLaunchBackOff,        // its owner's last pod failed: the brake slows the next one
  kProviderUnavailable,  // nothing could be bought: credentials, quota, outage
  kImagePull,            // the image cannot be pulled; the instance was released meanwhile
  kStartFailed,          // the last instance never ran; the next offer is tried
  kUnreadableState,  // what we wrote on it cannot be followed (unknown version or provider): neither buy nor terminate
};
std::string_view to_string(WaitReason why);

enum class StopReason : std::uint8_t {
  kDeleted,       // the pod is being deleted, or is gone
  kCompleted,     // its containers ended, and the provider cannot keep a stopped instance
  kImagePull,     // the image cannot be pulled
  kBootFailed,    // the provider says that it will never run
  kStartTimeout,  // it did not run within the start deadline
  kTooDear,       // it costs more than was offered and allowed
  kLost,          // it ran and broke; what is left of it is ended before the pod is Failed
  kEvicted,       // it broke a limit of its own
  kTerminalPod,   // its phase is decided: its deadline has passed, or somebody else set a terminal one
};
std::string_view to_string(StopReason why);

// The stages, in the order of a life.

/// Seen; waits until the providers were asked what they hold of ours.
struct Admitted {};

struct Waiting {
  WaitReason why{};
  base::TimePoint until;
  std::string message;
};

/// Its environment is being resolved and an offer chosen.
struct Choosing {};

struct Creating {
  enum class Step : std::uint8_t {
    kIntent,  // the intent is being written to the pod; nothing is bought
    kCreate,  // the create call is under way
    kRetry,   // the call failed and bought nothing; the same purchase is tried again at `until`
    kLookUp,  // the outcome is unknown: the tag is looked for until `until`, before anything else
  };
  Step step = Step::kIntent;
  base::TimePoint until;
  int failures = 0;
  bool intent_written = false;
  std::optional<InstanceRef> known{};  // stood on the pod when it was joined: gone only if a get says so
};

/// Bought, not yet running.
struct Booting {
  Instance instance;
  base::TimePoint since;
  int resume_failures = 0;
  base::MaybeTime<base::TimePoint> resume_at{};  // when an unfinished create is carried on again
};

struct Running {
  Instance instance;
};

struct Stopping {
  InstanceRef ref;
  StopReason why{};
  base::TimePoint since;
  base::TimePoint retry_at;  // when terminate is asked for again, or for the first time although hooks have not ended
  bool call_under_way = false;
  bool hooks_ran = false;
  int hooks_left = 0;  // preStop hooks that are waited for before terminate
  int failures = 0;
  bool gone = false;                                // it is; what a create under its tag may still buy is waited for
  std::optional<std::chrono::seconds> asked_grace;  // of the last terminate
  std::string message;                              // the provider's words for a failure
};

/// Nothing runs any more. A stopped instance may be kept for its logs until the pod is deleted.
struct Finished {
  enum class Step : std::uint8_t {
    kResting,   // until the pod is deleted
    kClosing,   // the closing entry is being written
    kDeleting,  // the API object is being deleted
    kDeleted,   // asked for; a finalizer may hold the object
  };
  std::optional<InstanceRef> kept;
  bool unseen = false;  // it stood on the pod when that was joined, and no listing has shown it; asked for when it goes
  Step step = Step::kResting;
  bool delete_under_way = false;
  base::TimePoint retry_at;
};

using Stage = std::variant<Admitted, Waiting, Choosing, Creating, Booting, Running, Stopping, Finished>;
/// `admitted`, `waiting`, ...: as in the documents, metrics and /debug/pods.
inline constexpr size_t kStageCount = std::variant_size_v<Stage>;
inline constexpr std::array<std::string_view, kStageCount> kStageNames{"admitted", "waiting", "choosing", "creating",
                                                                       "booting",  "running", "stopping", "finished"};
inline std::string_view stage_name(const Stage& stage) { return kStageNames.at(stage.index()); }

/// How it ended; set once. With it the status is terminal.
struct Outcome {
  PodPhase phase = PodPhase::kFailed;
  std::string reason;
  std::string message;
  std::string disruption;  // reason of DisruptionTarget; empty: none
};

/// How far one container is stopped while its pod goes on: for a probe or a hook that failed, or as a sidecar whose pod
/// is done.
struct ContainerStop {
  enum class Step : std::uint8_t {
    kHook,    // its preStop hook runs, until `until` at the latest
    kAsking,  // the stop call is under way
    kAsked,   // waited for; asked again at `until`
  };
  Step step = Step::kHook;
  base::TimePoint by;     // end of its grace period
  base::TimePoint until;  // see Step
};

/// One container as its provider last claimed it, and what we decided about it.
struct ContainerRecord {
  enum class PostStart : std::uint8_t { kNone, kUnderWay, kDone };

  InstanceContainer claim;
  std::int32_t restarts = 0;
  int crashes_in_a_row = 0;                     // exponent of the back-off; 0 after ten quiet minutes
  base::MaybeTime<base::TimePoint> restart_at;  // in CrashLoopBackOff until then
  bool start_under_way = false;                 // for the first time, or again
  bool start_unsure = false;                    // the last start was not answered: look before the next
  // While it runs:
  bool ready = false;    // what its readiness probe says; true without one
  bool started = false;  // its startup probe has passed; true without one
  PostStart post_start = PostStart::kNone;
  base::Boxed<ContainerStop> stop;
  base::MaybeTime<base::WallTime> handled_exit;  // finished_at of the exit that was already answered
  base::Boxed<ContainerStatusState> last_state;  // status.containerStatuses[].lastState
};

/// What of a provider's abilities matters after a placement.
struct ProviderFacts {
  base::Duration settle_time{};
  bool keeps_stopped = false;
  bool can_restart = false;
  bool address_routable = false;
};

struct PodRecord {
  PodSpecPtr spec;
  ObservedPod observed;
  Stage stage;

  std::optional<Placement> placement;  // the current or last one
  ProviderFacts provider;
  std::optional<base::Money> price_cap;  // of the profile, for the price that is read back
  int attempt = 0;
  bool ran = false;                       // was Running once: never bought again
  bool resume_under_way = false;          // the create that carries an unfinished instance on is not answered
  bool preempted = false;                 // the provider took the instance back
  bool placeholder = false;               // of a DaemonSet that is everywhere: shown as Running, and nothing is bought
  base::TimePoint create_may_land_until;  // a create of this attempt that was not answered may turn up until then
  int missing = 0;                        // complete listings in a row without its instance
  int confirms = 0;                       // how often a listing's word was doubted in this stage
  base::TimePoint confirm_at;             // not doubted again before
  std::vector<ContainerRecord> containers;  // init containers in the order of the spec, then the main ones
  base::Boxed<Outcome> outcome;

  bool deleting = false;      // metadata.deletionTimestamp is set, or the object is gone
  bool api_gone = false;      // the object is gone
  base::TimePoint delete_by;  // when the grace period ends, by our monotonic clock

  int image_failures = 0;
  int start_failures = 0;
  std::vector<base::OfferId> tried;  // offers that failed for this pod; taken again only if nothing else fits

  /// When each stage was entered last; for /debug/pods and the step histograms.
  std::array<base::TimePoint, kStageCount> entered{};

  const PodKey& key() const { return spec->key; }
};

}  // namespace spillway::model
