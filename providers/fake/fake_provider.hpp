// The fake cloud as a provider, for trials and tests: no account, no machine, no container.
//
// Owned by the daemon; reactor thread only. Translates between the seam and a FakeCloudApi; does not know HTTP. Starts
// nothing that runs: commands, environments and files of a pod are not passed on, and what its processes and ports say
// is made here (session.hpp).
#pragma once

#include <memory>
#include <string>

#include "providers/fake/fake_cloud.hpp"
#include "providers/fake/fake_cloud_api.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/provider/provider.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::providers::fake {

class FakeProvider final : public provider::Provider {
 public:
  /// `owned` is the cloud that lives and dies with this provider; null if `api` reaches one that does not. `pod_ip` is
  /// the address that running instances show; empty: none, and no pod has one.
  FakeProvider(base::ProviderName name, std::unique_ptr<FakeCloud> owned, std::unique_ptr<FakeCloudApi> api,
               async::Timers& timers, base::Duration settle_time, std::string pod_ip = {});

  const provider::ProviderInfo& info() const override { return info_; }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override;
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override;
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<void> control_container(model::InstanceRef ref, std::string container, provider::ContainerAction action,
                                      std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef ref, provider::LogOptions options,
                                              base::Deadline deadline) override;
  async::Task<provider::ExecSessionPtr> open_exec(model::InstanceRef ref, provider::ExecOptions options,
                                                  base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> dial(model::InstanceRef ref, int port, base::Deadline deadline) override;
  async::Task<std::vector<provider::Sample>> samples(base::Deadline deadline) override;

 private:
  void complete(model::Instance& instance) const;

  provider::ProviderInfo info_;
  std::string pod_ip_;
  std::unique_ptr<FakeCloud> owned_;
  std::unique_ptr<FakeCloudApi> api_;
  async::Timers& timers_;
};

/// For the registry: `type: fake`, configured as config.hpp says.
provider::ProviderType provider_type();
/// Of every provider of this type.
model::CapabilitySet capabilities();

/// A provider over a cloud that outlives it, so that a test can drop one daemon and start the next.
std::unique_ptr<provider::Provider> make_provider(base::ProviderName name, FakeCloud& cloud, async::Timers& timers);
/// The same for a registry; whatever the configuration says, the provider reaches `cloud`.
provider::ProviderType provider_type_over(FakeCloud& cloud);

}  // namespace spillway::providers::fake
