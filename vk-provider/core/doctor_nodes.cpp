// Checks of the nodes, and of the deschedulers that move pods between them.
#include <algorithm>
#include <array>

#include "vk-provider/core/doctor.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kNoSchedule = "NoSchedule";
constexpr std::string_view kTaintPlugin = "RemovePodsViolatingNodeTaints";
/// They balance nodes against each other, and a virtual node is never in balance.
constexpr std::array<std::string_view, 4> kBalancing{"RemoveDuplicates", "LowNodeUtilization", "HighNodeUtilization",
                                                     "RemovePodsViolatingTopologySpreadConstraint"};

std::string names_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMost) out += " and " + std::to_string(names.size() - kMost) + " more";
  return out;
}

/// One of our nodes at which the policy looks; null if it leaves all of them alone.
const OwnNode* own_node_of(const SeenPolicy& policy, const DoctorFacts& facts) {
  const auto it =
      std::ranges::find_if(facts.own_nodes, [&](const OwnNode& node) { return matches(policy.nodes, node.labels); });
  return it == facts.own_nodes.end() ? nullptr : &*it;
}

bool has_plugin(const SeenPolicy& policy, std::string_view name) {
  return std::ranges::find(policy.plugins, name) != policy.plugins.end();
}

/// The policies that can be read. Without one there is nothing to check.
bool has_policies(DoctorReport& out, const DoctorFacts& facts) {
  if (!out.has(facts.policies)) return false;
  if (facts.policies->empty()) out.skip("no ConfigMap holds a DeschedulerPolicy");
  return !facts.policies->empty();
}

/// Those that move pods away from our nodes.
bool drains(const SeenPolicy& policy, const DoctorFacts& facts) {
  return policy.problem.empty() && has_plugin(policy, kTaintPlugin) && own_node_of(policy, facts) != nullptr;
}

model::Taint own_taint(std::string_view key, std::string_view value) {
  return {std::string(key), std::string(value), std::string(kNoSchedule)};
}

}  // namespace

DoctorReport check_zone_labels(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kZoneLabels);
  if (!out.has(facts.nodes)) return out;
  std::vector<std::string> with;
  std::vector<std::string> without;
  for (const SeenNode& node : *facts.nodes) {
    (node.labels.contains(std::string(kZone)) ? with : without).push_back(node.name);
  }
  if (!with.empty() && !without.empty()) {
    out.warn("nodes", "some have a zone label (" + names_of(with) + ") and some have none (" + names_of(without) + ")");
  }
  return out;
}

DoctorReport check_daemon_sets(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kDaemonSets);
  if (!out.has(facts.daemon_sets)) return out;
  const model::Taint provider = own_taint(model::kTaintProviderKey, model::kTaintProviderValue);
  for (const SeenDaemonSet& set : *facts.daemon_sets) {
    // One that names our taint wants to be there.
    const bool everything = std::ranges::any_of(set.pod.tolerations,
                                                [&](const auto& t) { return t.key.empty() && tolerates(t, provider); });
    if (!everything) continue;
    const auto node = std::ranges::find_if(
        facts.own_nodes, [&](const OwnNode& own) { return fits_node(set.pod, own.name, own.labels); });
    if (node == facts.own_nodes.end()) continue;
    out.warn("DaemonSet " + set.ns + "/" + set.name, "tolerates every taint, and so has a pod on node " + node->name);
  }
  return out;
}

DoctorReport check_kueue_flavors(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kKueueFlavors);
  if (!facts.flavors) {
    out.skip("Kueue is not installed");
    return out;
  }
  if (!out.has(*facts.flavors)) return out;
  for (const SeenFlavor& flavor : **facts.flavors) {
    // Without labels and topology a flavor counts no nodes at all.
    if (flavor.labels.empty() && !flavor.topology) continue;
    const auto node =
        std::ranges::find_if(facts.own_nodes, [&](const OwnNode& own) { return selects(flavor.labels, own.labels); });
    if (node == facts.own_nodes.end()) continue;
    out.fail("ResourceFlavor " + flavor.name, "its nodeLabels match node " + node->name);
  }
  return out;
}

DoctorReport check_state_metrics(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kStateMetrics);
  if (!facts.asks_metrics) {
    out.skip("no gate asks Prometheus by the queries that need it");
    return out;
  }
  if (!out.has(facts.kube_state_metrics)) return out;
  if (!*facts.kube_state_metrics) out.warn("kube-state-metrics", "no pod of it is there, and a gate asks Prometheus");
  return out;
}

DoctorReport check_policy_fights(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kPolicyFights);
  if (!has_policies(out, facts)) return out;
  for (const SeenPolicy& policy : *facts.policies) {
    if (!policy.problem.empty()) {
      out.warn(policy.object, policy.problem);
      continue;
    }
    const OwnNode* const node = own_node_of(policy, facts);
    if (node == nullptr) continue;
    for (const std::string_view plugin : kBalancing) {
      if (has_plugin(policy, plugin)) out.fail(policy.object, std::string(plugin) + " looks at node " + node->name);
    }
    if (facts.soft_taint && policy.soft_taints && drains(policy, facts)) {
      out.fail(policy.object,
               "includePreferNoSchedule evicts pods from node " + node->name + " by the soft taint, which never goes");
    }
  }
  return out;
}

DoctorReport check_policy_nodes(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kPolicyNodes);
  if (!has_policies(out, facts) || !out.has(facts.nodes)) return out;
  for (const SeenPolicy& policy : *facts.policies) {
    if (!policy.problem.empty()) continue;
    const auto ready = std::ranges::count_if(
        *facts.nodes, [&](const SeenNode& node) { return node.ready && matches(policy.nodes, node.labels); });
    if (ready < 2) out.warn(policy.object, "its nodeSelector leaves " + std::to_string(ready) + " Ready nodes");
  }
  return out;
}

DoctorReport check_policy_local_storage(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kPolicyLocalStorage);
  if (!has_policies(out, facts) || !out.has(facts.pods)) return out;
  const auto pod = std::ranges::find_if(
      *facts.pods, [](const SeenPod& p) { return p.local_storage && !p.pod.terminal && p.owner_kind != "DaemonSet"; });
  if (pod == facts.pods->end()) return out;
  for (const SeenPolicy& policy : *facts.policies) {
    if (!drains(policy, facts) || !policy.protects_local_storage) continue;
    out.warn(policy.object, "never moves pods with an emptyDir, such as " + pod->ns + "/" + pod->name);
  }
  return out;
}

DoctorReport check_policy_unbounded(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kPolicyUnbounded);
  if (!has_policies(out, facts)) return out;
  for (const SeenPolicy& policy : *facts.policies) {
    if (drains(policy, facts) && !policy.bounded) {
      out.warn(policy.object, "may evict all pods of a node in one cycle: maxNoOfPodsToEvictPerNode is not set");
    }
  }
  return out;
}

}  // namespace spillway::core
