// From a record to the status that its pod should show. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

/// The status that the API object should have. Empty if there is nothing to say: too early, on its way out, or already
/// terminal (a terminal phase is never left).
std::optional<model::PodStatus> wanted_status(const model::PodRecord& record, const base::SharedText& host_ip,
                                              base::Now now);

/// The status that goes with an intent: what wanted_status says once it is written.
model::PodStatus starting_status(const model::PodRecord& record, const base::SharedText& host_ip, base::Now now);

/// What is known of one container now, whatever the pod shows. Empty if the pod has none of this name.
std::optional<model::ContainerStatus> find_container_status(const model::PodRecord& record, std::string_view name,
                                                            base::Now now);

/// What should stand in state.spillway.dev/placement; empty before the first placement.
std::optional<model::StateRecord> wanted_state(const model::PodRecord& record);

/// What should stand in state.spillway.dev/addresses: {"8080":"203.0.113.7:31744"}, or empty.
std::string wanted_addresses(const model::PodRecord& record);

}  // namespace spillway::core
