// What the specs of many pods have in common, held once: names, images, and the containers and volumes of one
// owner's pods.
//
// A value, one thread. Made for thousands of replicas of one template, whose environments may be large.
#pragma once

#include <unordered_map>

#include "vk-provider/base/text_pool.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::model {

class SpecPool {
 public:
  /// Makes a new spec share what is equal in specs that came before.
  void share(PodSpec& spec);

 private:
  struct Lists {
    base::SharedList<ContainerSpec> containers;
    base::SharedList<ContainerSpec> init_containers;
    base::SharedList<VolumeSpec> volumes;
  };

  /// Makes `list` the last one if they are equal, otherwise its texts are shared and it becomes the last one.
  void share_containers(base::SharedList<ContainerSpec>& list, base::SharedList<ContainerSpec>& last);
  static void share_volumes(base::SharedList<VolumeSpec>& list, base::SharedList<VolumeSpec>& last);
  void forget_unused();

  base::TextPool texts_;
  /// The last ones by the owner's UID; bare pods have one in common.
  std::unordered_map<std::string, Lists> lists_;
  size_t clean_at_ = 64;
};

}  // namespace spillway::model
