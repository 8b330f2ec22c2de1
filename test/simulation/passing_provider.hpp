// A provider that hands everything on: the base of decorators that change one call.
//
// Owns what it wraps; reactor thread only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/provider/provider.hpp"

namespace spillway::simulation {

class PassingProvider : public provider::Provider {
 public:
  explicit PassingProvider(std::unique_ptr<provider::Provider> inner) : inner_(std::move(inner)) {}

  const provider::ProviderInfo& info() const override { return inner_->info(); }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override {
    return inner_->list_offers(deadline);
  }
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override {
    return inner_->create(std::move(placement), std::move(pod), deadline);
  }
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override {
    return inner_->get(std::move(ref), deadline);
  }
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override {
    return inner_->list_owned(std::move(tag_prefix), deadline);
  }
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override {
    return inner_->terminate(std::move(ref), grace, deadline);
  }
  async::Task<void> control_container(model::InstanceRef ref, std::string container, provider::ContainerAction action,
                                      std::chrono::seconds grace, base::Deadline deadline) override {
    return inner_->control_container(std::move(ref), std::move(container), action, grace, deadline);
  }

 protected:
  provider::Provider& inner() { return *inner_; }

 private:
  std::unique_ptr<provider::Provider> inner_;
};

}  // namespace spillway::simulation
