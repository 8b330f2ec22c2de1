// The three requests by which the drain changes a pod. Pure; reactor thread.
#pragma once

#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::kube {

/// 429: a budget forbids it now. 500: more than one budget is about the pod.
KubeRequest eviction_request(const model::HomePod& pod);
/// 409 if the pod has changed since it was seen; 422 if it is another one.
KubeRequest detach_request(const model::HomePod& pod, const model::DetachNote& note);
KubeRequest return_request(const model::HomePod& pod);

}  // namespace spillway::kube
