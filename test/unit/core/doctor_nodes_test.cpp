// Faults of nodes, and of deschedulers.
#include "vk-provider/core/doctor.hpp"

#include "test/unit/core/doctor_cluster.hpp"

namespace core = spillway::core;
using namespace spillway::test::doctor;

TEST_CASE("the doctor finds a policy that fights") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenPolicy& policy = facts.policies->front();
  const auto plugin = GENERATE(as<std::string>{}, "RemoveDuplicates", "LowNodeUtilization", "HighNodeUtilization",
                               "RemovePodsViolatingTopologySpreadConstraint");
  policy.plugins = {plugin};
  check_finding(facts, DoctorCheck::kPolicyFights, kError, policy.object, plugin + " looks at node burst");
  policy.nodes = *core::parse_label_selector("type!=virtual-kubelet");
  CHECK(core::worst_of(core::examine(facts)) == DoctorSeverity::kOk);
}

TEST_CASE("the doctor finds a policy that drains by the soft taint") {
  DoctorFacts facts = a_healthy_cluster();
  facts.policies->front().soft_taints = true;
  check_finding(facts, DoctorCheck::kPolicyFights, kError, facts.policies->front().object,
                "includePreferNoSchedule evicts pods from node burst by the soft taint, which never goes");
  facts.soft_taint = false;
  CHECK(core::check_policy_fights(facts).findings.empty());
}

TEST_CASE("the doctor says that it cannot read a policy") {
  DoctorFacts facts = a_healthy_cluster();
  facts.policies->front().problem = "cannot be read: line 3: nonsense";
  facts.policies->front().plugins = {"RemoveDuplicates"};
  check_finding(facts, DoctorCheck::kPolicyFights, kWarning, facts.policies->front().object,
                "cannot be read: line 3: nonsense");
}

TEST_CASE("the doctor finds a policy that leaves less than two Ready nodes") {
  DoctorFacts facts = a_healthy_cluster();
  std::string left = "1";
  SECTION("by its selector") {
    facts.nodes->back().labels = {{"type", "virtual-kubelet"}};
    facts.policies->front().nodes = *core::parse_label_selector("type=virtual-kubelet");
  }
  SECTION("because they are not ready") {
    for (core::SeenNode& node : *facts.nodes) node.ready = false;
    left = "0";
  }
  check_finding(facts, DoctorCheck::kPolicyNodes, kWarning, facts.policies->front().object,
                "its nodeSelector leaves " + left + " Ready nodes");
}

TEST_CASE("the doctor finds a policy that protects pods with an emptyDir") {
  DoctorFacts facts = a_healthy_cluster();
  facts.policies->front().protects_local_storage = true;
  check_finding(facts, DoctorCheck::kPolicyLocalStorage, kWarning, facts.policies->front().object,
                "never moves pods with an emptyDir, such as team/api-1");
  for (core::SeenPod& pod : *facts.pods) pod.local_storage = false;
  CHECK(core::check_policy_local_storage(facts).findings.empty());
}

TEST_CASE("the doctor finds a policy without a limit") {
  DoctorFacts facts = a_healthy_cluster();
  facts.policies->front().bounded = false;
  check_finding(facts, DoctorCheck::kPolicyUnbounded, kWarning, facts.policies->front().object,
                "may evict all pods of a node in one cycle: maxNoOfPodsToEvictPerNode is not set");
}

TEST_CASE("the doctor finds a DaemonSet that is on our node because it tolerates everything") {
  DoctorFacts facts = a_healthy_cluster();
  facts.daemon_sets->front().pod.node_selector.clear();
  check_finding(facts, DoctorCheck::kDaemonSets, kWarning, "DaemonSet kube-system/exporter",
                "tolerates every taint, and so has a pod on node burst");
  facts.daemon_sets->front().pod.tolerations = {tolerate("", "NoExecute"), tolerate(kProvider)};
  CHECK(core::check_daemon_sets(facts).findings.empty());
}

TEST_CASE("the doctor finds zone labels on some nodes only") {
  DoctorFacts facts = a_healthy_cluster();
  facts.nodes->back().labels["topology.kubernetes.io/zone"] = "cloud";
  check_finding(facts, DoctorCheck::kZoneLabels, kWarning, "nodes",
                "some have a zone label (burst) and some have none (home1, home2)");
  for (core::SeenNode& node : *facts.nodes) node.labels["topology.kubernetes.io/zone"] = "dc";
  CHECK(core::check_zone_labels(facts).findings.empty());
}

TEST_CASE("the doctor finds a flavor that counts our node") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenFlavor& flavor = facts.flavors->value().front();
  SECTION("by its labels") { flavor.labels = {{"type", "virtual-kubelet"}}; }
  SECTION("because it takes every node of a topology") {
    flavor.labels.clear();
    flavor.topology = true;
  }
  check_finding(facts, DoctorCheck::kKueueFlavors, kError, "ResourceFlavor h100", "its nodeLabels match node burst");
}

TEST_CASE("a flavor without labels and topology counts no node") {
  DoctorFacts facts = a_healthy_cluster();
  facts.flavors->value().front().labels.clear();
  CHECK(core::check_kueue_flavors(facts).findings.empty());
}

TEST_CASE("the doctor finds that kube-state-metrics is not there") {
  DoctorFacts facts = a_healthy_cluster();
  facts.kube_state_metrics = false;
  check_finding(facts, DoctorCheck::kStateMetrics, kWarning, "kube-state-metrics",
                "no pod of it is there, and a gate asks Prometheus");
}
