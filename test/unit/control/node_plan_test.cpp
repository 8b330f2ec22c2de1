#include "vk-provider/control/node_plan.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway::control;
using spillway::base::WallTime;
using spillway::kube::NodeCondition;
using spillway::kube::NodeTaint;
using spillway::kube::ObservedNode;

namespace {

const WallTime kNow{std::chrono::sys_days(std::chrono::year(2026) / 11 / 29)};
const NodeTaint kOurs("virtual-kubelet.io/provider", "spillway", "NoSchedule");
const NodeTaint kForeign("node.kubernetes.io/not-ready", "", "NoSchedule");

NodeSettings a_profile() {
  NodeSettings profile;
  profile.name = "burst";
  profile.labels = {{"nvidia.com/gpu.product", "H100"}};
  profile.annotations = {{"example.com/contact", "ml"}};
  profile.capacity = {{"cpu", "1000m"}, {"memory", "1024Mi"}, {"pods", "10"}};
  profile.internal_ip = "10.0.0.1";
  profile.kubelet_port = 10250;
  profile.installation = "main";
  profile.version = "0.1.0";
  return profile;
}

WantedNode a_wanted(const NodeSettings& profile = a_profile()) {
  return make_wanted_node(profile, ProvidersCondition(), "v1.36.3");
}

/// The Node as the API server holds it when everything was written; quantities as the server rewrites them.
ObservedNode an_observed(const WantedNode& wanted) {
  ObservedNode node;
  node.name = wanted.metadata.name;
  node.uid = "u1";
  node.resource_version = "42";
  node.labels = wanted.metadata.labels;
  node.annotations = wanted.metadata.annotations;
  node.taints = wanted.taints;
  node.provider_id = wanted.provider_id;
  node.capacity = node.allocatable = {{"cpu", "1"}, {"memory", "1Gi"}, {"pods", "10"}};
  node.conditions = wanted.status.conditions;
  for (NodeCondition& condition : node.conditions) condition.last_transition = kNow - 24h;
  node.addresses = wanted.addresses;
  node.info = wanted.status.info;
  node.kubelet_port = wanted.status.kubelet_port;
  return node;
}

std::string condition_status(const WantedNode& wanted, const std::string& type) {
  for (const NodeCondition& condition : wanted.status.conditions) {
    if (condition.type == type) return condition.status + " " + condition.reason;
  }
  return "absent";
}

}  // namespace

TEST_CASE("a virtual node looks like a node to everybody who asks") {
  const WantedNode wanted = a_wanted();
  const auto& labels = wanted.metadata.labels;
  CHECK(labels.at("type") == "virtual-kubelet");
  CHECK(labels.at("kubernetes.io/os") == "linux");
  CHECK(labels.at("kubernetes.io/arch") == "amd64");
  CHECK(labels.at("kubernetes.io/hostname") == "burst");
  CHECK(labels.at("node.kubernetes.io/exclude-from-external-load-balancers") == "true");
  CHECK(labels.at("spillway.dev/installation") == "main");
  CHECK(labels.at("nvidia.com/gpu.product") == "H100");
  CHECK(wanted.taints == std::vector<NodeTaint>{kOurs});
  CHECK(wanted.provider_id == "spillway://main/burst");
  CHECK(wanted.status.info.kubelet_version == "v1.36.3-spillway.0.1.0");
  CHECK(condition_status(wanted, "Ready") == "True KubeletReady");
  CHECK(condition_status(wanted, "NetworkUnavailable") == "False RouteCreated");
  CHECK(condition_status(wanted, "MemoryPressure") == "False KubeletHasSufficientMemory");
  CHECK(condition_status(wanted, "DiskPressure") == "False KubeletHasNoDiskPressure");
  CHECK(condition_status(wanted, "PIDPressure") == "False KubeletHasSufficientPID");
  CHECK(condition_status(wanted, "SpillwayProvidersReachable") == "True ProvidersReachable");
}

TEST_CASE("an outage of the providers leaves the node Ready") {
  ProvidersCondition outage;
  outage.reachable = false;
  outage.reason = "ProvidersUnreachable";
  const WantedNode wanted = make_wanted_node(a_profile(), outage, "v1.36.3");
  CHECK(condition_status(wanted, "Ready") == "True KubeletReady");
  CHECK(condition_status(wanted, "SpillwayProvidersReachable") == "False ProvidersUnreachable");
}

TEST_CASE("the reported version begins as that of the API server, whatever its build") {
  const std::pair<const char*, const char*> rows[] = {{"v1.36.3", "v1.36.3-spillway.0.1.0"},
                                                      {"v1.33.1-eks-1de2ab1", "v1.33.1-spillway.0.1.0"},
                                                      {"v1.32.4+k3s1", "v1.32.4-spillway.0.1.0"},
                                                      {"unknown", "v1.30.0-spillway.0.1.0"},
                                                      {"", "v1.30.0-spillway.0.1.0"}};
  for (const auto& [server, reported] : rows) {
    CHECK(make_wanted_node(a_profile(), ProvidersCondition(), server).status.info.kubelet_version == reported);
  }
}

TEST_CASE("a node says that it speaks WebSockets to an API server that asks for it, and only with its kubelet API on") {
  using Features = std::vector<std::string>;
  const auto declared = [](int port, const std::string& server) {
    NodeSettings profile = a_profile();
    profile.kubelet_port = port;
    return make_wanted_node(profile, ProvidersCondition(), server).status.declared_features;
  };
  CHECK(declared(10250, "v1.36.0") == Features{"ExtendWebSocketsToKubelet"});
  CHECK(declared(10250, "v1.40.1-eks-1a2b3c4") == Features{"ExtendWebSocketsToKubelet"});
  for (const char* server : {"v1.35.4", "v1.3", "", "v2.36.0", "1.36.0"}) {
    CAPTURE(server);
    CHECK(declared(10250, server).empty());
  }
  CHECK(declared(0, "v1.36.0").empty());
}

TEST_CASE("a profile's labels win over the standard ones, but never over the one that decides about adoption") {
  NodeSettings profile = a_profile();
  profile.labels = {{"kubernetes.io/arch", "arm64"}, {"spillway.dev/installation", "other"}};
  const WantedNode wanted = a_wanted(profile);
  CHECK(wanted.metadata.labels.at("kubernetes.io/arch") == "arm64");
  CHECK(wanted.metadata.labels.at("spillway.dev/installation") == "main");
}

TEST_CASE("a name that is no label value stands in no label") {
  NodeSettings profile = a_profile();
  profile.name = std::string(64, 'n');
  CHECK_FALSE(a_wanted(profile).metadata.labels.contains("kubernetes.io/hostname"));
  profile.name = std::string(63, 'n');
  CHECK(a_wanted(profile).metadata.labels.contains("kubernetes.io/hostname"));
}

TEST_CASE("a node is adopted only with the label of this installation") {
  ObservedNode node;
  CHECK_FALSE(may_adopt(node, "main"));
  node.labels["type"] = "virtual-kubelet";
  CHECK_FALSE(may_adopt(node, "main"));
  node.labels["spillway.dev/installation"] = "other";
  CHECK_FALSE(may_adopt(node, "main"));
  node.labels["spillway.dev/installation"] = "main";
  CHECK(may_adopt(node, "main"));
}

TEST_CASE("what differs decides the next write") {
  struct Row {
    const char* name;
    void (*change)(ObservedNode&);
    NodeStep step;
  };
  const Row rows[] = {
      {"nothing", [](ObservedNode&) {}, NodeStep::kNone},
      {"our taint is gone", [](ObservedNode& n) { n.taints.clear(); }, NodeStep::kWriteTaints},
      {"our taint's value changed", [](ObservedNode& n) { n.taints[0].value = "x"; }, NodeStep::kWriteTaints},
      {"our taint's effect changed", [](ObservedNode& n) { n.taints[0].effect = "NoExecute"; }, NodeStep::kWriteTaints},
      {"a foreign taint came", [](ObservedNode& n) { n.taints.push_back(kForeign); }, NodeStep::kNone},
      {"a label is gone", [](ObservedNode& n) { n.labels.erase("type"); }, NodeStep::kApplyMetadata},
      {"a label changed", [](ObservedNode& n) { n.labels["type"] = "x"; }, NodeStep::kApplyMetadata},
      {"a foreign label came", [](ObservedNode& n) { n.labels["team"] = "ml"; }, NodeStep::kNone},
      {"an annotation is gone", [](ObservedNode& n) { n.annotations.clear(); }, NodeStep::kApplyMetadata},
      {"a foreign annotation came", [](ObservedNode& n) { n.annotations["x"] = "y"; }, NodeStep::kNone},
      {"a capacity changed", [](ObservedNode& n) { n.capacity["cpu"] = "2"; }, NodeStep::kApplyStatus},
      {"an allocatable is gone", [](ObservedNode& n) { n.allocatable.erase("pods"); }, NodeStep::kApplyStatus},
      {"a foreign capacity came", [](ObservedNode& n) { n.capacity["example.com/x"] = "2"; }, NodeStep::kNone},
      {"Ready became Unknown",
       [](ObservedNode& n) {
         for (NodeCondition& c : n.conditions) {
           if (c.type == "Ready") c.status = "Unknown";
         }
       },
       NodeStep::kApplyStatus},
      {"a condition is gone", [](ObservedNode& n) { n.conditions.pop_back(); }, NodeStep::kApplyStatus},
      {"a condition's message changed", [](ObservedNode& n) { n.conditions[0].message = "x"; }, NodeStep::kApplyStatus},
      {"a foreign condition came",
       [](ObservedNode& n) { n.conditions.emplace_back("KernelDeadlock", "True", "r", "m"); }, NodeStep::kNone},
      {"only times changed", [](ObservedNode& n) { n.conditions[0].last_heartbeat = kNow; }, NodeStep::kNone},
      {"the version changed", [](ObservedNode& n) { n.info.kubelet_version = "v1"; }, NodeStep::kApplyStatus},
      {"the port changed", [](ObservedNode& n) { n.kubelet_port = 1; }, NodeStep::kApplyStatus},
      {"the address changed", [](ObservedNode& n) { n.addresses[0].address = "10.0.0.2"; },
       NodeStep::kReplaceAddresses},
      {"the provider id is missing", [](ObservedNode& n) { n.provider_id.clear(); }, NodeStep::kSetProviderId},
      {"the provider id is another", [](ObservedNode& n) { n.provider_id = "spillway://old/burst"; }, NodeStep::kNone},
      {"an old label of ours is left", [](ObservedNode& n) { n.owned_labels = {"type", "old"}; },
       NodeStep::kRemoveMetadata},
      {"taints come before all else",
       [](ObservedNode& n) {
         n.taints.clear();
         n.labels.clear();
         n.conditions.clear();
       },
       NodeStep::kWriteTaints},
      {"it is being deleted",
       [](ObservedNode& n) {
         n.deleting = true;
         n.taints.clear();
       },
       NodeStep::kNone},
  };
  const WantedNode wanted = a_wanted();
  for (const Row& row : rows) {
    INFO(row.name);
    ObservedNode observed = an_observed(wanted);
    row.change(observed);
    CHECK(to_string(next_step(wanted, observed, false)) == to_string(row.step));
  }
  CHECK(next_step(wanted, an_observed(wanted), true) == NodeStep::kApplyStatus);
}

TEST_CASE("without an address or a port of ours those of the node are left alone") {
  NodeSettings profile = a_profile();
  profile.internal_ip.clear();
  const WantedNode wanted = a_wanted(profile);
  ObservedNode observed = an_observed(wanted);
  observed.addresses = {{"InternalIP", "10.9.9.9"}};
  CHECK(next_step(wanted, observed, false) == NodeStep::kNone);
}

TEST_CASE("taints of others survive every write, with the time at which they were added") {
  const WantedNode wanted = a_wanted();
  NodeTaint timed("node.kubernetes.io/unreachable", "", "NoExecute");
  timed.time_added = "2026-11-29T00:00:00Z";
  const NodeTaint changed("virtual-kubelet.io/provider", "somebody", "NoSchedule");
  const NodeTaint gate("spillway.dev/home-has-capacity", "", "NoSchedule");
  CHECK(merge_taints(wanted, {timed, changed, gate, kForeign}) == std::vector<NodeTaint>{timed, gate, kForeign, kOurs});
  CHECK(merge_taints(wanted, {kForeign, kOurs}) == std::vector<NodeTaint>{kForeign, kOurs});
}

TEST_CASE("a profile without the taint takes its own away, and no other") {
  NodeSettings profile = a_profile();
  profile.provider_taint = false;
  const WantedNode wanted = a_wanted(profile);
  CHECK(wanted.taints.empty());
  ObservedNode observed = an_observed(wanted);
  observed.taints = {kForeign, kOurs};
  CHECK(next_step(wanted, observed, false) == NodeStep::kWriteTaints);
  CHECK(merge_taints(wanted, observed.taints) == std::vector<NodeTaint>{kForeign});
}

TEST_CASE("a condition that keeps its status keeps the time of its transition") {
  const WantedNode wanted = a_wanted();
  ObservedNode observed = an_observed(wanted);
  observed.conditions[0].status = "True";  // MemoryPressure
  const auto status = status_to_send(wanted, observed, kNow);
  CHECK(status.conditions[0].last_transition == kNow);
  CHECK(status.conditions[1].last_transition == kNow - 24h);
  CHECK(status.conditions.back().type == "Ready");
  CHECK(status.conditions.back().last_transition == kNow - 24h);
}

TEST_CASE("versions are compared as the numbers that they are, or not at all") {
  CHECK(is_older("9", "10"));
  CHECK_FALSE(is_older("10", "9"));
  CHECK_FALSE(is_older("10", "10"));
  CHECK_FALSE(is_older("", "10"));
  CHECK_FALSE(is_older("9", ""));
  CHECK_FALSE(is_older("9a", "10"));
}
