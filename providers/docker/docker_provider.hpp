// Docker Engines as a provider: a team's own machines, rented to its cluster.
//
// Owned by the daemon through the registry, reactor thread only, destroyed after stop(). Sends each call to the host
// that it is about; what a host does is in host.hpp. Sessions and streams that it hands out die before it.
#pragma once

#include <memory>
#include <vector>

#include "providers/docker/config.hpp"
#include "providers/docker/host.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/provider/provider.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::providers::docker {

/// `type: docker` of the configuration.
provider::ProviderType provider_type();
/// Of every provider of this type.
model::CapabilitySet capabilities();

class DockerProvider final : public provider::Provider {
 public:
  /// One HTTP client per host, in the order of the configuration.
  DockerProvider(base::ProviderName name, Config config, std::vector<std::unique_ptr<net::HttpClient>> clients,
                 const provider::ProviderDeps& deps);

  const provider::ProviderInfo& info() const override { return info_; }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override;
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override;
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef ref, provider::LogOptions options,
                                              base::Deadline deadline) override;
  async::Task<provider::ExecSessionPtr> open_exec(model::InstanceRef ref, provider::ExecOptions options,
                                                  base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> dial(model::InstanceRef ref, int port, base::Deadline deadline) override;
  async::Task<std::vector<provider::Sample>> samples(base::Deadline deadline) override;
  async::Task<void> control_container(model::InstanceRef ref, std::string container, provider::ContainerAction action,
                                      std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<void> put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                              base::Deadline deadline) override;
  boost::asio::awaitable<void> stop() override;

 private:
  struct Place {
    Place() = default;
    Host* host = nullptr;
    std::string tag;
  };
  base::Result<Place> find(const model::InstanceRef& ref) const;

  provider::ProviderInfo info_;
  async::Timers& timers_;
  async::TaskGroup background_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace spillway::providers::docker
