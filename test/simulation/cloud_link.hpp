// A daemon's way to one cloud, and the traits that its provider admits.
//
// Owned by a Machine (through its daemon). One thread. The cloud itself, and the faults in it, are providers/fake's.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "providers/fake/fake_cloud.hpp"
#include "providers/fake/fake_cloud_api.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::simulation {

class Machine;
class World;
struct CloudSite;

class CloudLink final : public providers::fake::FakeCloudApi {
 public:
  CloudLink(World& world, Machine& machine, CloudSite& site) : world_(world), machine_(machine), site_(site) {}

  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override;
  async::Task<model::Instance> create(providers::fake::CreateRequest request, base::Deadline deadline) override;
  async::Task<model::Instance> get(std::string id, base::Deadline deadline) override;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override;
  async::Task<void> terminate(std::string id, std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<void> control(std::string id, std::string container, provider::ContainerAction action,
                            std::chrono::seconds grace, base::Deadline deadline) override;

 private:
  template <class T>
  using Work = std::function<providers::fake::Reply<T>(providers::fake::FakeCloud&, base::TimePoint)>;
  template <class T>
  async::Task<T> call(bool is_write, base::Deadline deadline, Work<T> work);
  void count(providers::fake::Call call);
  /// Noted where it matters: of a cloud that lies.
  void told(std::span<const model::Instance> instances);

  World& world_;
  Machine& machine_;
  CloudSite& site_;
};

/// `type: sim`: the provider called cloud<i> reaches the world's cloud i.
provider::ProviderType cloud_type(World& world, Machine& machine);

}  // namespace spillway::simulation
