// The part of a Pod's status that Spillway writes, and what else it reads of a live Pod.
//
// Values. The same type is decoded from the API object and computed from a record, so that "is a write needed?" is one
// comparison. Times have second precision, as in the API.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/boxed.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/maybe_time.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/model/placement.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::model {

/// Why an ephemeral container is not started.
inline constexpr std::string_view kNoDebugContainers =
    "ephemeral containers are not supported: a debug container cannot be added to a rented instance";

enum class PodPhase : std::uint8_t { kUnset, kPending, kRunning, kSucceeded, kFailed, kUnknown };
std::string_view to_string(PodPhase phase);
inline bool is_terminal(PodPhase p) { return p == PodPhase::kSucceeded || p == PodPhase::kFailed; }

struct ContainerStatusState {
  ContainerStatusState() = default;
  enum class Kind : std::uint8_t { kNone, kWaiting, kRunning, kTerminated };
  Kind kind = Kind::kNone;
  std::int32_t exit_code = 0;                 // terminated
  base::SharedText reason;                    // waiting, terminated
  base::SharedText message;                   // waiting, terminated
  std::optional<base::WallTime> started_at;   // running, terminated
  std::optional<base::WallTime> finished_at;  // terminated
  base::SharedText container_id;              // terminated
  bool operator==(const ContainerStatusState&) const = default;
};

struct ContainerStatus {
  ContainerStatus() = default;
  base::SharedText name;
  base::SharedText image;
  base::SharedText image_id;
  base::SharedText container_id;  // with its scheme: docker://<id>
  bool ready = false;
  bool started = false;
  std::int32_t restart_count = 0;
  ContainerStatusState state;
  ContainerStatusState last_state;
  bool operator==(const ContainerStatus&) const = default;
};

/// The conditions that Spillway owns, in the order in which they are written.
enum class ConditionType : std::uint8_t {
  kPodReadyToStartContainers,
  kInitialized,
  kReady,
  kContainersReady,
  kPodScheduled,
  kDisruptionTarget,  // only ever added, with the terminal transition
  kCount
};
std::string_view to_string(ConditionType type);

struct PodCondition {
  PodCondition() = default;
  enum class Status : std::uint8_t { kAbsent, kTrue, kFalse, kUnknown };
  Status status = Status::kAbsent;
  base::SharedText reason;
  base::SharedText message;
  base::MaybeTime<base::WallTime> last_transition;
  bool operator==(const PodCondition&) const = default;
};

struct PodStatus {
  PodStatus() = default;
  PodPhase phase = PodPhase::kUnset;
  base::SharedText reason;
  base::SharedText message;
  base::SharedText host_ip;
  base::SharedText pod_ip;
  base::MaybeTime<base::WallTime> start_time;
  std::array<PodCondition, static_cast<size_t>(ConditionType::kCount)> conditions;
  std::vector<ContainerStatus> containers;       // sorted by name
  std::vector<ContainerStatus> init_containers;  // in the order of the spec
  /// Names of ephemeral containers (`kubectl debug`) that were told as not started, with commas between.
  base::SharedText debug_containers;
  /// Of what stands on the pod, once both lists were dropped from the record; 0 before.
  std::uint64_t containers_fingerprint = 0;

  PodCondition& condition(ConditionType t) { return conditions.at(static_cast<size_t>(t)); }
  const PodCondition& condition(ConditionType t) const { return conditions.at(static_cast<size_t>(t)); }
  bool operator==(const PodStatus&) const = default;
};

/// Equal lists have equal fingerprints; never 0.
std::uint64_t fingerprint(const std::vector<ContainerStatus>& containers,
                          const std::vector<ContainerStatus>& init_containers = {});

/// True if the pod shows `wanted` already. `shown` may have its containers as a fingerprint only.
bool shows(const PodStatus& shown, const PodStatus& wanted);

/// What the daemon wrote on the pod about its purchase (annotation state.spillway.dev/placement).
struct StateRecord {
  StateRecord() = default;
  Placement placement;
  base::InstanceId instance;  // empty: intent only
  bool ran = false;           // was Running once; then it is never bought again
  bool operator==(const StateRecord&) const = default;
};

/// Equal records have equal fingerprints; never 0.
std::uint64_t fingerprint(const StateRecord& record);

struct StateAnnotation {
  StateAnnotation() = default;
  enum class Kind : std::uint8_t {
    kAbsent,
    kForeign,     // written for another UID: a copied manifest; ignored
    kUnreadable,  // an unknown version or rubbish under our UID: neither buy nor terminate, and say so
    kRecord,
  };
  Kind kind = Kind::kAbsent;
  base::Boxed<StateRecord> record;  // for kRecord; core drops it once a pod is under way and keeps its fingerprint
  base::SharedText problem;         // for kUnreadable
  bool operator==(const StateAnnotation&) const = default;
};

/// True if resourceVersion `a` is older than `b` of the same object. Kubernetes makes them comparable numbers
/// (KEP-5504); false if either is no number.
bool is_older_version(std::string_view a, std::string_view b);

/// The live Pod as last seen.
struct ObservedPod {
  ObservedPod() = default;
  std::string resource_version;
  base::MaybeTime<base::WallTime> deletion_timestamp;
  std::chrono::seconds deletion_grace{0};
  StateAnnotation state;
  std::uint64_t state_fingerprint = 0;  // of what stands on the pod, once state.record was dropped
  base::SharedText addresses;           // state.spillway.dev/addresses as it stands
  bool withheld_note = false;           // state.spillway.dev/withheld stands on the pod
  bool deletion_cost = false;           // controller.kubernetes.io/pod-deletion-cost stands on the pod, whoever set it
  bool readiness_gates_true = true;     // every condition of spec.readinessGates is True
  /// spec.activeDeadlineSeconds: of a pod that lives it can be set, and lowered.
  std::optional<std::chrono::seconds> active_deadline;
  base::SharedText debug_containers;  // spec.ephemeralContainers[].name, with commas between; of a pod that lives
  PodStatus status;
};

}  // namespace spillway::model
