#include "vk-provider/core/drain_roster.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "vk-provider/model/labels.hpp"

namespace spillway::core {

std::string_view to_string(DrainMode mode) {
  switch (mode) {
    case DrainMode::kOff: return "off";
    case DrainMode::kEvict: return "evict";
    case DrainMode::kSurge: return "surge";
  }
  return "off";
}

std::string_view to_string(DrainBar bar) {
  switch (bar) {
    case DrainBar::kNone: return "none";
    case DrainBar::kKept: return "do-not-drain";
    case DrainBar::kBare: return "bare";
    case DrainBar::kKind: return "kind";
    case DrainBar::kYoung: return "young";
    case DrainBar::kNoBudget: return "no-pdb";
    case DrainBar::kTwoBudgets: return "two-pdbs";
    case DrainBar::kBudget: return "pdb";
    case DrainBar::kRefused: return "refused";
    case DrainBar::kReturned: return "returned";
    case DrainBar::kStalled: return "stalled";
    case DrainBar::kNoRoom: return "no-room";
  }
  return "none";
}

bool can_detach(const model::HomePod& pod) {
  return pod.drain.ready && pod.drain.owner_kind == "ReplicaSet" &&
         pod.labels.contains(std::string(model::kLabelTemplateHash));
}

bool is_detached(const model::HomePod& pod) {
  return !pod.drain.draining.empty() && !pod.labels.contains(std::string(model::kLabelTemplateHash));
}

void DrainRoster::end_pods() {
  std::vector<std::string> gone;
  for (const auto& [uid, entry] : pods_) {
    if (entry.round != round_) gone.push_back(uid);
  }
  for (const std::string& uid : gone) remove_pod(uid);
}

void DrainRoster::put_pod(const model::HomePod& pod) {
  const bool ours = is_away(pod) || (!pod.drain.owner_uid.empty() && book_.is_burst(pod));
  if (!ours || pod.terminal || book_.gpus_of(pod) <= 0) return remove_pod(pod.uid);
  const auto [it, fresh] = pods_.try_emplace(pod.uid);
  Entry& entry = it->second;
  if (!fresh && entry.pod.drain.owner_uid != pod.drain.owner_uid) leave_owner(entry.pod);
  entry.pod = pod;
  entry.round = round_;
  owners_[pod.drain.owner_uid].insert(pod.uid);
}

void DrainRoster::remove_pod(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  leave_owner(it->second.pod);
  pods_.erase(it);
}

void DrainRoster::leave_owner(const model::HomePod& pod) {
  const auto owner = owners_.find(pod.drain.owner_uid);
  owner->second.erase(pod.uid);
  if (owner->second.empty()) owners_.erase(owner);
}

bool DrainRoster::put_budget(model::DisruptionBudget budget, std::int64_t allowed) {
  Budget& entry = budgets_[{budget.ns, budget.name}];
  entry.about = std::move(budget);
  return std::exchange(entry.allowed, allowed) == 0 && allowed > 0;
}

const model::HomePod* DrainRoster::find(const std::string& uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : &it->second.pod;
}

std::vector<std::string> DrainRoster::budgets_of(const model::HomePod& pod) const {
  std::vector<std::string> out;
  for (auto it = budgets_.lower_bound({pod.drain.ns, ""}); it != budgets_.end(); ++it) {
    const model::DisruptionBudget& budget = it->second.about;
    if (budget.ns != pod.drain.ns) break;
    if (!budget.selects_none && selects(budget.selector, pod.labels)) out.push_back(budget.name);
  }
  return out;
}

std::vector<const model::HomePod*> DrainRoster::away() const {
  std::vector<const model::HomePod*> out;
  for (const auto& [uid, entry] : pods_) {
    if (is_away(entry.pod) && !entry.pod.deleting) out.push_back(&entry.pod);
  }
  const auto rank = [](const model::HomePod* pod) {
    const model::DrainFacts& facts = pod->drain;
    const std::int64_t price = facts.price ? facts.price->micros() : -1;
    return std::tuple(facts.rather_not, facts.ready, !facts.pending, -price, facts.created, std::string_view(pod->uid));
  };
  std::ranges::sort(out, [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  return out;
}

std::vector<const model::HomePod*> DrainRoster::leaving() const {
  std::vector<const model::HomePod*> out;
  for (const auto& [uid, entry] : pods_) {
    if (entry.pod.deleting && is_away(entry.pod)) out.push_back(&entry.pod);
  }
  return out;
}

std::vector<const model::HomePod*> DrainRoster::of_owner(const std::string& owner_uid) const {
  std::vector<const model::HomePod*> out;
  const auto it = owners_.find(owner_uid);
  if (owner_uid.empty() || it == owners_.end()) return out;
  for (const std::string& uid : it->second) out.push_back(find(uid));
  return out;
}

DrainBar DrainRoster::bar_of(const model::HomePod& pod, const DrainRules& rules, base::WallTime now) const {
  const model::DrainFacts& facts = pod.drain;
  if (facts.keep) return DrainBar::kKept;
  if (facts.owner_uid.empty()) return DrainBar::kBare;
  // Who tolerates the gate came by choice, and would be replaced by one that comes again.
  if (facts.owner_kind == "DaemonSet" || !book_.is_burst(pod)) return DrainBar::kKind;
  if (facts.evict_anyway) return DrainBar::kNone;
  if (facts.owner_kind == "Job" && !rules.jobs) return DrainBar::kKind;
  // What is not Ready serves nobody, and ends a rental the earlier.
  if (facts.ready && now - facts.ready_since < rules.min_age) return DrainBar::kYoung;
  if (!rules.allow_without_pdb && budgets_of(pod).empty()) return DrainBar::kNoBudget;
  return DrainBar::kNone;
}

}  // namespace spillway::core
