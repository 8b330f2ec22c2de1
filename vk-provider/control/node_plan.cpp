#include "vk-provider/control/node_plan.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::control {
namespace {

constexpr size_t kLongestLabelValue = 63;
constexpr size_t kLongestMessage = 1024;
// Reported when the API server does not tell its version; old enough for every client to accept it.
constexpr std::string_view kUnknownServer = "v1.30.0";

/// v1.36.3 of v1.36.3-eks-1a2b3c4+x: what may be followed by our own suffix.
std::string release_of(const std::string& server_version) {
  const bool well_formed = server_version.size() > 1 && server_version[0] == 'v' &&
                           std::isdigit(static_cast<unsigned char>(server_version[1])) != 0;
  if (!well_formed) return std::string(kUnknownServer);
  return server_version.substr(0, server_version.find_first_of("-+"));
}

/// KEP-4006: from 1.36 on the API server passes WebSockets of exec, attach and port-forward on to nodes that say that
/// they speak them, and so spares translating them. Before, it may not know the field in which they say so.
bool passes_websockets_on(const std::string& server_version) {
  constexpr int kSince = 36;
  constexpr std::string_view kMajor = "v1.";
  if (!server_version.starts_with(kMajor)) return false;
  int minor = 0;
  const char* const end = server_version.data() + server_version.size();
  std::from_chars(server_version.data() + kMajor.size(), end, minor);
  return minor >= kSince;
}

kube::NodeMap labels_of(const NodeSettings& profile) {
  kube::NodeMap labels{{"type", "virtual-kubelet"},
                       {"kubernetes.io/role", "agent"},
                       {"kubernetes.io/os", "linux"},
                       {"kubernetes.io/arch", "amd64"},
                       // No machine stands behind the node that a load balancer could send packets to.
                       {"node.kubernetes.io/exclude-from-external-load-balancers", "true"}};
  if (profile.name.size() <= kLongestLabelValue) {
    labels["kubernetes.io/hostname"] = profile.name;
    labels[std::string(model::kLabelProfile)] = profile.name;
  }
  for (const auto& [key, value] : profile.labels) labels[key] = value;
  labels[std::string(model::kLabelInstallation)] = profile.installation;  // decides about adoption: never overridden
  return labels;
}

std::vector<kube::NodeCondition> conditions_of(const ProvidersCondition& providers) {
  return {{"MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
          {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
          {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
          {"NetworkUnavailable", "False", "RouteCreated", "a virtual node needs no routes"},
          {std::string(model::kConditionProvidersReachable), providers.reachable ? "True" : "False", providers.reason,
           providers.message.substr(0, kLongestMessage)},
          {"Ready", "True", "KubeletReady", "the virtual node is up"}};
}

/// The API server rewrites quantities (1000m becomes 1): what counts is the value.
bool same_quantity(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto milli = model::quantity_milli(a);
  if (milli) return milli == model::quantity_milli(b);
  const auto value = model::quantity_value(a);
  return value && value == model::quantity_value(b);
}

bool covers_quantities(const kube::NodeMap& observed, const kube::NodeMap& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const auto it = observed.find(entry.first);
    return it != observed.end() && same_quantity(entry.second, it->second);
  });
}

bool covers_entries(const kube::NodeMap& observed, const kube::NodeMap& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const auto it = observed.find(entry.first);
    return it != observed.end() && it->second == entry.second;
  });
}

const kube::NodeCondition* find_condition(const std::vector<kube::NodeCondition>& list, const std::string& type) {
  const auto it = std::ranges::find(list, type, &kube::NodeCondition::type);
  return it == list.end() ? nullptr : &*it;
}

bool status_fits(const kube::NodeStatus& wanted, const kube::ObservedNode& observed) {
  if (!covers_quantities(observed.capacity, wanted.capacity)) return false;
  if (!covers_quantities(observed.allocatable, wanted.capacity)) return false;
  if (observed.info != wanted.info || observed.kubelet_port != wanted.kubelet_port) return false;
  return std::ranges::all_of(wanted.conditions, [&](const kube::NodeCondition& w) {
    const kube::NodeCondition* const o = find_condition(observed.conditions, w.type);
    return o != nullptr && o->status == w.status && o->reason == w.reason && o->message == w.message;
  });
}

bool same_taint(const kube::NodeTaint& a, const kube::NodeTaint& b) {
  return a.key == b.key && a.value == b.value && a.effect == b.effect;
}

bool holds_taint(const std::vector<kube::NodeTaint>& list, const kube::NodeTaint& taint) {
  return std::ranges::any_of(list, [&](const kube::NodeTaint& t) { return same_taint(t, taint); });
}

}  // namespace

WantedNode make_wanted_node(const NodeSettings& profile, const ProvidersCondition& providers,
                            const std::string& server_version) {
  WantedNode wanted;
  wanted.metadata.name = profile.name;
  wanted.metadata.labels = labels_of(profile);
  wanted.metadata.annotations = profile.annotations;
  wanted.taint_keys.insert(std::string(model::kTaintProviderKey));
  // Closed before anybody has looked: a new node must not draw pods from a home that has room.
  if (profile.gated) wanted.first_taints.emplace_back(std::string(model::kTaintGateKey), "", "NoSchedule");
  if (profile.provider_taint) {
    wanted.taints.emplace_back(std::string(model::kTaintProviderKey), std::string(model::kTaintProviderValue),
                               "NoSchedule");
  }
  // A scheme that no cloud controller knows: it must not look for a machine and delete the node for the lack of one.
  wanted.provider_id = "spillway://" + profile.installation + "/" + profile.name;
  wanted.status.capacity = profile.capacity;
  wanted.status.conditions = conditions_of(providers);
  kube::NodeSystemInfo& info = wanted.status.info;
  info.machine_id = "spillway-" + profile.installation + "-" + profile.name;
  info.kernel_version = "virtual";
  info.os_image = "Spillway virtual node";
  info.container_runtime_version = "spillway://" + profile.version;
  info.kubelet_version = release_of(server_version) + "-spillway." + profile.version;
  info.architecture = "amd64";
  info.operating_system = "linux";
  wanted.status.kubelet_port = profile.kubelet_port;
  // Not compared with what stands on the Node: a cluster can be told not to keep it, and would be told for ever.
  if (profile.kubelet_port != 0 && passes_websockets_on(server_version)) {
    wanted.status.declared_features.emplace_back("ExtendWebSocketsToKubelet");
  }
  if (!profile.internal_ip.empty()) wanted.addresses.emplace_back("InternalIP", profile.internal_ip);
  return wanted;
}

bool may_adopt(const kube::ObservedNode& node, const std::string& installation) {
  const auto it = node.labels.find(std::string(model::kLabelInstallation));
  return it != node.labels.end() && it->second == installation;
}

std::string_view to_string(NodeStep step) {
  switch (step) {
    case NodeStep::kNone: return "none";
    case NodeStep::kApplyMetadata: return "apply_metadata";
    case NodeStep::kRemoveMetadata: return "remove_metadata";
    case NodeStep::kWriteTaints: return "write_taints";
    case NodeStep::kSetProviderId: return "set_provider_id";
    case NodeStep::kApplyStatus: return "apply_status";
    case NodeStep::kReplaceAddresses: return "replace_addresses";
  }
  return "none";
}

NodeStep next_step(const WantedNode& wanted, const kube::ObservedNode& observed, bool report_due) {
  if (observed.deleting) return NodeStep::kNone;
  // Taints come first: without them pods slip in.
  const std::vector<kube::NodeTaint> merged = merge_taints(wanted, observed.taints);
  if (merged.size() != observed.taints.size() || !std::ranges::equal(merged, observed.taints)) {
    return NodeStep::kWriteTaints;
  }
  if (!covers_entries(observed.labels, wanted.metadata.labels) ||
      !covers_entries(observed.annotations, wanted.metadata.annotations)) {
    return NodeStep::kApplyMetadata;
  }
  if (report_due || !status_fits(wanted.status, observed)) return NodeStep::kApplyStatus;
  if (!wanted.addresses.empty() && observed.addresses != wanted.addresses) return NodeStep::kReplaceAddresses;
  if (observed.provider_id.empty() && !wanted.provider_id.empty()) return NodeStep::kSetProviderId;
  if (!stale_keys(observed.owned_labels, wanted.metadata.labels).empty() ||
      !stale_keys(observed.owned_annotations, wanted.metadata.annotations).empty()) {
    return NodeStep::kRemoveMetadata;
  }
  return NodeStep::kNone;
}

std::vector<kube::NodeTaint> merge_taints(const WantedNode& wanted, const std::vector<kube::NodeTaint>& observed) {
  std::vector<kube::NodeTaint> merged;
  for (const kube::NodeTaint& taint : observed) {
    if (!wanted.taint_keys.contains(taint.key) || holds_taint(wanted.taints, taint)) merged.push_back(taint);
  }
  for (const kube::NodeTaint& taint : wanted.taints) {
    if (!holds_taint(merged, taint)) merged.push_back(taint);
  }
  return merged;
}

kube::NodeStatus status_to_send(const WantedNode& wanted, const kube::ObservedNode& observed, base::WallTime now) {
  kube::NodeStatus status = wanted.status;
  for (kube::NodeCondition& condition : status.conditions) {
    const kube::NodeCondition* const before = find_condition(observed.conditions, condition.type);
    const bool same = before != nullptr && before->status == condition.status && before->last_transition;
    condition.last_transition = same ? before->last_transition : now;
  }
  return status;
}

std::set<std::string> stale_keys(const std::set<std::string>& owned, const kube::NodeMap& wanted) {
  std::set<std::string> stale;
  for (const std::string& key : owned) {
    if (!wanted.contains(key)) stale.insert(key);
  }
  return stale;
}

bool is_older(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text, std::uint64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  };
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  return number(a, left) && number(b, right) && left < right;
}

}  // namespace spillway::control
