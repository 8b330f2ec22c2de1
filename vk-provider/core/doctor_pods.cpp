// Checks of the pods that run on our nodes, or may come to them.
#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "vk-provider/core/doctor.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

constexpr std::int64_t kShortestToleration = 600;  // seconds

std::string name_of(const SeenPod& pod) { return pod.ns + "/" + pod.name; }

/// What people look after: the controller, or the pod itself without one.
std::string workload_of(const SeenPod& pod) {
  return pod.owner_kind.empty() ? "Pod " + name_of(pod) : pod.owner_kind + " " + pod.ns + "/" + pod.owner_name;
}

/// Pods of DaemonSets cost nothing and go nowhere; what has ended does not matter any more.
bool counts(const SeenPod& pod) { return pod.owner_kind != "DaemonSet" && !pod.pod.terminal && !pod.pod.deleting; }

/// Those that the scheduler may put on one of our nodes, or has.
bool may_burst(const SeenPod& pod, const DoctorFacts& facts) {
  return std::ranges::any_of(facts.own_nodes, [&](const OwnNode& node) {
    return pod.pod.node_name == node.name || fits_node(pod.pod, node.name, node.labels);
  });
}

/// Calls f with the first such pod of each workload, in the order of the workloads' names.
void each_workload(const DoctorFacts& facts, const std::function<bool(const SeenPod&)>& is_meant,
                   const std::function<void(const std::string&, const SeenPod&)>& f) {
  std::map<std::string, const SeenPod*> found;
  for (const SeenPod& pod : *facts.pods) {
    if (counts(pod) && may_burst(pod, facts) && is_meant(pod)) found.try_emplace(workload_of(pod), &pod);
  }
  for (const auto& [workload, pod] : found) f(workload, *pod);
}

bool covers(const SeenBudget& budget, const SeenPod& pod) {
  return budget.ns == pod.ns && matches(budget.selector, pod.pod.labels);
}

/// Of `50%`; empty if it is no percentage.
std::optional<std::int64_t> percent_of(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, value);
  return error == std::errc() && end == text.data() + text.size() - 1 ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Why it allows no eviction even while all of its pods are healthy; empty if it does.
std::string why_it_blocks(const SeenBudget& budget, std::int64_t pods) {
  constexpr std::int64_t kWhole = 100;
  if (budget.max_unavailable == "0" || budget.max_unavailable == "0%") {
    return "maxUnavailable is " + budget.max_unavailable;
  }
  if (budget.min_available.empty()) return "";
  std::int64_t least = number_of(budget.min_available).value_or(0);
  // Kubernetes rounds up, and so 99% of three are three.
  if (const auto percent = percent_of(budget.min_available)) least = (*percent * pods + kWhole - 1) / kWhole;
  if (least < pods || least == 0) return "";
  return "minAvailable is " + budget.min_available + " of " + std::to_string(pods) + " pods";
}

model::Taint taint(std::string_view key, std::string_view effect, std::string_view value = {}) {
  return {std::string(key), std::string(value), std::string(effect)};
}

/// How long the pod stays on a node with this NoExecute taint; empty: for ever. The smallest that matches wins.
std::optional<std::int64_t> stays(const SeenPod& pod, std::string_view key) {
  const model::Taint wanted = taint(key, "NoExecute");
  std::optional<std::int64_t> least;
  bool tolerated = false;
  for (std::size_t i = 0; i < pod.pod.tolerations.size(); ++i) {
    if (!tolerates(pod.pod.tolerations[i], wanted)) continue;
    tolerated = true;
    if (i >= pod.toleration_seconds.size() || !pod.toleration_seconds[i]) continue;
    const std::int64_t seconds = std::max<std::int64_t>(*pod.toleration_seconds[i], 0);
    least = std::min(least.value_or(seconds), seconds);
  }
  return tolerated ? least : 0;
}

bool tolerates_provider(const SeenPod& pod) {
  return tolerates(pod.pod.tolerations, taint(model::kTaintProviderKey, "NoSchedule", model::kTaintProviderValue));
}

}  // namespace

DoctorReport check_budget_missing(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kBudgetMissing);
  if (!out.has(facts.pods) || !out.has(facts.budgets)) return out;
  const auto is_bare = [&](const SeenPod& pod) {
    // A pod that nobody makes anew is never moved, and one of a Job serves nobody.
    if (pod.owner_kind.empty() || pod.owner_kind == "Job") return false;
    return std::ranges::none_of(*facts.budgets, [&](const SeenBudget& budget) { return covers(budget, pod); });
  };
  each_workload(facts, is_bare, [&](const std::string& workload, const SeenPod&) {
    out.warn(workload, "has pods that may go to a rented node, and no PodDisruptionBudget");
  });
  return out;
}

DoctorReport check_budget_blocks(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kBudgetBlocks);
  if (!out.has(facts.pods) || !out.has(facts.budgets)) return out;
  for (const SeenBudget& budget : *facts.budgets) {
    const auto pods = std::ranges::count_if(
        *facts.pods, [&](const SeenPod& pod) { return counts(pod) && may_burst(pod, facts) && covers(budget, pod); });
    if (pods == 0) continue;
    const std::string why = why_it_blocks(budget, budget.expected_pods > 0 ? budget.expected_pods : pods);
    if (!why.empty())
      out.warn("PodDisruptionBudget " + budget.ns + "/" + budget.name, "never allows an eviction: " + why);
  }
  return out;
}

DoctorReport check_budget_overlap(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kBudgetOverlap);
  if (!out.has(facts.pods) || !out.has(facts.budgets)) return out;
  const auto covering = [&](const SeenPod& pod) {
    std::vector<std::string> names;
    for (const SeenBudget& budget : *facts.budgets) {
      if (covers(budget, pod)) names.push_back(budget.name);
    }
    return names;
  };
  each_workload(
      facts, [&](const SeenPod& pod) { return covering(pod).size() > 1; },
      [&](const std::string& workload, const SeenPod& pod) {
        const auto names = covering(pod);
        out.fail(workload, std::to_string(names.size()) + " PodDisruptionBudgets cover pod " + pod.name + ": " +
                               names[0] + ", " + names[1]);
      });
  return out;
}

DoctorReport check_gate_tolerated(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kGateTolerated);
  if (!out.has(facts.pods)) return out;
  const model::Taint gate = taint(model::kTaintGateKey, "NoSchedule");
  each_workload(
      facts, [&](const SeenPod& pod) { return tolerates(pod.pod.tolerations, gate); },
      [&](const std::string& workload, const SeenPod& pod) {
        const bool named = std::ranges::any_of(pod.pod.tolerations, [&](const auto& t) { return t.key == gate.key; });
        out.warn(workload, named ? "tolerates " + gate.key : "tolerates every taint, the gate's too");
      });
  return out;
}

DoctorReport check_short_toleration(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kShortToleration);
  if (!out.has(facts.pods)) return out;
  const auto least = [](const SeenPod& pod) {
    const auto not_ready = stays(pod, "node.kubernetes.io/not-ready");
    const auto unreachable = stays(pod, "node.kubernetes.io/unreachable");
    return !not_ready ? unreachable : !unreachable ? not_ready : std::min(not_ready, unreachable);
  };
  each_workload(
      facts, [&](const SeenPod& pod) { return least(pod).value_or(kShortestToleration) < kShortestToleration; },
      [&](const std::string& workload, const SeenPod& pod) {
        out.warn(workload, "its pods leave a node that is not ready or unreachable after " +
                               std::to_string(least(pod).value_or(0)) + " s");
      });
  return out;
}

DoctorReport check_quota(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kQuota);
  if (!out.has(facts.pods) || !out.has(facts.quotas)) return out;
  std::set<std::string> told;
  each_workload(
      facts, [](const SeenPod& pod) { return !pod.owner_kind.empty(); },
      [&](const std::string&, const SeenPod& pod) {
        for (const SeenQuota& quota : *facts.quotas) {
          if (quota.ns != pod.ns || told.contains(quota.ns + "/" + quota.name)) continue;
          for (const auto& [what, hard] : quota.hard) {
            const auto need = pod.needs.find(what);
            const auto used = quota.used.find(what);
            if (need == pod.needs.end() || used == quota.used.end() || used->second + need->second <= hard) continue;
            told.insert(quota.ns + "/" + quota.name);
            out.warn("ResourceQuota " + quota.ns + "/" + quota.name,
                     "has no room in " + what + " for one more pod like " + pod.name);
            break;
          }
        }
      });
  return out;
}

DoctorReport check_gang(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kGang);
  if (!out.has(facts.pods)) return out;
  each_workload(
      facts, [](const SeenPod& pod) { return !pod.gang.empty() && tolerates_provider(pod); },
      [&](const std::string& workload, const SeenPod& pod) {
        out.fail(workload, "tolerates the provider taint, and its pods are scheduled as group " + pod.gang);
      });
  return out;
}

DoctorReport check_training(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kTraining);
  if (!out.has(facts.training_priority)) return out;
  if (!*facts.training_priority) {
    out.skip("there is no PriorityClass " + facts.training_class + "; name yours with --training-class");
    return out;
  }
  if (!out.has(facts.pods)) return out;
  const int training = **facts.training_priority;
  each_workload(
      facts, [&](const SeenPod& pod) { return pod.pod.priority >= training && tolerates_provider(pod); },
      [&](const std::string& workload, const SeenPod& pod) {
        out.warn(workload, "tolerates the provider taint with priority " + std::to_string(pod.pod.priority) +
                               ", that of " + facts.training_class + " or more");
      });
  return out;
}

}  // namespace spillway::core
