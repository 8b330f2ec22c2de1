// What `spillway doctor` has read of a cluster: plain values, of which core/doctor makes its findings.
//
// Made by daemon/cli_doctor_reader, or by a test. What could not be read is an Error and not an empty list, so that no
// check passes for want of data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/core/label_selector.hpp"
#include "vk-provider/core/node_match.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::core {

template <class T>
using Read = base::Result<std::vector<T>>;

/// A node that the configuration names, as it will be or is.
struct OwnNode {
  OwnNode() = default;
  std::string name;
  NodeLabels labels;
};

struct SeenNode {
  SeenNode() = default;
  std::string name;
  NodeLabels labels;
  bool ready = false;
};

/// A pod that is on one of our nodes, or tolerates the provider taint; no static pod.
struct SeenPod {
  SeenPod() = default;
  std::string ns;
  std::string name;
  std::string owner_kind;  // of the controller; empty without one
  std::string owner_name;  // that of the Deployment, for a pod of its ReplicaSet
  model::HomePod pod;
  /// Of pod.tolerations, in their order; empty: for ever.
  std::vector<std::optional<std::int64_t>> toleration_seconds;
  bool local_storage = false;                 // has an emptyDir or a hostPath
  std::string gang;                           // the group that it must be scheduled with; empty: none
  std::map<std::string, std::int64_t> needs;  // thousandths, by names of ResourceQuota: requests.cpu, pods, ...
};

struct SeenBudget {
  SeenBudget() = default;
  std::string ns;
  std::string name;
  LabelSelector selector;
  std::string min_available;    // as written: 2, 50%; empty without it
  std::string max_unavailable;  // the same
  std::int64_t expected_pods = 0;
};

/// A profile of a descheduler's policy, which stands in a ConfigMap.
struct SeenPolicy {
  SeenPolicy() = default;
  std::string object;   // ConfigMap ns/name, key, profile
  std::string problem;  // it cannot be read; nothing else is meant then
  LabelSelector nodes;  // which nodes it looks at
  std::vector<std::string> plugins;
  bool soft_taints = false;            // RemovePodsViolatingNodeTaints with includePreferNoSchedule
  bool protects_local_storage = true;  // pods with an emptyDir are never evicted
  bool bounded = false;                // has a limit of evictions per node
};

struct SeenDaemonSet {
  SeenDaemonSet() = default;
  std::string ns;
  std::string name;
  model::HomePod pod;  // its template
};

struct SeenQuota {
  SeenQuota() = default;
  std::string ns;
  std::string name;
  std::map<std::string, std::int64_t> hard;  // thousandths
  std::map<std::string, std::int64_t> used;
};

struct SeenFlavor {
  SeenFlavor() = default;
  std::string name;
  NodeLabels labels;  // nodeLabels
  bool topology = false;
};

struct SeenLease {
  SeenLease() = default;
  std::string object;   // Lease ns/name
  std::string purpose;  // what it stands for: the daemon, the gates, node NAME
  bool exists = false;
  std::string holder;
  std::optional<base::Duration> age;  // of the last renewal, by the API server's clock where that is known
  base::Duration duration{};
};

/// A request for the serving certificate of our nodes.
struct SeenSigning {
  SeenSigning() = default;
  std::string name;
  std::optional<base::WallTime> created;
  bool approved = false;
  bool issued = false;
  std::string refused;  // why it was denied, or failed
};

struct Right {
  Right() = default;
  std::string group;
  std::string resource;  // nodes, nodes/status
  std::string verb;
  std::string ns;    // empty: of the whole cluster
  std::string name;  // empty: of any name
  auto operator<=>(const Right&) const = default;
};

struct SeenRight {
  SeenRight() = default;
  std::string account;
  Right right;
  bool allowed = false;
};

struct SeenProvider {
  SeenProvider() = default;
  std::string name;
  std::optional<base::Error> error;  // of the call that lists what it sells
  std::size_t offers = 0;
};

/// An event of the last hour that says that a provider's account is full.
struct SeenRefusal {
  SeenRefusal() = default;
  std::string pod;
  std::string message;
};

struct DoctorFacts {
  DoctorFacts();

  // Of the configuration and the command line.
  std::vector<OwnNode> own_nodes;
  bool gated = false;              // gate.enabled
  bool soft_taint = false;         // of any gate
  bool asks_metrics = false;       // a gate's mode has Prometheus in it
  bool wants_certificate = false;  // kubeletApi.certificate.source: csr
  std::string account;             // as the API server names it: system:serviceaccount:ns:name
  std::string training_class;

  base::Result<std::string> caller;  // who runs the doctor
  Read<SeenNode> nodes;
  Read<SeenPod> pods;
  base::Result<bool> kube_state_metrics;  // a pod of it exists
  Read<SeenBudget> budgets;
  Read<SeenPolicy> policies;
  Read<SeenDaemonSet> daemon_sets;
  Read<SeenQuota> quotas;
  std::optional<Read<SeenFlavor>> flavors;             // empty: Kueue is not installed
  base::Result<std::optional<int>> training_priority;  // of the class; without a value there is no such class
  Read<SeenLease> leases;
  Read<SeenSigning> signings;
  Read<SeenRight> rights;
  Read<SeenRefusal> refusals;
  base::Result<base::Duration> clock_ahead;  // of this machine's clock to the API server's; to about a second
  std::vector<SeenProvider> providers;
};

}  // namespace spillway::core
