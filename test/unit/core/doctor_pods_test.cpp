// Faults of pods and their budgets.
#include "vk-provider/core/doctor.hpp"

#include "test/unit/core/doctor_cluster.hpp"

namespace core = spillway::core;
using namespace spillway::test::doctor;

TEST_CASE("the doctor finds a workload without a budget") {
  DoctorFacts facts = a_healthy_cluster();
  SECTION("of no budget at all") { facts.budgets->clear(); }
  SECTION("whose budget is of another namespace") { facts.budgets->front().ns = "other"; }
  SECTION("whose budget selects nothing") { facts.budgets->front().selector.nothing = true; }
  check_finding(facts, DoctorCheck::kBudgetMissing, kWarning, kDeployment,
                "has pods that may go to a rented node, and no PodDisruptionBudget");
}

TEST_CASE("pods that nobody moves need no budget") {
  DoctorFacts facts = a_healthy_cluster();
  facts.budgets->clear();
  void (*change)(core::SeenPod&) = nullptr;
  SECTION("of a Job") {
    change = [](core::SeenPod& pod) { pod.owner_kind = "Job"; };
  }
  SECTION("of a DaemonSet") {
    change = [](core::SeenPod& pod) { pod.owner_kind = "DaemonSet"; };
  }
  SECTION("of nobody") {
    change = [](core::SeenPod& pod) { pod.owner_kind.clear(); };
  }
  SECTION("at their end") {
    change = [](core::SeenPod& pod) { pod.pod.terminal = true; };
  }
  SECTION("that cannot come to us") {
    change = [](core::SeenPod& pod) {
      pod.pod.node_name = "home1";
      pod.pod.node_selector = {{"type", "metal"}};
    };
  }
  for (core::SeenPod& pod : *facts.pods) change(pod);
  CHECK(core::check_budget_missing(facts).findings.empty());
}

TEST_CASE("the doctor finds a budget that never allows anything") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenBudget& budget = facts.budgets->front();
  std::string why = "minAvailable is ";
  budget.max_unavailable.clear();
  SECTION("maxUnavailable 0") {
    budget.max_unavailable = "0";
    why = "maxUnavailable is 0";
  }
  SECTION("maxUnavailable 0%") {
    budget.max_unavailable = "0%";
    why = "maxUnavailable is 0%";
  }
  SECTION("as many as there are") {
    budget.min_available = "3";
    why += "3 of 3 pods";
  }
  SECTION("more than there are") {
    budget.min_available = "18";
    why += "18 of 3 pods";
  }
  SECTION("all of them") {
    budget.min_available = "100%";
    why += "100% of 3 pods";
  }
  SECTION("a percentage that rounds up to all") {
    budget.min_available = "67%";
    why += "67% of 3 pods";
  }
  check_finding(facts, DoctorCheck::kBudgetBlocks, kWarning, "PodDisruptionBudget team/api",
                "never allows an eviction: " + why);
}

TEST_CASE("a budget that allows one eviction, or is about other pods, is well") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenBudget& budget = facts.budgets->front();
  budget.max_unavailable.clear();
  budget.min_available = GENERATE(as<std::string>{}, "2", "66%", "0");
  core::SeenBudget other = a_budget("other");
  other.selector.labels = {{"app", "database"}};
  other.max_unavailable = "0";
  facts.budgets->push_back(other);
  CHECK(core::check_budget_blocks(facts).findings.empty());
}

TEST_CASE("the doctor finds two budgets on one pod") {
  DoctorFacts facts = a_healthy_cluster();
  facts.budgets->push_back(a_budget("everything"));
  facts.budgets->back().selector.labels.clear();
  check_finding(facts, DoctorCheck::kBudgetOverlap, kError, kDeployment,
                "2 PodDisruptionBudgets cover pod api-1: api, everything");
}

TEST_CASE("the doctor finds pods that the gate does not keep at home") {
  DoctorFacts facts = a_healthy_cluster();
  std::string what = "tolerates " + kGate;
  SECTION("by its key") { add_toleration(facts.pods->front(), tolerate(kGate, "NoSchedule")); }
  SECTION("by every key") {
    add_toleration(facts.pods->front(), tolerate("", "NoSchedule"));
    what = "tolerates every taint, the gate's too";
  }
  check_finding(facts, DoctorCheck::kGateTolerated, kWarning, kDeployment, what);
}

TEST_CASE("the doctor finds pods that leave soon") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenPod& pod = facts.pods->front();
  std::string seconds = "300";
  SECTION("the default beside the long one: the shortest wins") {
    add_toleration(pod, tolerate("node.kubernetes.io/unreachable", "NoExecute"), 300);
  }
  SECTION("not-ready alone") { pod.toleration_seconds[1] = 300; }
  SECTION("just too short") {
    pod.toleration_seconds[2] = 599;
    seconds = "599";
  }
  SECTION("no toleration") {
    pod.pod.tolerations.resize(1);
    seconds = "0";
  }
  check_finding(facts, DoctorCheck::kShortToleration, kWarning, kDeployment,
                "its pods leave a node that is not ready or unreachable after " + seconds + " s");
}

TEST_CASE("pods that stay long enough or for ever are well") {
  DoctorFacts facts = a_healthy_cluster();
  facts.pods->front().toleration_seconds = {std::nullopt, std::nullopt, 600};
  CHECK(core::check_short_toleration(facts).findings.empty());
}

TEST_CASE("the doctor finds a quota without room for one more pod") {
  DoctorFacts facts = a_healthy_cluster();
  std::string what = "pods";
  SECTION("of pods") { facts.quotas->front().used["pods"] = 10'000; }
  SECTION("of GPUs") {
    facts.quotas->front().used["requests.nvidia.com/gpu"] = 3001;
    what = "requests.nvidia.com/gpu";
  }
  check_finding(facts, DoctorCheck::kQuota, kWarning, "ResourceQuota team/all",
                "has no room in " + what + " for one more pod like api-1");
  facts.quotas->front().ns = "other";
  CHECK(core::check_quota(facts).findings.empty());
}

TEST_CASE("the doctor finds a gang that may be torn apart") {
  DoctorFacts facts = a_healthy_cluster();
  facts.pods->back().gang = "llm";
  check_finding(facts, DoctorCheck::kGang, kError, kDeployment,
                "tolerates the provider taint, and its pods are scheduled as group llm");
}

TEST_CASE("the doctor finds training that may leave home") {
  DoctorFacts facts = a_healthy_cluster();
  facts.pods->back().pod.priority = 10'000;
  check_finding(facts, DoctorCheck::kTraining, kWarning, kDeployment,
                "tolerates the provider taint with priority 10000, that of training or more");
}

TEST_CASE("a workload is told once, whatever the number of its pods") {
  DoctorFacts facts = a_healthy_cluster();
  for (core::SeenPod& pod : *facts.pods) pod.gang = "llm";
  facts.pods->push_back(a_pod("lonely"));
  facts.pods->back().owner_kind.clear();
  facts.pods->back().gang = "llm";
  const auto findings = core::check_gang(facts).findings;
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].object == kDeployment);
  CHECK(findings[1].object == "Pod team/lonely");
}
