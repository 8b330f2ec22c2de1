// The containers of a running instance: what a provider's new claim means, and when to start one again.
//
// Pure; part of pod_fsm, in a file of its own because restarts are a subject of their own.
#pragma once

#include <optional>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

/// One record per container of the spec, with restart counts and last states as the API object has them (after a
/// restart of the daemon, the object is the memory).
std::vector<model::ContainerRecord> make_container_records(const model::PodSpec& spec,
                                                           const model::PodStatus& observed);

/// Takes the claims in, and sets restart_at where the policy wants the container back.
void apply_claims(model::PodRecord& record, const model::Instance& instance, base::Now now);

/// True if a listing says of the instance (with the placement's tag) what the record holds already. `known` is the
/// record's own, whose containers' claims stand in the record.
bool tells_nothing_new(const model::PodRecord& record, const model::Instance& known, const model::Instance& listed);

/// True if every container has ended and none will be started again.
bool all_ended(const model::PodRecord& record);

/// Succeeded only if every exit code is known to be 0.
model::Outcome outcome_of_exits(const model::PodRecord& record);

/// The earliest restart that is waited for.
std::optional<base::TimePoint> next_restart(const model::PodRecord& record);

/// The state that a claim stands for in status.containerStatuses[].state.
model::ContainerStatusState to_status_state(const model::InstanceContainer& claim);

}  // namespace spillway::core
