// A read-only look at the pods, for api/: handlers read, and never write.
//
// Implemented by the pod store; reactor thread only. What it hands out holds until the caller waits for something.
#pragma once

#include <functional>
#include <string_view>

#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

class PodView {
 public:
  virtual ~PodView() = default;

  /// The pod that the API server has under this name, if it is bound to this node; null without one. A former pod of
  /// the same name, whose instance is still being ended, is not it.
  virtual const model::PodRecord* find_pod(std::string_view node, std::string_view ns, std::string_view name) const = 0;

  using Visit = std::function<void(const model::PodRecord&)>;
  virtual void each_pod(std::string_view node, const Visit& visit) const = 0;
};

}  // namespace spillway::core
