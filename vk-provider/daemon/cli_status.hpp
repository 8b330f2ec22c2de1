// `spillway status`: nodes, the installation's Lease, providers and pods, as they are now.
//
// Stands alone: it asks the API server and the providers themselves, so that it tells the truth while the daemon is
// down. Reads only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/cli_session.hpp"
#include "vk-provider/kube/node_codec.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::daemon {

struct NodeReport {
  NodeReport() = default;
  std::string name;
  std::string problem;                       // why it could not be read; or why it is not ours
  std::string ready;                         // status of the condition Ready; empty without one
  std::vector<kube::NodeCondition> unusual;  // ours and the kubelet's that do not stand as they should
  std::map<std::string, int> pods_by_stage;
};

struct LeaseReport {
  LeaseReport() = default;
  std::string problem;
  std::string holder;                 // empty: nobody
  std::optional<base::Duration> age;  // of the last renewal
  bool expired = false;
};

struct ProviderReport {
  ProviderReport() = default;
  std::string name;
  std::string type;
  std::string problem;  // empty: it answered
  std::size_t offers = 0;
  std::size_t available = 0;
  std::optional<base::Money> cheapest;            // of those that are available
  std::map<std::string, int> instances_by_state;  // of this installation
  std::optional<base::Money> per_hour;            // sum of what they cost, where the provider says so
  std::string incomplete_why;                     // set: there may be more instances
};

/// A pod that does not run, and why.
struct PodReport {
  PodReport() = default;
  std::string pod;
  std::string node;
  std::string stage;
  std::string why;
};

struct StatusReport {
  StatusReport() = default;
  int exit_code = kExitDone;
  std::string problem;  // the API server cannot be asked
  LeaseReport lease;
  std::vector<NodeReport> nodes;
  std::vector<ProviderReport> providers;
  std::vector<PodReport> waiting;
};

/// What of the configuration status needs.
struct StatusOptions {
  StatusOptions() = default;
  InstallationConfig installation;
  std::vector<std::string> nodes;
};

/// Where a pod stands, by what is written on it. The daemon's own record knows more: /debug/pods.
std::string stage_of(const model::ObservedPod& pod);
/// What is written on it of why it does not run.
std::string why_of(const model::ObservedPod& pod);

boost::asio::awaitable<StatusReport> gather_status(Surroundings in, StatusOptions options);

std::string to_text(const StatusReport& report, Output output);

}  // namespace spillway::daemon
