// A cluster in which all is well, for a test that plants one fault in it and wants exactly that finding.
#pragma once

#include <catch2/catch.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/core/doctor.hpp"

namespace spillway::test::doctor {

using namespace std::chrono_literals;
using core::DoctorCheck;
using core::DoctorFacts;
using core::DoctorReport;
using core::DoctorSeverity;

inline const std::string kProvider = "virtual-kubelet.io/provider";
inline const std::string kGate = "spillway.dev/home-has-capacity";

inline model::Toleration tolerate(std::string key, std::string effect = {}) {
  model::Toleration toleration;
  toleration.key = std::move(key);
  toleration.op = model::Toleration::Operator::kExists;
  toleration.effect = std::move(effect);
  return toleration;
}

inline void add_toleration(core::SeenPod& pod, model::Toleration toleration, std::optional<std::int64_t> seconds = {}) {
  pod.pod.tolerations.push_back(std::move(toleration));
  pod.toleration_seconds.push_back(seconds);
}

inline core::SeenPod a_pod(const std::string& name) {
  core::SeenPod pod;
  pod.ns = "team";
  pod.name = name;
  pod.owner_kind = "Deployment";
  pod.owner_name = "api";
  pod.pod.labels = {{"app", "api"}};
  pod.pod.priority = 100;
  add_toleration(pod, tolerate(kProvider));
  add_toleration(pod, tolerate("node.kubernetes.io/not-ready", "NoExecute"), 3600);
  add_toleration(pod, tolerate("node.kubernetes.io/unreachable", "NoExecute"), 3600);
  pod.local_storage = true;
  pod.needs = {{"pods", 1000}, {"requests.nvidia.com/gpu", 1000}};
  return pod;
}

inline core::SeenBudget a_budget(const std::string& name) {
  core::SeenBudget budget;
  budget.ns = "team";
  budget.name = name;
  budget.selector.labels = {{"app", "api"}};
  budget.max_unavailable = "1";
  budget.expected_pods = 3;
  return budget;
}

inline core::SeenNode a_node(const std::string& name) {
  core::SeenNode node;
  node.name = name;
  node.ready = true;
  return node;
}

inline core::SeenPolicy a_policy() {
  core::SeenPolicy policy;
  policy.object = "ConfigMap kube-system/descheduler";
  policy.plugins = {"RemovePodsViolatingNodeTaints"};
  policy.protects_local_storage = false;
  policy.bounded = true;
  return policy;
}

inline core::SeenLease a_lease(const std::string& purpose) {
  core::SeenLease lease;
  lease.object = "Lease of " + purpose;
  lease.purpose = purpose;
  lease.exists = true;
  lease.holder = "host_1";
  lease.age = 4s;
  lease.duration = 30s;
  return lease;
}

inline core::SeenQuota a_quota() {
  core::SeenQuota quota;
  quota.ns = "team";
  quota.name = "all";
  quota.hard = {{"pods", 10'000}, {"requests.nvidia.com/gpu", 4000}};
  quota.used = {{"pods", 3000}, {"requests.nvidia.com/gpu", 3000}};
  return quota;
}

/// A gate by Prometheus, a deployment of three, a descheduler that brings it home, Kueue, and all that they need.
inline DoctorFacts a_healthy_cluster() {
  DoctorFacts facts;
  core::OwnNode own;
  own.name = "burst";
  own.labels = {{"type", "virtual-kubelet"}, {"kubernetes.io/hostname", "burst"}};
  facts.own_nodes = {own};
  facts.gated = true;
  facts.soft_taint = true;
  facts.asks_metrics = true;
  facts.wants_certificate = true;
  facts.account = "system:serviceaccount:spillway-system:spillway";
  facts.training_class = "training";
  facts.caller = "admin";
  facts.nodes = {a_node("home1"), a_node("home2"), a_node("burst")};
  facts.pods = {a_pod("api-1"), a_pod("api-2"), a_pod("api-3")};
  facts.pods->front().pod.node_name = "burst";
  facts.kube_state_metrics = true;
  facts.budgets = {a_budget("api")};
  facts.policies = {a_policy()};
  core::SeenDaemonSet exporter;
  exporter.ns = "kube-system";
  exporter.name = "exporter";
  exporter.pod.tolerations = {tolerate("")};
  exporter.pod.node_selector = {{"type", "metal"}};
  facts.daemon_sets = {exporter};
  facts.quotas = {a_quota()};
  core::SeenFlavor flavor;
  flavor.name = "h100";
  flavor.labels = {{"type", "metal"}};
  facts.flavors = core::Read<core::SeenFlavor>({flavor});
  facts.training_priority = std::optional(10'000);
  facts.leases = {a_lease("the daemon"), a_lease("the gate"), a_lease("node burst")};
  core::SeenSigning signing;
  signing.name = "spillway-spillway-x";
  signing.created = base::WallTime(1h);
  signing.approved = true;
  signing.issued = true;
  facts.signings = {signing};
  core::SeenRight right;
  right.account = "ServiceAccount spillway-system/spillway";
  right.right = core::daemon_rights("spillway", "spillway-system").front();
  right.allowed = true;
  facts.rights = {right};
  facts.clock_ahead = base::Duration(1s);
  core::SeenProvider provider;
  provider.name = "toy";
  provider.offers = 2;
  facts.providers = {provider};
  return facts;
}

/// The one finding of all checks. Fails if there is none, or if there are several.
inline core::DoctorFinding the_finding(const DoctorFacts& facts, DoctorCheck check) {
  core::DoctorFinding found;
  int count = 0;
  for (const DoctorReport& report : core::examine(facts)) {
    for (const core::DoctorFinding& finding : report.findings) {
      INFO(to_string(report.check) << ": " << finding.object << ": " << finding.what);
      CHECK(report.check == check);
      found = finding;
      ++count;
    }
  }
  CHECK(count == 1);
  return found;
}

inline void check_finding(const DoctorFacts& facts, DoctorCheck check, DoctorSeverity severity,
                          const std::string& object, const std::string& what) {
  const core::DoctorFinding found = the_finding(facts, check);
  CHECK(found.severity == severity);
  CHECK(found.object == object);
  CHECK(found.what == what);
}

inline const DoctorReport& report_of(const std::vector<DoctorReport>& reports, DoctorCheck check) {
  return reports.at(static_cast<std::size_t>(check));
}

inline constexpr auto kWarning = DoctorSeverity::kWarning;
inline constexpr auto kError = DoctorSeverity::kError;
inline const std::string kDeployment = "Deployment team/api";

}  // namespace spillway::test::doctor
