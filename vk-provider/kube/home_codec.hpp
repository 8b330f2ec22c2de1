// Node and Pod JSON -> the few values that the capacity gate counts with.
//
// Pure; reactor thread. Builds no tree and keeps no text: in a large cluster most events are of pods that want no GPU,
// and those cost one search. Tolerant of absent, null and mistyped optional fields; an object whose text is broken or
// that has no identity is kInvalid.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::kube {

base::Result<model::HomeNode> decode_home_node(std::string_view json);

/// With `gpus` of none, only `gpus` and `uid` are meant.
base::Result<model::HomePod> decode_home_pod(std::string_view json);
/// All of it, also of a pod that wants no GPU.
base::Result<model::HomePod> decode_any_pod(std::string_view json);
/// Labels, and where it may stand, of the template of a workload.
model::HomePod decode_pod_template(std::string_view json);

std::map<std::string, std::string> decode_labels(std::string_view json);
/// matchExpressions of a selector.
model::NodeTerm decode_requirements(std::string_view json);

}  // namespace spillway::kube
