#include "vk-provider/core/home_book.hpp"

#include <algorithm>
#include <limits>

#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

using Amounts = std::map<std::int64_t, std::int64_t>;

model::Taint provider_taint() {
  return {std::string(model::kTaintProviderKey), std::string(model::kTaintProviderValue), "NoSchedule"};
}

model::Taint gate_taint() { return {std::string(model::kTaintGateKey), "", "NoSchedule"}; }

bool has_resource(const model::HomeNode& node, model::GpuResource resource) {
  return resource == model::GpuResource::kNvidia ? node.has_nvidia : node.has_amd;
}

bool looks_virtual(const model::HomeNode& node) {
  const auto type = node.labels.find("type");
  return (type != node.labels.end() && type->second == "virtual-kubelet") ||
         std::ranges::any_of(node.taints, [](const auto& taint) { return taint.key == model::kTaintProviderKey; });
}

std::int64_t slots_of(const Amounts& nodes, std::int64_t size) {
  std::int64_t slots = 0;
  for (const auto& [gpus, count] : nodes) slots += gpus / size * count;
  return slots;
}

std::int64_t total_of(const Amounts& amounts) {
  std::int64_t total = 0;
  for (const auto& [size, count] : amounts) total += count;
  return total;
}

void move_nodes(Amounts& free, std::int64_t from, std::int64_t to, std::int64_t count) {
  const auto it = free.find(from);
  it->second -= count;
  if (it->second == 0) free.erase(it);
  free[to] += count;
}

/// Puts `count` pods of `size` GPUs where they leave least; says how many found a place.
std::int64_t place(Amounts& free, std::int64_t size, std::int64_t count) {
  std::int64_t placed = 0;
  while (placed < count) {
    const auto it = free.lower_bound(size);
    if (it == free.end()) break;
    const auto [gpus, nodes] = *it;
    const std::int64_t each = gpus / size;
    const std::int64_t full = std::min(nodes, (count - placed) / each);
    if (full > 0) {
      move_nodes(free, gpus, gpus - each * size, full);
      placed += full * each;
    } else {
      move_nodes(free, gpus, gpus - (count - placed) * size, 1);
      placed = count;
    }
  }
  return placed;
}

}  // namespace

HomeBook::HomeBook(HomeClass about) : about_(std::move(about)) {}

// Nodes.

HomeBook::NodeEntry& HomeBook::node_entry(const std::string& name) {
  const auto [it, fresh] = nodes_.try_emplace(name);
  if (fresh) {
    const auto sick = sick_.find(name);
    if (sick != sick_.end()) it->second.sick_asked = sick->second;
  }
  return *it;
}

void HomeBook::drop_if_empty(NodeEntry& entry) {
  if (!entry.second.known && entry.second.pods == 0) nodes_.erase(entry.first);
}

void HomeBook::uncount(Node& node) {
  if (!node.counted) return;
  node.counted = false;
  free_.remove(node.free);
  allocatable_.remove(node.allocatable);
  free_gpus_ -= node.free;
  sick_gpus_ -= node.sick_free;
}

void HomeBook::count(Node& node) {
  if (!node.usable) return;
  node.counted = true;
  // Each node by itself: a broken one (more in use than allocatable) must not eat what another has.
  const std::int64_t unused = std::max<std::int64_t>(0, node.allocatable - node.used);
  node.sick_free = std::min(unused, std::max(node.sick_told, node.sick_asked));
  node.free = unused - node.sick_free;
  free_.add(node.free);
  allocatable_.add(node.allocatable);
  free_gpus_ += node.free;
  sick_gpus_ += node.sick_free;
}

bool HomeBook::put_node(const model::HomeNode& in) {
  Node& node = node_entry(in.name).second;
  node.round = node_round_;
  node.ready = in.ready;
  const bool home = has_resource(in, about_.resource) && !is_virtual(in.name) && !looks_virtual(in) &&
                    selects(about_.home_selector, in.labels);
  const bool usable =
      home && in.ready && !in.unschedulable && !in.deleting && tolerates_all(about_.tolerations, in.taints);
  const std::int64_t allocatable = std::max<std::int64_t>(0, amount_of(in.allocatable, about_.resource));
  const std::int64_t sick = std::max<std::int64_t>(0, in.unhealthy_gpus);
  node.labels = usable ? in.labels : NodeLabels();
  node.taints = usable ? in.taints : std::vector<model::Taint>();
  if (node.known && node.home == home && node.usable == usable && node.allocatable == allocatable &&
      node.sick_told == sick) {
    return false;
  }
  uncount(node);
  home_nodes_ += static_cast<int>(home) - static_cast<int>(node.home);
  node.known = true;
  node.home = home;
  node.usable = usable;
  node.allocatable = allocatable;
  node.sick_told = sick;
  count(node);
  return true;
}

void HomeBook::forget_node(NodeEntry& entry) {
  Node& node = entry.second;
  uncount(node);
  if (node.home) --home_nodes_;
  node.known = node.home = node.usable = node.ready = false;
  node.allocatable = node.sick_told = 0;
  node.labels.clear();
  node.taints.clear();
  drop_if_empty(entry);
}

bool HomeBook::remove_node(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end() || !it->second.known) return false;
  forget_node(*it);
  return true;
}

void HomeBook::end_nodes() {
  std::vector<NodeEntry*> gone;
  for (NodeEntry& entry : nodes_) {
    if (entry.second.known && entry.second.round != node_round_) gone.push_back(&entry);
  }
  for (NodeEntry* entry : gone) forget_node(*entry);
}

bool HomeBook::set_sick(std::map<std::string, std::int64_t> sick) {
  if (sick == sick_) return false;
  const auto apply = [this](const std::string& name, std::int64_t gpus) {
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) return;
    uncount(it->second);
    it->second.sick_asked = gpus;
    count(it->second);
  };
  for (const auto& [name, gpus] : sick_) apply(name, 0);
  sick_ = std::move(sick);
  for (const auto& [name, gpus] : sick_) apply(name, gpus);
  return true;
}

// Pods.

bool HomeBook::is_virtual(const std::string& node_name) const {
  return std::ranges::any_of(about_.virtual_nodes, [&](const auto& node) { return node.name == node_name; });
}

bool HomeBook::is_home(const std::string& node_name) const {
  const auto it = nodes_.find(node_name);
  return it != nodes_.end() && it->second.known && it->second.home;
}

bool HomeBook::is_ready(const std::string& node_name) const {
  const auto it = nodes_.find(node_name);
  return it != nodes_.end() && it->second.known && it->second.ready;
}

bool HomeBook::is_burst(const model::HomePod& pod) const {
  // Who tolerates the gate is not kept at home by it: it says nothing about the need for opening it.
  if (tolerates(pod.tolerations, gate_taint()) || !selects(about_.opt_in, pod.labels)) return false;
  const bool tolerates_us = tolerates(pod.tolerations, provider_taint());
  return std::ranges::any_of(about_.virtual_nodes, [&](const VirtualNode& node) {
    return (tolerates_us || !node.provider_taint) && fits_node(pod, node.name, node.labels);
  });
}

HomeBook::Pod HomeBook::classify(const model::HomePod& in) {
  Pod pod;
  pod.gpus = amount_of(in.gpus, about_.resource);
  if (pod.gpus <= 0 || in.terminal) return pod;
  pod.priority = in.priority;
  if (!in.node_name.empty()) {
    const bool away = is_virtual(in.node_name);
    pod.role = away ? Role::kRunning : Role::kHolds;
    pod.burst = away || is_burst(in);
    if (!away) pod.node = &node_entry(in.node_name);
    return pod;
  }
  // What is being deleted, or held back by a scheduling gate, waits for nothing yet.
  if (in.deleting || in.gated) return pod;
  pod.burst = is_burst(in);
  if (!in.nominated_node.empty() && !is_virtual(in.nominated_node)) {
    pod.role = Role::kHolds;
    pod.node = &node_entry(in.nominated_node);
  } else if (pod.burst) {
    pod.role = Role::kWaits;
    if (in.unschedulable) pod.age = Age::kYoung;
  } else if (!contradict(in.node_selector, about_.home_selector)) {
    pod.role = Role::kAhead;
  }
  return pod;
}

bool HomeBook::put_pod(const model::HomePod& in, base::TimePoint now) {
  const auto it = pods_.find(in.uid);
  if (it == pods_.end() && (amount_of(in.gpus, about_.resource) <= 0 || in.terminal)) return false;
  Pod fresh = classify(in);
  fresh.round = pod_round_;
  fresh.since = now;
  if (fresh.role == Role::kNone) return remove_pod(in.uid);
  if (it == pods_.end()) {
    enter(pods_.emplace(in.uid, fresh).first->second);
    return true;
  }
  Pod& pod = it->second;
  pod.round = pod_round_;
  if (pod.same(fresh)) return false;
  NodeEntry* const left = pod.node;
  leave(pod);
  pod = fresh;
  enter(pod);
  if (left != nullptr) drop_if_empty(*left);
  return true;
}

bool HomeBook::remove_pod(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return false;
  NodeEntry* const left = it->second.node;
  leave(it->second);
  pods_.erase(it);
  if (left != nullptr) drop_if_empty(*left);
  return true;
}

void HomeBook::end_pods() {
  std::vector<std::string> gone;
  for (const auto& [uid, pod] : pods_) {
    if (pod.round != pod_round_) gone.push_back(uid);
  }
  for (const std::string& uid : gone) remove_pod(uid);
}

void HomeBook::enter(Pod& pod) {
  if (pod.node != nullptr) {
    Node& node = pod.node->second;
    uncount(node);
    node.used += pod.gpus;
    ++node.pods;
    count(node);
  }
  if (pod.role == Role::kAhead) ahead_[pod.priority].add(pod.gpus);
  if (pod.burst) {
    ++burst_priorities_[pod.priority];
    burst_sizes_.add(pod.gpus);
  }
  if (pod.age == Age::kYoung) ripening_.emplace(due(pod), &pod);
}

void HomeBook::leave(Pod& pod) {
  if (pod.node != nullptr) {
    Node& node = pod.node->second;
    uncount(node);
    node.used -= pod.gpus;
    --node.pods;
    count(node);
  }
  if (pod.role == Role::kAhead) {
    const auto it = ahead_.find(pod.priority);
    it->second.remove(pod.gpus);
    if (it->second.map().empty()) ahead_.erase(it);
  }
  if (pod.burst) {
    const auto it = burst_priorities_.find(pod.priority);
    if (--it->second == 0) burst_priorities_.erase(it);
    burst_sizes_.remove(pod.gpus);
  }
  if (pod.age == Age::kYoung || pod.age == Age::kPending) ripening_.erase({due(pod), &pod});
  if (pod.age == Age::kPending) pending_.remove(pod.gpus);
  if (pod.age == Age::kStuck) stuck_.remove(pod.gpus);
}

// The account.

base::TimePoint HomeBook::due(const Pod& pod) const {
  return pod.since + (pod.age == Age::kYoung ? about_.pending_after : about_.stuck_after);
}

void HomeBook::ripen(base::TimePoint now) {
  while (!ripening_.empty() && ripening_.begin()->first <= now) {
    Pod& pod = *ripening_.begin()->second;
    ripening_.erase(ripening_.begin());
    if (pod.age == Age::kYoung) {
      pod.age = Age::kPending;
      pending_.add(pod.gpus);
      ripening_.emplace(due(pod), &pod);
    } else {
      pod.age = Age::kStuck;
      pending_.remove(pod.gpus);
      stuck_.add(pod.gpus);
    }
  }
}

base::TimePoint HomeBook::next_change() const {
  return ripening_.empty() ? base::TimePoint::max() : ripening_.begin()->first;
}

/// The largest first, behind those who are ahead: they take what is free before any burst pod does.
std::int64_t HomeBook::fitting(const Amounts& demand) const {
  Amounts free = free_.map();
  for (auto it = demand.rbegin(); it != demand.rend(); ++it) place(free, it->first, it->second);
  std::int64_t fit = 0;
  const Amounts& pods = pending_.map();
  for (auto it = pods.rbegin(); it != pods.rend(); ++it) fit += place(free, it->first, it->second);
  return fit;
}

HomeSight HomeBook::look(base::TimePoint now) {
  ripen(now);
  HomeSight out;
  out.nodes = home_nodes_;
  out.free_gpus = free_gpus_;
  out.sick_gpus = sick_gpus_;
  if (!burst_sizes_.map().empty()) out.slot_gpus = burst_sizes_.map().rbegin()->first;
  out.free_slots = slots_of(free_.map(), out.slot_gpus);
  out.home_slots = slots_of(allocatable_.map(), out.slot_gpus);
  const int lowest = burst_priorities_.empty() ? std::numeric_limits<int>::min() : burst_priorities_.begin()->first;
  Amounts demand;
  for (auto it = ahead_.lower_bound(about_.burst_priority.value_or(lowest)); it != ahead_.end(); ++it) {
    for (const auto& [gpus, pods] : it->second.map()) {
      out.demand_gpus += gpus * pods;
      demand[gpus] += pods;
    }
  }
  out.pending = total_of(pending_.map()) + total_of(stuck_.map());
  out.fitting = pending_.map().empty() ? 0 : fitting(demand);
  return out;
}

// The drain's questions.

std::optional<std::string> HomeBook::place_for(const model::HomePod& pod, const Reserved& reserved) const {
  const std::int64_t gpus = gpus_of(pod);
  std::optional<std::pair<std::int64_t, std::string>> best;
  for (const auto& [name, node] : nodes_) {
    if (!node.counted) continue;
    const auto promised = reserved.find(name);
    const std::int64_t left = node.free - gpus - (promised == reserved.end() ? 0 : promised->second);
    if (left < 0 || (best && std::pair(left, name) >= *best)) continue;
    if (!fits_node(pod, name, node.labels) || !tolerates_all(pod.tolerations, node.taints)) continue;
    best = {left, name};
  }
  return best ? std::optional(best->second) : std::nullopt;
}

std::int64_t HomeBook::free_slots(std::int64_t slot_gpus, const Reserved& reserved) const {
  std::int64_t slots = slots_of(free_.map(), slot_gpus);
  for (const auto& [name, gpus] : reserved) {
    const auto it = nodes_.find(name);
    if (it == nodes_.end() || !it->second.counted) continue;
    const std::int64_t left = std::max<std::int64_t>(0, it->second.free - gpus);
    slots -= it->second.free / slot_gpus - left / slot_gpus;
  }
  return slots;
}

}  // namespace spillway::core
