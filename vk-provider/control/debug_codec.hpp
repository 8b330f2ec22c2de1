// The records of all pods as JSON, for /debug/pods. Holds no environment, argument or secret. Pure.
#pragma once

#include <string>

#include "vk-provider/control/pod_store.hpp"

namespace spillway::control {

std::string encode_debug_pods(const PodStore& pods, base::Now now);

}  // namespace spillway::control
