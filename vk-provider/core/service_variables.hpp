// The variables that tell a container of the services of its namespace. Pure.
//
// Source: Kubernetes' pkg/kubelet/envvars. The addresses are the cluster's: they work only for an instance that has a
// route there. They are given because software looks whether they are set, and enableServiceLinks turns them off.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vk-provider/model/cluster_objects.hpp"

namespace spillway::core {

/// X_SERVICE_HOST, X_SERVICE_PORT[_NAME], X_PORT and X_PORT_<port>_<PROTOCOL>[_PROTO|_PORT|_ADDR]. A service without an
/// address of its own has none.
std::map<std::string, std::string> service_variables(const std::vector<model::Service>& services);

}  // namespace spillway::core
