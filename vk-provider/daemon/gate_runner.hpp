// Runs the gates and their drains while their Lease is ours: in the daemon, or as `spillway gate`.
//
// Owned by run_daemon's Daemon, or by run_gate; reactor thread only. Of all processes with the same installation one
// holds the Lease spillway-gate-<installation> and works; the others stand by.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/control/drain_controller.hpp"
#include "vk-provider/control/gate_controller.hpp"
#include "vk-provider/control/installation_lease.hpp"
#include "vk-provider/daemon/config.hpp"
#include "vk-provider/daemon/daemon.hpp"

namespace spillway::daemon {

class GateRunner {
 public:
  /// Of `deps` it needs no providers. Both must outlive it.
  GateRunner(const Config& config, const DaemonDeps& deps);
  ~GateRunner();
  GateRunner(const GateRunner&) = delete;
  GateRunner& operator=(const GateRunner&) = delete;

  /// Runs until it is cancelled; ends at once, with a line in the log, if Prometheus cannot be connected to at all.
  async::Loop run();
  // To be called when run() was cancelled.
  /// Stops all at once; the taints stay as they are.
  boost::asio::awaitable<void> drop();
  /// The same, and gives the Lease back.
  boost::asio::awaitable<void> release();

  /// For /readyz.
  std::vector<Check> readiness() const;

 private:
  base::Result<void> make_prometheus();
  void start_work();
  boost::asio::awaitable<void> stop_work();

  const Config& config_;
  const DaemonDeps& d_;
  kube::Client client_;
  std::unique_ptr<net::HttpClient> http_;
  std::unique_ptr<kube::PrometheusClient> prometheus_;
  std::unique_ptr<control::InstallationLease> lease_;
  // While the Lease is held.
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<control::GateController> gates_;
  std::unique_ptr<control::DrainController> drain_;
  std::unique_ptr<async::TaskGroup> parts_;
};

/// The gates of a configuration, with what pods choose our nodes by.
std::vector<control::GateSettings> gates_of(const Config& config);
/// Whether a node begins its life behind a gate.
bool is_gated(const Config& config, const std::string& node);

}  // namespace spillway::daemon
