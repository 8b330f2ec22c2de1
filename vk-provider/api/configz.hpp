// The answer of /configz: what of a kubelet's configuration holds for a virtual node. Pure.
#pragma once

#include <string>

#include "vk-provider/api/kubelet_config.hpp"

namespace spillway::api {

/// JSON: {"kubeletconfig": {...}} in the words of kubelet.config.k8s.io/v1beta1. `max_pods` is a quantity.
std::string to_configz(const KubeletApiConfig& config, std::uint16_t port, const std::string& max_pods);

}  // namespace spillway::api
