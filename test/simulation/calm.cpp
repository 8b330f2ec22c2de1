#include "test/simulation/calm.hpp"

#include <algorithm>
#include <set>

#include "test/simulation/shapes.hpp"

namespace spillway::simulation {
namespace {

std::string check_pod(const Facts& facts, const Users& users, const PodFacts& pod, bool scarce) {
  const std::string who = "pod " + pod.name;
  const auto instances = facts.instances_of(pod.uid);
  if (pod.deleting) return who + " is still being deleted";
  if (instances.size() > 1) return who + " has " + std::to_string(instances.size()) + " instances";
  switch (pod.phase) {
    case Phase::kTerminal:
      if (!instances.empty() && !instances[0]->exited) return who + " has ended, but its instance has not";
      return {};
    case Phase::kRunning: return instances.size() == 1 ? std::string() : who + " runs without an instance";
    case Phase::kNone:
    case Phase::kPending: break;
  }
  const Course course = shapes().at(users.owners().at(static_cast<size_t>(pod.owner)).shape).course;
  const bool nothing_to_buy = pod.waits_for == "NoCapacity" || pod.waits_for == "BudgetExceeded";
  if (course == Course::kWaits || (scarce && nothing_to_buy)) return {};
  if (course == Course::kFails && pod.waits_for == "LaunchBackOff") return {};
  return who + " is still pending: " + pod.waits_for;
}

}  // namespace

std::string unsettled(const Facts& facts, const Users& users, bool scarce) {
  scarce = scarce ||
           std::ranges::any_of(users.owners(), [](const auto& owner) { return shapes().at(owner.shape).says_scarce; });
  for (const auto& [key, instance] : facts.instances()) {
    if (instance.foreign) continue;
    const PodFacts* pod = facts.find_pod(instance.uid);
    if (pod == nullptr || pod->gone) return "instance " + instance.id + " has no pod";
    if (instance.over_cap && !instance.ending && !instance.exited)
      return "instance " + instance.id + " costs more than the cap";
  }
  for (const auto& [order, uid] : facts.living()) {
    if (std::string wrong = check_pod(facts, users, *facts.find_pod(uid), scarce); !wrong.empty()) return wrong;
  }
  return {};
}

std::string remains(const Facts& facts) {
  if (!facts.living().empty()) return "pod " + facts.find_pod(facts.living().begin()->second)->name + " is still there";
  for (const auto& [key, instance] : facts.instances()) {
    if (!instance.foreign) return "instance " + instance.id + " is still there";
  }
  return {};
}

std::string still_billed(CloudSite& site, base::TimePoint now) {
  std::set<std::string> foreign;
  for (const auto& entry : site.cloud.audit(now).instances) {
    if (entry.foreign) foreign.insert(entry.id);
  }
  for (const auto& line : site.cloud.invoice(now)) {
    if (line.running && !foreign.contains(line.instance)) return site.name + " still bills for " + line.instance;
  }
  return {};
}

}  // namespace spillway::simulation
