// A pod as it is to be started, from its spec and from what was read of what it refers to. Pure.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "vk-provider/core/references.hpp"
#include "vk-provider/model/pod_record.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::core {

/// Why it cannot be started now: the waiting reason and the message of its containers.
struct Hindrance {
  Hindrance() = default;
  Hindrance(model::WaitReason w, std::string m) : why(w), message(std::move(m)) {}
  model::WaitReason why = model::WaitReason::kConfig;
  std::string message;
};

/// All but pull_auth. Notes are events for the pod's author, whether it can be started or not.
std::expected<model::ResolvedPod, Hindrance> resolve_pod(model::PodSpecPtr pod, const Surroundings& read,
                                                         std::vector<int> public_ports, std::vector<Note>& notes);

/// What `hostname` prints inside: spec.hostname or the pod's name, cut to what Linux takes; with setHostnameAsFQDN and
/// a subdomain the whole name under cluster.local.
base::Result<std::string> hostname_of(const model::PodSpec& pod);

}  // namespace spillway::core
