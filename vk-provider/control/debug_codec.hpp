// The records of pods as JSON, for /debug/pods and /debug/placement. Holds no environment, argument or secret. Pure.
#pragma once

#include <string>

#include "vk-provider/control/placer.hpp"
#include "vk-provider/control/pod_store.hpp"

namespace spillway::control {

std::string encode_debug_pods(const PodStore& pods, base::Now now);
/// One pod: its stage, what was decided for it lately ("decided", of the last purchases), and what would be decided now
/// ("now", with every offer accounted for).
std::string encode_debug_placement(const PodEntry& entry, Placer& placer, base::Now now);

}  // namespace spillway::control
