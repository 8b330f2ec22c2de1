#include "vk-provider/control/provider_set.hpp"

namespace spillway::control {

void ProviderSet::add(std::unique_ptr<provider::ThrottledProvider> provider) {
  core::ProviderAbility ability;
  ability.name = provider->info().name.str();
  ability.capabilities = provider->info().capabilities;
  abilities_.push_back(std::move(ability));
  providers_.push_back(std::move(provider));
}

provider::ThrottledProvider* ProviderSet::find(const base::ProviderName& name) const {
  for (const auto& provider : providers_) {
    if (provider->info().name == name) return provider.get();
  }
  return nullptr;
}

model::ProviderFacts ProviderSet::facts(const provider::ProviderInfo& info) {
  model::ProviderFacts facts;
  facts.settle_time = info.settle_time;
  facts.keeps_stopped = info.capabilities.has(model::Capability::kKeepStopped);
  facts.can_restart = info.capabilities.has(model::Capability::kRestartContainer);
  facts.address_routable = info.address_routable;
  return facts;
}

}  // namespace spillway::control
