// `spillway run` and `spillway gate`: the reactor, the connections and the daemon (or the gates) of one process.
#pragma once

#include "vk-provider/daemon/config.hpp"
#include "vk-provider/kube/credentials.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::daemon {

struct RunOptions {
  RunOptions() = default;
  kube::ClusterAccess access;
  const provider::Registry* registry = nullptr;
  std::string decision_log;  // a file; empty: none
};

/// Runs until SIGTERM or SIGINT. The exit code: 0 done, 1 failed, 2 bad configuration.
int run_daemon(const Config& config, const RunOptions& options);
/// `spillway gate`: the capacity gates alone, as run_daemon.
int run_gate(const Config& config, const RunOptions& options);

}  // namespace spillway::daemon
