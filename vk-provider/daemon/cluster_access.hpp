// Which API server: --kubeconfig, else the cluster in which we run, else $KUBECONFIG.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "vk-provider/base/error.hpp"
#include "vk-provider/kube/credentials.hpp"

namespace spillway::daemon {

/// `kubeconfig` is the flag's value; empty without it. kInvalid names what was looked for and what to do.
base::Result<kube::ClusterAccess> find_cluster(
    const std::string& kubeconfig, const std::function<std::optional<std::string>(const std::string&)>& environment);

}  // namespace spillway::daemon
