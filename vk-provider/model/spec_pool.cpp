#include "vk-provider/model/spec_pool.hpp"

#include <algorithm>

namespace spillway::model {

void SpecPool::share_containers(base::SharedList<ContainerSpec>& list, base::SharedList<ContainerSpec>& last) {
  if (list.empty()) return;
  if (list == last) {
    list = last;
    return;
  }
  for (ContainerSpec& container : list.edit()) {
    for (base::SharedText* text : {&container.name, &container.image, &container.working_dir}) texts_.share(*text);
  }
  last = list;
}

void SpecPool::share_volumes(base::SharedList<VolumeSpec>& list, base::SharedList<VolumeSpec>& last) {
  if (list.empty()) return;
  if (list == last) {
    list = last;
  } else {
    last = list;
  }
}

void SpecPool::forget_unused() {
  if (lists_.size() < clean_at_) return;
  std::erase_if(lists_, [](const auto& item) {
    const Lists& lists = item.second;
    return lists.containers.is_sole_owner() && lists.init_containers.is_sole_owner() && lists.volumes.is_sole_owner();
  });
  clean_at_ = std::max<size_t>(64, lists_.size() * 2);
}

void SpecPool::share(PodSpec& spec) {
  for (base::SharedText* text : {&spec.key.ns, &spec.owner.kind, &spec.owner.name, &spec.owner.uid, &spec.node_name,
                                 &spec.service_account, &spec.gpu.resource}) {
    texts_.share(*text);
  }
  const auto [it, fresh] = lists_.try_emplace(spec.owner.uid.str());
  Lists& last = it->second;
  share_containers(spec.containers, last.containers);
  if (spec.extras) {
    share_containers(spec.extras->init_containers, last.init_containers);
    share_volumes(spec.extras->volumes, last.volumes);
  }
  if (fresh) forget_unused();
}

}  // namespace spillway::model
