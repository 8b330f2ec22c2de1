// status of a Pod <-> model::PodStatus; the part of kube/pod_codec that is about status.
//
// Pure functions. Decoding brings the status into the form in which core computes it: only our conditions, containers
// sorted by name (init containers in their order), times in whole seconds.
#pragma once

#include <string>
#include <string_view>

#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::kube {

/// The names of a list of containers or of their statuses, with commas between.
std::string decode_names(std::string_view list_json);

/// False if the text is broken; `out` is then of no use.
bool decode_pod_status(std::string_view status_json, model::PodStatus& out);

/// True if status.conditions holds the type with status True, whoever owns it.
bool has_true_condition(std::string_view status_json, std::string_view type);

/// Writes the object of a strategic merge patch that turns `previous` into `wanted`. What is the same in both is left
/// out, so that a phase or condition that somebody else has changed meanwhile is not written back.
void write_status_patch(JsonWriter& out, const model::PodStatus& wanted, const model::PodStatus& previous);

}  // namespace spillway::kube
