// What a pod needs of a provider and of an offer: computed once, a filter on offers; core/refusal tells what nobody
// has.
//
// Pure. A field of the pod that nothing here can honour stands in PodSpec::uses with its path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vk-provider/core/fault.hpp"
#include "vk-provider/model/capability.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/model/wishes.hpp"

namespace spillway::core {

struct Requirements {
  Requirements() = default;
  model::CapabilitySet capabilities;
  int gpu_count = 0;
  std::string gpu_resource;
  /// At one time, by the scheduler's rule: requests, and limits where there are none; the pod's own win.
  std::int64_t cpu_milli = 0;
  std::int64_t memory = 0;  // bytes
  std::vector<int> public_ports;
  model::Wishes wishes;
  /// Data of Secrets goes to the machine, or a token, or what opens a registry.
  bool carries_secrets = false;
  std::vector<Fault> faults;
  std::vector<Fault> bad_images;  // names that no registry client can parse
  /// Capabilities that follow from fields which every pod may have (command, restartPolicy), with those fields.
  std::vector<model::FieldUse> implied;
};

/// `profile_ports` are published for every pod of the node that has them.
Requirements compute_requirements(const model::PodSpec& pod, const std::vector<int>& profile_ports);

}  // namespace spillway::core
