// The life of one pod: what an event changes, and what is to be done about it.
//
// Pure: no clock, no I/O, no failure. The caller owns the record and performs the actions; docs/states.md holds the
// table, which a test compares with this code.
#pragma once

#include <vector>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/core/events.hpp"

namespace spillway::core {

/// What users may set about the way a pod is started (configuration: placement).
struct PodPolicy {
  base::Duration start_deadline{std::chrono::minutes(20)};
  int max_start_attempts = 3;
  /// A boot that takes longer writes the instance's id to the pod at once; a shorter one with the next status.
  base::Duration write_instance_after{std::chrono::seconds(1)};
};

using Actions = std::vector<Action>;

/// True for a pod of a DaemonSet that is everywhere (it tolerates every taint). It is shown as Running and Ready, and
/// nothing is bought: left Pending it would hold up the DaemonSet's roll-out on the whole cluster.
bool is_placeholder(const model::PodSpec& spec, const model::ObservedPod& observed);

/// A record for a pod that was just seen. Nothing is done until Joined.
model::PodRecord admit(model::PodSpecPtr spec, model::ObservedPod observed, base::Now now);

/// Moves the record on. An event that means nothing in this stage (a late answer) changes nothing.
Actions advance(model::PodRecord& record, const Event& event, base::Now now, const PodPolicy& policy);

/// CrashLoopBackOff: 10 s, doubled to 5 min; forgotten after 10 min without a crash.
inline constexpr base::BackoffPolicy kRestartBackoff{std::chrono::seconds(10), std::chrono::minutes(5)};
inline constexpr base::Duration kRestartForgotten = std::chrono::minutes(10);
/// ImagePullBackOff: a kubelet's cap is 5 min, but here each try rents a machine. In step with the owner's brake.
inline constexpr base::BackoffPolicy kImageBackoff{std::chrono::seconds(10), std::chrono::minutes(10)};

}  // namespace spillway::core
