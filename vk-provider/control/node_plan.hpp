// What a Node of ours should look like, and the next write that brings the real one closer. Pure.
//
// Used by node_controller; does no I/O and reads no clock. It never plans a change of a taint, label, condition,
// annotation or address that is not ours.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/kube/node_codec.hpp"
#include "vk-provider/model/node_profile.hpp"

namespace spillway::control {

/// One virtual node as the configuration wants it, and what the daemon knows beside that.
struct NodeSettings : model::NodeProfile {
  NodeSettings() = default;
  explicit NodeSettings(model::NodeProfile profile) : model::NodeProfile(std::move(profile)) {}
  int kubelet_port = 0;  // 0: no kubelet API, daemonEndpoints is left out
  bool gated = false;    // created with the taint of its gate, which belongs to the gate from then on
  std::string installation;
  std::string version;  // of Spillway
};

/// The state of the providers as the Node shows it.
struct ProvidersCondition {
  ProvidersCondition() = default;
  bool reachable = true;
  std::string reason = "ProvidersReachable";
  std::string message = "all providers answer";
};

struct WantedNode {
  WantedNode() = default;
  kube::NodeMetadata metadata;
  std::vector<kube::NodeTaint> taints;
  std::vector<kube::NodeTaint> first_taints;  // beside those, of a Node that is created
  /// Taint keys that we manage: what stands under them is ours to add and to remove.
  std::set<std::string> taint_keys;
  std::string provider_id;
  kube::NodeStatus status;
  std::vector<kube::NodeAddress> addresses;
};

/// `server_version` is that of the API server (v1.36.3); kubectl and autoscalers parse what a Node reports.
WantedNode make_wanted_node(const NodeSettings& profile, const ProvidersCondition& providers,
                            const std::string& server_version);

/// True if this Node belongs to the installation and may be taken over. A Node of anybody else is never written.
bool may_adopt(const kube::ObservedNode& node, const std::string& installation);

enum class NodeStep : std::uint8_t {
  kNone,
  kApplyMetadata,
  kRemoveMetadata,
  kWriteTaints,
  kSetProviderId,
  kApplyStatus,
  kReplaceAddresses,
};
std::string_view to_string(NodeStep step);

/// The most important write that is missing. `report_due` asks for a full status although nothing changed.
NodeStep next_step(const WantedNode& wanted, const kube::ObservedNode& observed, bool report_due);

/// The list that write_taints sends: everything of others as it is, and ours.
std::vector<kube::NodeTaint> merge_taints(const WantedNode& wanted, const std::vector<kube::NodeTaint>& observed);

/// The status that apply_status sends: a condition whose status did not change keeps its lastTransitionTime.
kube::NodeStatus status_to_send(const WantedNode& wanted, const kube::ObservedNode& observed, base::WallTime now);

/// Labels and annotations that an earlier configuration of ours wrote and that are no longer wanted.
std::set<std::string> stale_keys(const std::set<std::string>& owned, const kube::NodeMap& wanted);

/// True if `a` is an older version of the same object than `b`. False if the server's versions are not numbers.
bool is_older(const std::string& a, const std::string& b);

}  // namespace spillway::control
