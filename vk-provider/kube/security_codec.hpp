// securityContext of a container over that of its pod.
//
// Pure, tolerant.
#pragma once

#include <string>
#include <string_view>

#include "vk-provider/base/boxed.hpp"
#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::kube {

/// What holds for the container in the end; nothing if neither says anything. `path` is the container's field.
base::Boxed<model::Security> decode_security(std::string_view pod, std::string_view container, const std::string& path,
                                             Findings& findings);

}  // namespace spillway::kube
