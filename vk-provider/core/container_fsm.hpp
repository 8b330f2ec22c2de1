// The containers of a running instance: what a provider's new claim means, and when to start one again.
//
// Pure; part of pod_fsm, in a file of its own because restarts are a subject of their own.
#pragma once

#include <optional>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

/// One record per container of the spec, init containers first, with restart counts and last states as the API object
/// has them (after a restart of the daemon, the object is the memory).
std::vector<model::ContainerRecord> make_container_records(const model::PodSpec& spec,
                                                           const model::PodStatus& observed);

/// Takes the claims in, and sets restart_at where the policy wants the container back.
void apply_claims(model::PodRecord& record, const model::Instance& instance, base::Now now);

/// A start of this container was accepted: it runs, until a claim says otherwise.
void note_started(model::PodRecord& record, size_t index, base::Now now);

/// Of a pod for which nothing is bought: its containers are shown as if they ran, since when stands on the pod.
void claim_all_well(model::PodRecord& record, base::Now now);

/// True if a listing says of the instance (with the placement's tag) what the record holds already. `known` is the
/// record's own, whose containers' claims stand in the record.
bool tells_nothing_new(const model::PodRecord& record, const model::Instance& known, const model::Instance& listed);

/// Succeeded only if every main container's exit code is known to be 0.
model::Outcome outcome_of_exits(const model::PodRecord& record);

/// The earliest restart that is waited for.
std::optional<base::TimePoint> next_restart(const model::PodRecord& record);

/// The most that one termination message may take, in bytes; all of a pod's share 12 KiB (as with a kubelet).
inline constexpr size_t kTerminationMessage = 4096;
inline constexpr size_t kTerminationMessages = size_t{12} * 1024;
/// The beginning of a text, cut off between two characters if it is longer than `most` bytes.
std::string bounded_text(std::string text, size_t most);

/// The state that a claim stands for in status.containerStatuses[].state.
model::ContainerStatusState to_status_state(const model::InstanceContainer& claim);

}  // namespace spillway::core
