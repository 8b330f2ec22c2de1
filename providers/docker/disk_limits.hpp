// Limits that pods have on disk space, and which of them are broken.
//
// Pure. Limits stand in labels of volumes and containers, in bytes; what is used, the engine measures. The rules and
// the words are a kubelet's (its eviction manager's).
#pragma once

#include <map>
#include <string>

#include "providers/docker/codec.hpp"

namespace spillway::providers::docker {

/// True if one of the labels is a limit.
bool has_disk_limit(const Labels& labels);

/// By tag: why the pod of that instance has to go. The first of: an emptyDir above its sizeLimit, all of the pod above
/// the sum of its containers' limits on ephemeral storage, one container above its own.
std::map<std::string, std::string> broken_limits(const DiskUsage& usage);

}  // namespace spillway::providers::docker
