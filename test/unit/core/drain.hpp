// Words of the tests of core/drain_*: a home, a rented node, pods on both, and a gate.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "vk-provider/core/drain_policy.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::test {

inline model::Toleration tolerate(std::string key) {
  model::Toleration toleration;
  toleration.key = std::move(key);
  toleration.op = model::Toleration::Operator::kExists;
  return toleration;
}

inline core::HomeClass drain_class() {
  core::HomeClass about;
  core::VirtualNode node;
  node.name = "burst";
  node.labels = {{"type", "virtual-kubelet"}, {"disk", "fast"}};
  about.virtual_nodes = {node};
  return about;
}

inline model::HomeNode home_node(std::string name, std::int64_t gpus = 4) {
  model::HomeNode node;
  node.name = std::move(name);
  node.allocatable.nvidia = gpus;
  node.has_nvidia = true;
  node.ready = true;
  return node;
}

/// Two home nodes of four GPUs and a rented one. Pods belong to ReplicaSets whose UID is their name.
struct DrainWorld {
  explicit DrainWorld(core::DrainRules r = {}) : rules(r) {
    if (rules.mode == core::DrainMode::kOff) rules.mode = core::DrainMode::kEvict;
    book.put_node(home_node("home1"));
    book.put_node(home_node("home2"));
    book.put_node(home_node("burst"));
    now.steady = base::TimePoint(std::chrono::hours(10));
    now.wall = base::WallTime(std::chrono::hours(24 * 20000));
    begin();
    model::DisruptionBudget budget;
    budget.ns = "ns";
    budget.name = "all";
    policy->put_budget(budget, 0);
    pass(rules.interval);
  }

  /// A new process, that knows nothing.
  void begin() { policy = std::make_unique<core::DrainPolicy>(rules, reserve, book, now.steady); }

  /// A burst pod, Ready for an hour if it stands somewhere.
  static model::HomePod pod(const std::string& uid, const std::string& owner, const std::string& node) {
    model::HomePod out;
    out.uid = uid;
    out.gpus.nvidia = 1;
    out.node_name = node;
    out.tolerations = {tolerate("virtual-kubelet.io/provider")};
    out.labels = {{"app", owner}, {std::string(model::kLabelTemplateHash), "h-" + owner}};
    out.drain.ns = "ns";
    out.drain.name = uid;
    out.drain.resource_version = "1";
    out.drain.owner_kind = owner.empty() ? "" : "ReplicaSet";
    out.drain.owner_name = out.drain.owner_uid = owner;
    out.drain.ready = !node.empty();
    return out;
  }
  static model::HomePod detached(model::HomePod pod, base::WallTime since) {
    model::DetachNote note;
    note.hash = pod.drain.draining = pod.labels.at(std::string(model::kLabelTemplateHash));
    note.owner_name = note.owner_uid = pod.drain.owner_uid;
    note.since = since;
    pod.drain.note = note;
    pod.labels.erase(std::string(model::kLabelTemplateHash));
    pod.drain.owner_kind = pod.drain.owner_name = pod.drain.owner_uid = "";
    return pod;
  }

  void put(const model::HomePod& pod) {
    book.put_pod(pod, now.steady);
    policy->roster().put_pod(pod);
  }
  void remove(const std::string& uid) {
    book.remove_pod(uid);
    policy->roster().remove_pod(uid);
  }
  void pass(base::Duration d) {
    now.steady += d;
    now.wall += std::chrono::duration_cast<std::chrono::microseconds>(d);
  }

  core::DrainStep step() {
    core::DrainSight sight;
    sight.gate.state = open ? core::GateState::kOpen : core::GateState::kClosed;
    sight.gate.home = book.look(now.steady);
    sight.gate.free_slots = sight.gate.home.free_slots;
    if (blind) sight.gate.free_slots.reset();
    if (!open) sight.closed_nodes = {"burst"};
    sight.budgets_known = budgets_known;
    core::DrainStep out = policy->step(sight, now);
    for (const auto& notice : out.notices) told.push_back(word(notice.kind) + " " + notice.pod.uid);
    for (const auto& result : out.results) ended.emplace_back(to_string(result.end));
    return out;
  }
  /// The orders of one step, as "evict a".
  std::vector<std::string> asked() {
    std::vector<std::string> out;
    for (const auto& order : step().orders) out.push_back(verb(order.verb) + " " + order.pod.uid);
    return out;
  }
  void reply(const std::string& uid, core::DrainReply::Answer answer,
             std::optional<base::Duration> retry_after = std::nullopt) {
    core::DrainReply out;
    out.answer = answer;
    out.retry_after = retry_after;
    out.message = "because";
    policy->on_reply(uid, out, now);
  }
  bool heard(const std::string& what) const { return std::ranges::find(told, what) != told.end(); }

  static std::string verb(core::DrainOrder::Verb verb) {
    switch (verb) {
      case core::DrainOrder::Verb::kDetach: return "detach";
      case core::DrainOrder::Verb::kReturn: return "return";
      case core::DrainOrder::Verb::kEvict: return "evict";
    }
    return "";
  }
  static std::string word(core::DrainNotice::Kind kind) {
    switch (kind) {
      case core::DrainNotice::Kind::kStarted: return "started";
      case core::DrainNotice::Kind::kDetached: return "detached";
      case core::DrainNotice::Kind::kDone: return "done";
      case core::DrainNotice::Kind::kBlocked: return "blocked";
      case core::DrainNotice::Kind::kAborted: return "aborted";
    }
    return "";
  }

  core::DrainRules rules;
  std::int64_t reserve = 1;
  core::HomeBook book{drain_class()};
  base::Now now{};
  std::unique_ptr<core::DrainPolicy> policy;
  bool open = false;
  bool blind = false;
  bool budgets_known = true;
  std::vector<std::string> told;
  std::vector<std::string> ended;
};

}  // namespace spillway::test
