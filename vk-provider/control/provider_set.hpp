// The configured providers, decorated, by name.
//
// Made and owned by the daemon; outlives the controllers. Reactor thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vk-provider/core/refusal.hpp"
#include "vk-provider/model/pod_record.hpp"
#include "vk-provider/provider/throttled_provider.hpp"

namespace spillway::control {

class ProviderSet {
 public:
  void add(std::unique_ptr<provider::ThrottledProvider> provider);

  provider::ThrottledProvider* find(const base::ProviderName& name) const;
  const std::vector<std::unique_ptr<provider::ThrottledProvider>>& all() const { return providers_; }
  const std::vector<core::ProviderAbility>& abilities() const { return abilities_; }

  /// What the state machine has to know of a provider.
  static model::ProviderFacts facts(const provider::ProviderInfo& info);

 private:
  std::vector<std::unique_ptr<provider::ThrottledProvider>> providers_;
  std::vector<core::ProviderAbility> abilities_;
};

}  // namespace spillway::control
