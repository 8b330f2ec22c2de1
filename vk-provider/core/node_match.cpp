#include "vk-provider/core/node_match.hpp"

#include <algorithm>

#include "vk-provider/core/label_selector.hpp"

namespace spillway::core {
namespace {

bool term_matches(const model::NodeTerm& term, const std::string& node_name, const NodeLabels& labels) {
  return !term.empty() && std::ranges::all_of(term, [&](const model::NodeRequirement& requirement) {
    if (requirement.of_field) return requirement.key == "metadata.name" && holds(requirement, &node_name);
    const auto it = labels.find(requirement.key);
    return holds(requirement, it == labels.end() ? nullptr : &it->second);
  });
}

}  // namespace

bool tolerates(const model::Toleration& toleration, const model::Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  const bool exists = toleration.op == model::Toleration::Operator::kExists;
  if (toleration.key.empty()) return exists;
  return toleration.key == taint.key && (exists || toleration.value == taint.value);
}

bool tolerates(const std::vector<model::Toleration>& tolerations, const model::Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const auto& toleration) { return tolerates(toleration, taint); });
}

bool tolerates_all(const std::vector<model::Toleration>& tolerations, const std::vector<model::Taint>& taints) {
  return std::ranges::all_of(taints, [&](const model::Taint& taint) {
    return taint.effect == "PreferNoSchedule" || tolerates(tolerations, taint);
  });
}

bool selects(const NodeLabels& selector, const NodeLabels& labels) {
  return std::ranges::all_of(selector, [&](const auto& entry) {
    const auto it = labels.find(entry.first);
    return it != labels.end() && it->second == entry.second;
  });
}

bool selects(const model::NodeTerm& selector, const NodeLabels& labels) {
  return selector.empty() || term_matches(selector, std::string(), labels);
}

bool contradict(const NodeLabels& a, const NodeLabels& b) {
  return std::ranges::any_of(a, [&](const auto& entry) {
    const auto it = b.find(entry.first);
    return it != b.end() && it->second != entry.second;
  });
}

bool fits_node(const model::HomePod& pod, const std::string& node_name, const NodeLabels& labels) {
  if (!selects(pod.node_selector, labels)) return false;
  if (!pod.has_node_terms) return true;
  return std::ranges::any_of(pod.node_terms,
                             [&](const model::NodeTerm& term) { return term_matches(term, node_name, labels); });
}

}  // namespace spillway::core
