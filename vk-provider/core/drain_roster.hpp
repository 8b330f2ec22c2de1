// Which pods a drain may move home, in which order, and which budgets are about them.
//
// Pure; owned by core/drain_policy, one per gate, fed from watch events. Keeps the burst pods of the gate, wherever
// they stand: those away are what is moved, those at home are what they are replaced by. docs/drain.md has the rules.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/drain_rules.hpp"
#include "vk-provider/core/home_book.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::core {

/// Why a pod away is not moved now. A closed set; a metric's label.
enum class DrainBar : std::uint8_t {
  kNone,
  kKept,        // spillway.dev/do-not-drain
  kBare,        // without a controller: nobody would make another one
  kKind,        // of a DaemonSet, or of a Job without `jobs`
  kYoung,       // not Ready for minAge yet
  kNoBudget,    // no PodDisruptionBudget is about it
  kTwoBudgets,  // more than one is: the API server refuses to evict it
  kBudget,      // its budget forbids it now
  kRefused,     // the API server refuses it: a right is missing, or the budget is broken
  kStalled,     // what replaces pods of its controller does not become Ready at home
  kReturned,    // what replaced pods of its controller came back to a rented node
  kNoRoom,      // no home node has room for it
};
std::string_view to_string(DrainBar bar);
inline constexpr size_t kDrainBars = 12;

class DrainRoster {
 public:
  /// The book must outlive it.
  explicit DrainRoster(const HomeBook& book) : book_(book) {}
  DrainRoster(const DrainRoster&) = delete;
  DrainRoster& operator=(const DrainRoster&) = delete;

  // A complete list: what does not come between begin and end is gone.
  void begin_pods() { ++round_; }
  void end_pods();
  void put_pod(const model::HomePod& pod);
  void remove_pod(const std::string& uid);
  void begin_budgets() { budgets_.clear(); }
  /// `allowed`: how many evictions it allows now. True if it has allowed none before.
  bool put_budget(model::DisruptionBudget budget, std::int64_t allowed);
  void remove_budget(const std::string& ns, const std::string& name) { budgets_.erase({ns, name}); }

  /// Null if it is gone.
  const model::HomePod* find(const std::string& uid) const;
  bool is_away(const model::HomePod& pod) const { return book_.is_virtual(pod.node_name); }
  /// Names of the budgets that are about the pod.
  std::vector<std::string> budgets_of(const model::HomePod& pod) const;

  /// All pods on rented nodes that neither end nor are being deleted, those to be moved first in front: what is
  /// Pending or not Ready, then the dearest, then the oldest; what would rather not be evicted last.
  std::vector<const model::HomePod*> away() const;
  /// Pods on rented nodes that somebody is deleting.
  std::vector<const model::HomePod*> leaving() const;
  /// Pods of a controller.
  std::vector<const model::HomePod*> of_owner(const std::string& owner_uid) const;

  /// What bars the pod by itself, whatever else is going on.
  DrainBar bar_of(const model::HomePod& pod, const DrainRules& rules, base::WallTime now) const;

 private:
  struct Entry {
    model::HomePod pod;
    std::uint64_t round = 0;
  };
  struct Budget {
    model::DisruptionBudget about;
    std::int64_t allowed = 0;
  };

  void leave_owner(const model::HomePod& pod);

  const HomeBook& book_;
  std::unordered_map<std::string, Entry> pods_;
  std::map<std::string, std::set<std::string>> owners_;  // controller to UIDs
  std::map<std::pair<std::string, std::string>, Budget> budgets_;
  std::uint64_t round_ = 0;
};

/// It can be taken from its controller, which then makes another one: a Ready pod of a ReplicaSet.
bool can_detach(const model::HomePod& pod);
/// It was taken from its ReplicaSet: the note stands, and the label does not.
bool is_detached(const model::HomePod& pod);

}  // namespace spillway::core
