// In which order the containers of a pod start, and when the pod is done: init containers one after the other, sidecars
// (init containers with restartPolicy Always) among them, then all main containers.
//
// Pure. Everything is derived from the claims in the record and from what was decided about them, so that a new daemon
// finds its way from what the provider says. Source of the rules: the kubelet's computePodActions and getPhase.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/model/pod_record.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::core {

const base::SharedList<model::ContainerSpec>& init_containers(const model::PodSpec& spec);

/// Of the container with this index in PodRecord::containers.
const model::ContainerSpec& spec_of(const model::PodSpec& spec, size_t index);
model::ContainerRole role_of(const model::PodSpec& spec, size_t index);

/// What was bought for the pod and is not being ended; null in other stages.
const model::Instance* instance_of(const model::PodRecord& record);

/// Null if there is no container of that name.
const model::ContainerSpec* find_spec(const model::PodSpec& spec, const std::string& name);

/// What a provider starts by itself on create (ResolvedContainer::start_at_once); the rest is ours to start.
bool starts_itself(const model::PodSpec& spec, size_t index);

inline bool runs(const model::ContainerRecord& c) { return c.claim.state == model::ContainerState::kRunning; }
/// True if it ever ran in this instance.
bool ever_ran(const model::ContainerRecord& c);
/// True if it has ended and will not be started again.
bool ended_for_good(const model::ContainerRecord& c);

/// status.containerStatuses[].started: it runs, its postStart hook is done, and its startup probe has passed.
bool is_started(const model::ContainerSpec& spec, const model::ContainerRecord& c);
/// status.containerStatuses[].ready of a container that is meant to run.
bool is_ready(const model::ContainerSpec& spec, const model::ContainerRecord& c);

/// True if what comes after this init container or sidecar need not wait for it.
bool lets_pass(const model::PodRecord& record, size_t index);
/// True once every init container is done and every sidecar has started. It stays so.
bool is_initialized(const model::PodRecord& record);
/// True if some main container has never been started: the pod is still Pending.
bool awaits_first_start(const model::PodRecord& record);

/// Containers that were only made and whose turn it is.
std::vector<size_t> due_for_first_start(const model::PodRecord& record);

/// True while a start of this container is under way, for the first time or again.
bool is_being_started(const model::PodRecord& record, const std::string& container);

/// True if nothing but sidecars is left to run: the main containers have ended for good, or an init container failed.
bool work_is_over(const model::PodRecord& record);

/// True while something is to change by itself soon: an init container runs, or a call about a container is under way.
bool is_moving(const model::PodRecord& record);

}  // namespace spillway::core
