// env and envFrom of a container, and the references that they share with volumes.
//
// Pure, tolerant.
#pragma once

#include <string_view>
#include <vector>

#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::kube {

std::vector<model::ConfigRef> decode_env_from(std::string_view json, Findings& findings);
std::vector<model::EnvVar> decode_env(std::string_view json, Findings& findings);

/// resourceFieldRef of a variable or of a file; a divisor of zero is none, as in the API.
model::ResourceRef decode_resource_ref(std::string_view json);

}  // namespace spillway::kube
