// What a pod needs of one resource at its busiest moment.
//
// Pure. The rule is the scheduler's (k8s.io/component-helpers/resource, PodRequests): init containers run one after the
// other beside the sidecars that stand before them; then the containers run beside all sidecars.
#pragma once

#include <algorithm>
#include <cstdint>

#include "vk-provider/base/shared_list.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::model {

inline bool is_sidecar(const ContainerSpec& init) { return init.restart_policy == RestartPolicy::kAlways; }

/// `amount(container)` is what one of them needs, not negative. A sum that does not fit is the largest number.
template <class F>
std::int64_t at_once(const base::SharedList<ContainerSpec>& init, const base::SharedList<ContainerSpec>& containers,
                     F amount) {
  const auto plus = [](std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
  };
  std::int64_t sidecars = 0;
  std::int64_t peak = 0;
  for (const ContainerSpec& container : init) {
    const std::int64_t together = plus(sidecars, amount(container));
    if (is_sidecar(container)) sidecars = together;
    peak = std::max(peak, together);
  }
  std::int64_t running = sidecars;
  for (const ContainerSpec& container : containers) running = plus(running, amount(container));
  return std::max(peak, running);
}

}  // namespace spillway::model
