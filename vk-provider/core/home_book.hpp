// The account of home's GPUs for one gate: what is free, who is ahead, and which burst pods wait.
//
// Pure; owned by control/gate_controller, one per gate, fed from watch events. Keeps a few numbers of each node and of
// each pod that wants this gate's GPUs; a change costs a handful of map operations, whatever the size of the cluster.
// docs/gate.md has the rules. Does not know Prometheus, and decides nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/gate_policy.hpp"
#include "vk-provider/core/node_match.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::core {

/// A node of ours, as far as pods choose by it.
struct VirtualNode {
  VirtualNode() = default;
  std::string name;
  NodeLabels labels;
  bool provider_taint = true;
};

/// What one gate is about.
struct HomeClass {
  HomeClass() = default;
  model::GpuResource resource = model::GpuResource::kNvidia;
  NodeLabels home_selector;                    // empty: every node with the resource
  std::vector<model::Toleration> tolerations;  // of the reference burst pod: what taints of home do not keep it away
  std::vector<VirtualNode> virtual_nodes;
  NodeLabels opt_in;  // labels that a burst pod must carry; empty: none
  /// Pods of this or a higher priority are ahead. Empty: of the lowest priority among the burst pods.
  std::optional<int> burst_priority;
  base::Duration pending_after{std::chrono::seconds(2)};
  /// A pod that waits for so long does not fit, whatever its GPUs say: the scheduler knows more reasons than we do.
  base::Duration stuck_after{std::chrono::minutes(2)};
};

class HomeBook {
 public:
  explicit HomeBook(HomeClass about);
  HomeBook(const HomeBook&) = delete;
  HomeBook& operator=(const HomeBook&) = delete;

  // A complete list: what does not come between begin and end is gone.
  void begin_nodes() { ++node_round_; }
  void end_nodes();
  void begin_pods() { ++pod_round_; }
  void end_pods();

  // True if the account changed.
  bool put_node(const model::HomeNode& node);
  bool remove_node(const std::string& name);
  bool put_pod(const model::HomePod& pod, base::TimePoint now);
  bool remove_pod(const std::string& uid);
  /// By node name; replaces what was said before. Beside it counts the annotation; the larger number wins.
  bool set_sick(std::map<std::string, std::int64_t> sick);

  /// The account at `now`, which never goes back.
  HomeSight look(base::TimePoint now);
  /// When a pod that waits begins to count or to be stuck; never without one.
  base::TimePoint next_change() const;

  // For the drain (core/drain_policy).
  /// GPUs that are promised on home nodes beyond what the book knows, by node name.
  using Reserved = std::map<std::string, std::int64_t>;
  bool is_virtual(const std::string& node_name) const;
  bool is_home(const std::string& node_name) const;
  /// As its Node says.
  bool is_ready(const std::string& node_name) const;
  /// A pod that may run at home and on a node of this gate, and that the gate keeps at home.
  bool is_burst(const model::HomePod& pod) const;
  std::int64_t gpus_of(const model::HomePod& pod) const { return model::amount_of(pod.gpus, about_.resource); }
  /// The home node with the least free GPUs on which this pod could stand; walks all nodes.
  std::optional<std::string> place_for(const model::HomePod& pod, const Reserved& reserved) const;
  /// Free slots of this size, less what is reserved. Does not know who is ahead.
  std::int64_t free_slots(std::int64_t slot_gpus, const Reserved& reserved) const;

  size_t pods() const { return pods_.size(); }
  size_t nodes() const { return nodes_.size(); }

 private:
  /// How many of each number there are: nodes by free GPUs, pods by GPUs.
  class Counts {
   public:
    void add(std::int64_t value) { ++map_[value]; }
    void remove(std::int64_t value) {
      const auto it = map_.find(value);
      if (--it->second == 0) map_.erase(it);
    }
    const std::map<std::int64_t, std::int64_t>& map() const { return map_; }

   private:
    std::map<std::int64_t, std::int64_t> map_;
  };

  struct Node {
    bool known = false;   // the Node was seen; without that only its pods were
    bool home = false;    // belongs to this home
    bool ready = false;   // as it says, also if it is a virtual one
    bool usable = false;  // a burst pod may stand there
    std::int64_t allocatable = 0;
    std::int64_t used = 0;
    std::int64_t sick_told = 0;   // by the annotation
    std::int64_t sick_asked = 0;  // by set_sick
    std::int64_t pods = 0;
    std::uint64_t round = 0;
    NodeLabels labels;  // these two of usable nodes alone
    std::vector<model::Taint> taints;
    // What stands in the sums.
    bool counted = false;
    std::int64_t free = 0;
    std::int64_t sick_free = 0;
  };
  using NodeEntry = std::pair<const std::string, Node>;

  enum class Role : std::uint8_t {
    kNone,     // neither holds nor wants anything here
    kHolds,    // bound to a node of home, or promised to it (nominated)
    kAhead,    // waits, and cannot go to a virtual node
    kWaits,    // a burst pod that is not bound
    kRunning,  // on a virtual node
  };
  enum class Age : std::uint8_t { kNotWaiting, kYoung, kPending, kStuck };

  struct Pod {
    Role role = Role::kNone;
    bool burst = false;  // counts for the size of a slot and the lowest priority
    std::int64_t gpus = 0;
    int priority = 0;
    NodeEntry* node = nullptr;  // with kHolds
    Age age = Age::kNotWaiting;
    base::TimePoint since{};  // of being unschedulable
    std::uint64_t round = 0;

    bool same(const Pod& other) const {
      return role == other.role && burst == other.burst && gpus == other.gpus && priority == other.priority &&
             node == other.node && (age == Age::kNotWaiting) == (other.age == Age::kNotWaiting);
    }
  };

  NodeEntry& node_entry(const std::string& name);
  void drop_if_empty(NodeEntry& entry);
  /// Takes the node out of the sums, or in again.
  void uncount(Node& node);
  void count(Node& node);
  void forget_node(NodeEntry& entry);

  Pod classify(const model::HomePod& pod);
  void enter(Pod& pod);
  void leave(Pod& pod);
  base::TimePoint due(const Pod& pod) const;
  void ripen(base::TimePoint now);
  std::int64_t fitting(const std::map<std::int64_t, std::int64_t>& demand) const;

  HomeClass about_;
  std::unordered_map<std::string, Node> nodes_;
  std::unordered_map<std::string, Pod> pods_;
  std::map<std::string, std::int64_t> sick_;
  std::uint64_t node_round_ = 0;
  std::uint64_t pod_round_ = 0;

  std::int64_t home_nodes_ = 0;
  std::int64_t free_gpus_ = 0;
  std::int64_t sick_gpus_ = 0;
  Counts free_;         // usable nodes by free GPUs
  Counts allocatable_;  // the same by allocatable GPUs
  std::map<int, Counts> ahead_;
  std::map<int, std::int64_t> burst_priorities_;
  Counts burst_sizes_;
  Counts pending_;  // burst pods that wait, by GPUs
  Counts stuck_;
  std::set<std::pair<base::TimePoint, Pod*>> ripening_;
};

}  // namespace spillway::core
