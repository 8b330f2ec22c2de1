// Pods that run, for tests of what is told about them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test/support/pod_builder.hpp"
#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/core/container_fsm.hpp"

namespace spillway::test {

/// A running pod of these containers, whose instance is called as the pod's uid.
inline model::PodRecord a_running_pod(const std::string& name, const std::string& uid,
                                      const std::vector<std::string>& containers, base::WallTime started) {
  model::PodSpec spec = a_pod(name);
  spec.key.uid = base::PodUid(uid);
  spec.containers = {};
  model::Instance instance;
  instance.ref = model::InstanceRef(base::ProviderName("cloud"), base::InstanceId(uid));
  instance.state = model::InstanceState::kRunning;
  for (const std::string& container : containers) {
    model::ContainerSpec c;
    c.name = container;
    c.image = "registry.example/" + container + ":1";
    spec.containers.edit().push_back(c);
    model::InstanceContainer claim;
    claim.name = container;
    claim.state = model::ContainerState::kRunning;
    claim.started_at = started;
    claim.container_id = "id-" + container;
    instance.containers.push_back(claim);
  }
  model::PodRecord record;
  record.spec = share(std::move(spec));
  record.containers = core::make_container_records(*record.spec, {});
  for (size_t i = 0; i < containers.size(); ++i) record.containers[i].claim = instance.containers[i];
  record.stage = model::Running{std::move(instance)};
  record.ran = true;
  return record;
}

/// A store with pods in it.
class PodShelf {
 public:
  model::PodRecord& add(model::PodRecord record) {
    const base::PodUid uid = record.key().uid;
    control::PodEntry entry;
    entry.record = std::move(record);
    return store.insert(uid, std::move(entry)).record;
  }

  control::PodStore store;
};

}  // namespace spillway::test
