// The environment and the arguments of a container, as a kubelet resolves them. Pure.
//
// envFrom in the order of the list (later wins), then env in the order of the list (wins over envFrom), then the
// variables of services for names that are not set; $(VAR) refers to what stands before it or to a service's variable,
// $$ is a literal $, an unknown $(VAR) stays as it is. Source: Kubernetes' third_party/forked/golang/expansion and
// pkg/kubelet/kubelet_pods.go.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/core/references.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::core {

/// More than any Linux would start a process with; what is doubled by references again and again ends here.
inline constexpr size_t kEnvironmentLimit = 8UL << 20;

/// Expands $(VAR) by `lookup`. Stops soon after the result has grown beyond `limit`.
std::string expand(std::string_view text, const std::function<std::optional<std::string>(std::string_view)>& lookup,
                   size_t limit = kEnvironmentLimit);

/// What container_specs have in common while one pod is resolved.
struct EnvironmentInput {
  const model::PodSpec& pod;
  const Surroundings& read;
  const std::map<std::string, std::string>& service_variables;
};

/// One container: its words, environment, mounts and settings. Its role and its start are the pod's to say. kNotFound
/// names the first mandatory object or key that is missing, in the words of a kubelet.
base::Result<model::ResolvedContainer> resolve_container(const EnvironmentInput& in, const model::ContainerSpec& spec,
                                                         std::vector<Note>& notes);

}  // namespace spillway::core
