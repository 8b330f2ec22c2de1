// The environment and the arguments of a container, as a kubelet resolves them. Pure.
//
// envFrom in the order of the list (later wins), then env in the order of the list (wins over envFrom); $(VAR) refers
// to what stands before it, $$ is a literal $, an unknown $(VAR) stays as it is. Source: Kubernetes'
// third_party/forked/ golang/expansion and pkg/kubelet/kubelet_pods.go.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::core {

/// Expands $(VAR) by `lookup`.
std::string expand(std::string_view text, const std::function<std::optional<std::string>(std::string_view)>& lookup);

/// The ConfigMaps and Secrets that a pod's environment needs, each once.
struct ConfigSource {
  ConfigSource() = default;
  model::ConfigRef::Kind kind{};
  std::string name;
  auto operator<=>(const ConfigSource&) const = default;
};
std::vector<ConfigSource> config_sources(const model::PodSpec& pod);

/// What was read; absent: there is no such object.
using ConfigData = std::map<ConfigSource, std::optional<std::map<std::string, std::string>>>;

/// The containers as they are to be started. kNotFound names the first mandatory object or key that is missing, in the
/// words of a kubelet.
base::Result<std::vector<model::ResolvedContainer>> resolve_containers(const model::PodSpec& pod,
                                                                       const ConfigData& data);

}  // namespace spillway::core
