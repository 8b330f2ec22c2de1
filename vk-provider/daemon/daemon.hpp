// Wires the parts together, in numbered order, and takes them apart in reverse.
//
// Made by main (or a test), which owns everything in DaemonDeps and lets it outlive the daemon. Reactor thread only. It
// stands by until the installation lease is its own; if the lease is lost it drops everything and stands by again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/control/decision_log.hpp"
#include "vk-provider/control/installation_lease.hpp"
#include "vk-provider/daemon/config.hpp"
#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/net/http.hpp"
#include "vk-provider/provider/handler_runner.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::daemon {

struct DaemonDeps {
  boost::asio::any_io_executor executor;
  async::Timers* timers = nullptr;
  base::Random* random = nullptr;
  base::Metrics* metrics = nullptr;
  kube::KubeApi* api = nullptr;
  kube::KubeApi* lease_api = nullptr;  // for Leases alone: a busy pool must not delay them
  const provider::Registry* registry = nullptr;
  net::HttpClientFactory* http = nullptr;
  provider::ConnectTcp connect_tcp;           // for probes and hooks; empty: nothing can be reached from here
  control::DecisionLog* decisions = nullptr;  // may be null
  std::string holder;                         // who we are in the installation's Lease: base::this_process
  std::function<bool(const std::string& holder)> is_proven_dead;  // base::is_proven_dead, or empty
};

/// One line of /healthz?verbose and /readyz?verbose.
struct Check {
  Check() = default;
  Check(std::string n, std::string p) : name(std::move(n)), problem(std::move(p)) {}
  std::string name;
  std::string problem;  // empty: fine
};

class Active;
class GateRunner;

class Daemon {
 public:
  Daemon(Config config, DaemonDeps deps);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Runs until request_stop(). The value is the exit code.
  boost::asio::awaitable<int> run();
  /// Finish the writes under way, leave node, pods and instances as they are, release the lease.
  void request_stop();
  /// Drops everything at once, as a crash does. For tests: afterwards nothing of this daemon runs.
  boost::asio::awaitable<void> abandon();

  /// Ready: we hold the lease, the pods are known, and every node stands.
  std::vector<Check> readiness() const;
  /// The records as JSON text. Holds no secret.
  std::string debug_pods() const;
  /// The same of one pod's placement; empty if there is no such pod.
  std::optional<std::string> debug_placement(const std::string& uid) const;

 private:
  /// Acquires the lease, works while it is held, and begins again when it is lost.
  async::Loop lead();
  boost::asio::awaitable<std::string> find_cluster_id();

  Config config_;
  DaemonDeps d_;
  async::TaskGroup group_;
  std::unique_ptr<async::Waiter> stop_;
  std::unique_ptr<control::InstallationLease> lease_;
  std::unique_ptr<Active> active_;
  std::unique_ptr<GateRunner> gates_;  // with gate.inDaemon
  int exit_code_ = 0;
};

}  // namespace spillway::daemon
