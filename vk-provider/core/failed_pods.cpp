#include "vk-provider/core/failed_pods.hpp"

#include <algorithm>
#include <utility>

namespace spillway::core {

std::vector<base::PodUid> surplus_failed_pods(std::vector<FailedPod> pods, base::TimePoint now) {
  // Each owner's together, the newest first; of the same moment by name, so that a second look agrees with the first.
  std::ranges::sort(pods, [](const FailedPod& a, const FailedPod& b) {
    if (a.owner != b.owner) return a.owner < b.owner;
    return a.created != b.created ? a.created > b.created : a.uid < b.uid;
  });
  std::vector<base::PodUid> out;
  size_t kept = 0;
  for (size_t i = 0; i < pods.size(); ++i) {
    kept = i > 0 && pods[i].owner == pods[i - 1].owner ? kept + 1 : 1;
    if (kept > kFailedPodsKept && now - pods[i].since >= kFailedPodsShown) out.push_back(std::move(pods[i].uid));
  }
  return out;
}

}  // namespace spillway::core
