// The answer of /runningpods/. (/pods is the API server's own list, passed through: kubelet_server.)
//
// Pure.
#pragma once

#include <string>

#include "vk-provider/core/pod_view.hpp"

namespace spillway::api {

/// A v1 PodList of the pods of which something runs and that are not being ended: names, uid and the running containers
/// with their images, as a kubelet lists what its runtime holds.
std::string to_running_pods(const core::PodView& pods, std::string_view node);

}  // namespace spillway::api
