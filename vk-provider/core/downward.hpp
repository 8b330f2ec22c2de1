// The downward API: what a pod may learn about itself, in environments and in files. Pure.
//
// Source of the rules: Kubernetes' pkg/fieldpath and pkg/api/v1/resource.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "vk-provider/core/references.hpp"

namespace spillway::core {

/// True for labels and annotations, whole or one of them: those are read from the live pod.
bool is_metadata_field(std::string_view field);

/// metadata.{name,namespace,uid,labels,annotations}, metadata.labels['k'], metadata.annotations['k'], spec.nodeName,
/// spec.serviceAccountName, status.hostIP, status.hostIPs. A label that is not there is empty; another path is
/// kInvalid.
base::Result<std::string> field_value(const model::PodSpec& pod, const Surroundings& read, std::string_view field);

/// requests.* or limits.* of cpu, memory and ephemeral-storage, in units of the divisor, rounded up. A limit that is
/// not set is the node's allocatable, a request that is not set is 0. `own` is the container that asks.
base::Result<std::string> resource_value(const model::PodSpec& pod, const Surroundings& read,
                                         const model::ResourceRef& ref, std::string_view own);

/// `key="value"` by line, sorted, the value quoted as Go's %q does, without a line end after the last.
std::string format_map(const std::map<std::string, std::string>& map);

}  // namespace spillway::core
