// Everything that exists only while the installation lease is ours.
//
// Owned by Daemon; reactor thread only. Constructed in numbered order, stopped in reverse.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vk-provider/api/kubelet_api.hpp"
#include "vk-provider/control/brake_keeper.hpp"
#include "vk-provider/control/endpoint_controller.hpp"
#include "vk-provider/control/installation_lease.hpp"
#include "vk-provider/control/ledger_keeper.hpp"
#include "vk-provider/control/node_controller.hpp"
#include "vk-provider/control/placer.hpp"
#include "vk-provider/control/pod_controller.hpp"
#include "vk-provider/control/provider_controller.hpp"
#include "vk-provider/control/sample_controller.hpp"
#include "vk-provider/control/sweep_controller.hpp"
#include "vk-provider/daemon/daemon.hpp"

namespace spillway::daemon {

class Active {
 public:
  /// `lease` is held; `cluster_id` is known.
  Active(const Config& config, const DaemonDeps& deps, control::InstallationLease& lease,
         const std::string& cluster_id);

  /// Makes the providers and starts all loops. kInvalid if a provider cannot be made, or the kubelet API cannot listen.
  base::Result<void> start();
  /// Finishes the writes under way (until the deadline), then stops all loops. Instances, pods and nodes stay.
  boost::asio::awaitable<void> shut_down(base::Deadline deadline);
  /// Stops all at once.
  boost::asio::awaitable<void> drop();

  std::vector<Check> readiness() const;
  const control::PodController& pods() const { return *pods_; }
  control::Placer& placer() const { return *placer_; }

 private:
  void make_ledger();
  base::Result<void> make_providers();
  void make_controllers();
  base::Result<void> start_kubelet_api();
  void make_endpoints();
  void make_nodes();
  /// Reads the ledger, and starts everything else.
  async::Loop begin();
  /// Until what an earlier process left in EndpointSlices is put right, but not for long.
  async::Loop await_endpoints();
  control::ProviderController* find_controller(const base::ProviderName& name) const;
  control::NodeSettings settings_of(const model::NodeProfile& profile) const;
  /// Tells the nodes when a provider stops or begins to answer, and ends the wait for one that never does.
  async::Loop watch_providers();
  void show_providers();

  const Config& config_;
  const DaemonDeps& d_;
  control::InstallationLease& lease_;
  model::Ownership ownership_;

  kube::Client client_;
  kube::EventRecorder events_;
  std::unique_ptr<control::LedgerKeeper> ledger_;  // outlives the providers, which tell it
  control::ProviderSet providers_;
  core::OfferBook offers_;
  std::unique_ptr<control::Placer> placer_;
  provider::HandlerRunner handlers_;
  std::unique_ptr<control::EndpointController> endpoints_;  // with endpoints.mode direct; told of all pods
  std::unique_ptr<control::PodController> pods_;
  std::unique_ptr<control::BrakeKeeper> brake_;
  std::unique_ptr<control::SweepController> sweep_;
  std::unique_ptr<control::SampleController> samples_;  // with the kubelet API, and used by it alone
  std::unique_ptr<api::KubeletApi> kubelet_;
  std::vector<std::unique_ptr<control::ProviderController>> provider_controllers_;
  std::vector<std::unique_ptr<control::NodeController>> nodes_;
  std::vector<std::unique_ptr<kube::Reflector>> reflectors_;
  std::string shown_problem_;
  async::TaskGroup group_;
};

}  // namespace spillway::daemon
