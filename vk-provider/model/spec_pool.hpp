// What the specs of many pods have in common, held once: names, images, and the containers of one owner's pods.
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
  base::TextPool texts_;
  /// The last one by the owner's UID; bare pods have one in common.
  std::unordered_map<std::string, base::SharedList<ContainerSpec>> containers_;
  size_t clean_at_ = 64;
};

}  // namespace spillway::model
