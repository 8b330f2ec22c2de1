// spec.volumes -> model::VolumeSpec.
//
// Pure, tolerant. Volumes of kinds that cannot be had on a rented machine are left out: kube/pod_fields refuses them.
#pragma once

#include <string_view>
#include <vector>

#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/volume.hpp"

namespace spillway::kube {

/// `withheld` is the name of a volume to leave out, too; empty: none.
std::vector<model::VolumeSpec> decode_volumes(std::string_view json, std::string_view withheld, Findings& findings);

}  // namespace spillway::kube
