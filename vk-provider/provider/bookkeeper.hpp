// Who is told of every claim that a provider makes about an instance: what there is, and what is gone for good.
//
// Owned by the daemon, outlives the providers that tell it; reactor thread only. Called before the caller of the
// provider has the answer.
#pragma once

#include "vk-provider/model/placement.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {

class Bookkeeper {
 public:
  virtual ~Bookkeeper() = default;
  /// A create call was accepted, or had been before.
  virtual void bought(const ProviderInfo& info, const model::Placement& placement, const model::PodSpec& pod,
                      const model::Instance& instance) = 0;
  /// A call that began at `asked` told a container of it to run, and was not refused: it may.
  virtual void started(const model::InstanceRef& ref, base::TimePoint asked) = 0;
  virtual void seen(const ProviderInfo& info, const model::Instance& instance) = 0;
  virtual void listed(const ProviderInfo& info, const OwnedList& list, base::TimePoint began) = 0;
  /// The answer to a get. Nothing else is proof.
  virtual void not_found(const model::InstanceRef& ref) = 0;
};

}  // namespace spillway::provider
