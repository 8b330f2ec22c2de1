// What a pod needs of a provider and of an offer, computed once; and the one message that refuses it.
//
// Pure. A field of the pod that nothing here can honour stands in PodSpec::uses with its path. A feature that one
// provider lacks sends the pod to one that has it; only when no configured provider can honour the pod is it refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vk-provider/model/capability.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::core {

struct Requirements {
  Requirements() = default;
  model::CapabilitySet capabilities;
  int gpu_count = 0;
  std::string gpu_resource;
  std::int64_t cpu_milli = 0;  // requests (limits where there is no request), summed
  std::int64_t memory = 0;
  std::vector<int> public_ports;
  /// Faults of the pod itself, which no provider can mend: `path: what is wrong; remedy`.
  std::vector<std::string> faults;
};

/// `profile_ports` are published for every pod of the node.
Requirements compute_requirements(const model::PodSpec& pod, const std::vector<int>& profile_ports);

struct ProviderAbility {
  ProviderAbility() = default;
  std::string name;
  model::CapabilitySet capabilities;
};

/// Why no provider can honour the pod, naming every field by path and per provider; empty if one can.
std::optional<std::string> refusal(const model::PodSpec& pod, const Requirements& requirements,
                                   const std::vector<ProviderAbility>& providers);

}  // namespace spillway::core
