// Service and EndpointSlice JSON <-> model.
//
// Pure; reactor thread. Tolerant of absent, null and mistyped optional fields; an object without identity, or whose
// text is broken, is kInvalid. Who decides is core/endpoint_slices.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/endpoint_slice.hpp"

namespace spillway::kube {

/// Empty optional: a Service that selects no pods, or has no ports; a person or another controller answers for it.
base::Result<std::optional<model::EndpointService>> decode_endpoint_service(std::string_view json);

base::Result<model::EndpointSlice> decode_endpoint_slice(std::string_view json);

/// Of a Pod: `,app=web,tier=front,`, a comma before and after each; empty without any.
std::string decode_label_text(std::string_view json);

/// For POST.
std::string encode_endpoint_slice(const model::EndpointSlice& slice);
/// A merge patch of all that is ours, valid only at the version of the slice that stands.
std::string encode_endpoint_slice_patch(const model::EndpointSlice& slice);
/// DeleteOptions that name the slice as it was read.
std::string encode_endpoint_slice_removal(const model::EndpointSlice& slice);

}  // namespace spillway::kube
