// From what an engine shows to model::Instance: which containers make an instance, and what state that is.
//
// Pure. All that it knows comes from the labels, the inspections, and the progress of work under way in this process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "providers/docker/codec.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/model/instance.hpp"

namespace spillway::providers::docker {

/// What one listing shows of one tag. Points into the listing.
struct InstanceGroup {
  const ContainerEntry* sandbox = nullptr;
  const ContainerEntry* keeper = nullptr;         // of its volumes
  std::vector<const ContainerEntry*> containers;  // as listed
};
using InstanceGroups = std::map<std::string, InstanceGroup>;
InstanceGroups group_by_tag(const std::vector<ContainerEntry>& entries);

/// By container id.
using FactsMap = std::map<std::string, ContainerFacts>;

/// Why a container could not be made: a kubelet's reason, and the text.
struct StartFailure {
  StartFailure() = default;
  std::string reason;
  std::string message;
  bool image_error = false;
};

/// What this process does, or failed to do, for one instance. Lost with the process; a create resumes it.
struct Progress {
  Progress() = default;
  bool active = false;  // images are pulled, containers made
  bool ending = false;  // terminate was accepted
  std::string activity;
  std::map<std::string, StartFailure> failures;  // by name of container
  std::string broken_limit;                      // on disk space; why its pod has to go
  std::map<std::string, base::TimePoint> seen;   // containers that existed once, and since when that is known
};

/// True once nothing runs and nothing will by the restart policy: all main containers ended as it wants, or an init
/// container failed for good. Such an instance is kept for its logs, and holds neither GPUs nor a place. A container
/// without facts counts as not ended; what became of a sidecar does not matter, but that it runs does.
bool has_ended_for_good(const InstanceGroup& group, const FactsMap& facts);

struct ExpectedContainer {
  ExpectedContainer() = default;
  std::string name;
  model::ContainerRole part = model::ContainerRole::kMain;
};
/// The containers that belong to it, from the sandbox's labels; those that are there if the sandbox is gone.
std::vector<ExpectedContainer> expected_containers(const InstanceGroup& group);

/// In what order containers are stopped: each batch at once, the next when it has ended. Main containers and running
/// init containers first, then the sidecars one by one, the last that was started first.
std::vector<std::vector<const ContainerEntry*>> stop_order(const InstanceGroup& group);

struct ViewContext {
  ViewContext() = default;
  base::ProviderName provider;
  std::string host;
  std::string container_scheme;
  base::TimePoint listed_at{};  // when the listing was asked for: what came into being later is not in it, and not gone
};

model::Instance to_instance(const ViewContext& context, const std::string& tag, const InstanceGroup& group,
                            const FactsMap& facts, const Progress* progress);

/// `<host>/<tag>`, and back.
base::InstanceId to_instance_id(const std::string& host, const std::string& tag);
struct ParsedInstanceId {
  ParsedInstanceId() = default;
  std::string host;
  std::string tag;
};
std::optional<ParsedInstanceId> from_instance_id(const base::InstanceId& id);

}  // namespace spillway::providers::docker
