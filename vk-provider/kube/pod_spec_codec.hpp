// spec of a Pod -> model::PodSpec; the part of kube/pod_codec that is about the spec.
//
// Pure. Reads what Spillway honours; what else the pod sets comes from kube/pod_fields into PodSpec::uses.
#pragma once

#include <string_view>

#include "vk-provider/model/pod_spec.hpp"

namespace spillway::kube {

/// Fills everything of `out` that comes from .spec; the annotations in it are read already. False if the text is
/// broken; `out` is then of no use.
bool decode_pod_spec(std::string_view spec_json, model::PodSpec& out);

}  // namespace spillway::kube
