#include "vk-provider/model/spec_pool.hpp"

#include <algorithm>

namespace spillway::model {

void SpecPool::share(PodSpec& spec) {
  for (base::SharedText* text : {&spec.key.ns, &spec.owner.kind, &spec.owner.name, &spec.owner.uid, &spec.node_name,
                                 &spec.service_account, &spec.gpu.resource}) {
    texts_.share(*text);
  }
  const auto [last, fresh] = containers_.try_emplace(spec.owner.uid.str(), spec.containers);
  if (!fresh && last->second == spec.containers) {
    spec.containers = last->second;
    return;
  }
  for (ContainerSpec& container : spec.containers.edit()) {
    for (base::SharedText* text : {&container.name, &container.image, &container.working_dir}) texts_.share(*text);
  }
  last->second = spec.containers;
  if (containers_.size() < clean_at_) return;
  std::erase_if(containers_, [](const auto& item) { return item.second.is_sole_owner(); });
  clean_at_ = std::max<size_t>(64, containers_.size() * 2);
}

}  // namespace spillway::model
