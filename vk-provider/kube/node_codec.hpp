// Node JSON <-> the part of a Node that Spillway reads or writes.
//
// Pure functions, reactor thread. Tolerant of absent, null and mistyped optional fields; an object without
// metadata.name or uid is kInvalid. Decides nothing: control/node_plan does.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::kube {

struct NodeTaint {
  NodeTaint() = default;
  NodeTaint(std::string k, std::string v, std::string e)
      : key(std::move(k)), value(std::move(v)), effect(std::move(e)) {}
  std::string key;
  std::string value;
  std::string effect;
  std::string time_added;  // as the server wrote it; empty without one. Not ours to change.

  bool operator==(const NodeTaint&) const = default;
};

struct NodeCondition {
  NodeCondition() = default;
  NodeCondition(std::string t, std::string s, std::string r, std::string m)
      : type(std::move(t)), status(std::move(s)), reason(std::move(r)), message(std::move(m)) {}
  std::string type;
  std::string status;  // True, False, Unknown
  std::string reason;
  std::string message;
  std::optional<base::WallTime> last_heartbeat;
  std::optional<base::WallTime> last_transition;
};

struct NodeAddress {
  NodeAddress() = default;
  NodeAddress(std::string t, std::string a) : type(std::move(t)), address(std::move(a)) {}
  std::string type;  // InternalIP, ExternalIP
  std::string address;

  bool operator==(const NodeAddress&) const = default;
};

/// status.nodeInfo; all strings are required by the API.
struct NodeSystemInfo {
  NodeSystemInfo() = default;
  std::string machine_id;
  std::string kernel_version;
  std::string os_image;
  std::string container_runtime_version;
  std::string kubelet_version;
  std::string architecture;
  std::string operating_system;

  bool operator==(const NodeSystemInfo&) const = default;
};

using NodeMap = std::map<std::string, std::string>;

/// What is given at creation and kept up afterwards.
struct NodeMetadata {
  NodeMetadata() = default;
  std::string name;
  std::string uid;  // precondition of an apply, so that it never creates; empty for a create
  NodeMap labels;
  NodeMap annotations;
};

/// What we apply to nodes/status. Only these conditions are ours.
struct NodeStatus {
  NodeStatus() = default;
  NodeMap capacity;  // allocatable is the same: nothing is reserved on a node without a machine
  std::vector<NodeCondition> conditions;
  NodeSystemInfo info;
  int kubelet_port = 0;  // 0: no daemonEndpoints
  /// Of Kubernetes, that the node speaks. Only to an API server that knows the field: another one refuses all of it.
  std::vector<std::string> declared_features;
};

/// A Node as it stands at the API server.
struct ObservedNode {
  ObservedNode() = default;
  std::string name;
  std::string uid;
  std::string resource_version;
  bool deleting = false;
  NodeMap labels;
  NodeMap annotations;
  std::vector<NodeTaint> taints;  // all of them, also those of others
  std::string provider_id;
  NodeMap capacity;
  NodeMap allocatable;
  std::vector<NodeCondition> conditions;
  std::vector<NodeAddress> addresses;
  NodeSystemInfo info;
  int kubelet_port = 0;
  /// Keys of labels and annotations that our field manager owns: what an earlier configuration of ours left behind.
  std::set<std::string> owned_labels;
  std::set<std::string> owned_annotations;
};

base::Result<ObservedNode> decode_node(std::string_view json);

/// A whole Node without status. Taints and labels stand in the very first write: no pod slips in before them.
std::string encode_node_create(const NodeMetadata& metadata, const std::vector<NodeTaint>& taints,
                               const std::string& provider_id);
/// Server-side apply of labels and annotations. With the UID as a precondition: an apply would otherwise create a Node
/// without taints if ours was deleted a moment ago.
std::string encode_metadata_apply(const NodeMetadata& metadata);
/// Merge patch that removes labels and annotations.
std::string encode_metadata_removal(const std::string& uid, const std::set<std::string>& labels,
                                    const std::set<std::string>& annotations);
/// Server-side apply for nodes/status. `now` becomes lastHeartbeatTime, and lastTransitionTime where there is none.
std::string encode_status_apply(const std::string& name, const std::string& uid, const NodeStatus& status,
                                base::WallTime now);
/// Strategic merge patch for nodes/status that replaces the list: two addresses of one type have the same merge key.
std::string encode_addresses_patch(const std::string& uid, const std::vector<NodeAddress>& addresses);
/// Merge patch of the whole list, valid only at this version: it is shared with the node lifecycle controller.
std::string encode_taints_patch(const std::string& resource_version, const std::vector<NodeTaint>& taints);
/// Merge patch; the API server takes it only while the field is empty.
std::string encode_provider_id_patch(const std::string& uid, const std::string& provider_id);

/// gitVersion of GET /version: v1.36.3.
base::Result<std::string> decode_server_version(std::string_view json);

}  // namespace spillway::kube
