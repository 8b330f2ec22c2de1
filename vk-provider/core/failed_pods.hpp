// Which Failed pods nobody needs any more.
//
// Pure. A ReplicaSet replaces a pod that failed, and leaves it where it is; Kubernetes removes such pods above some
// thousand only (terminated-pod-gc-threshold, 12,500 in all).
#pragma once

#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/shared_text.hpp"

namespace spillway::core {

struct FailedPod {
  base::PodUid uid;
  base::SharedText owner;  // UID of its controller
  base::WallTime created;  // the pod
  base::TimePoint since;   // when it had failed, and nothing of it was left; as far as this process knows
};

/// Of each owner the newest so many stay, for people to look at.
inline constexpr size_t kFailedPodsKept = 3;
/// The others stay for so long.
inline constexpr base::Duration kFailedPodsShown = std::chrono::minutes(10);

/// Those that may go now.
std::vector<base::PodUid> surplus_failed_pods(std::vector<FailedPod> pods, base::TimePoint now);

}  // namespace spillway::core
