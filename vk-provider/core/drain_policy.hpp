// Walks burst pods home, one after the other, while the gate is closed: which pod, when, how, and what then.
//
// Pure: no clock, no I/O. Owned by control/drain_controller, one per gate. A move ends only when the pod is gone and
// what replaces it is Ready at home, or when it failed; until then it holds its place there, so that no place is
// promised twice. It asks for one request at a time of each move and is told the answer; what was done besides it sees
// in the pods themselves. docs/drain.md has the rules.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/drain_roster.hpp"
#include "vk-provider/core/gate_policy.hpp"
#include "vk-provider/core/home_book.hpp"

namespace spillway::core {

/// What to ask of the API server about a pod.
struct DrainOrder {
  DrainOrder() = default;
  enum class Verb : std::uint8_t {
    kDetach,  // take the label pod-template-hash away and leave the note
    kReturn,  // the other way round
    kEvict,
  };
  Verb verb = Verb::kEvict;
  model::HomePod pod;      // at the version that is to be written
  model::DetachNote note;  // for kDetach
};

struct DrainReply {
  DrainReply() = default;
  enum class Answer : std::uint8_t {
    kDone,
    kGone,        // there is no such pod any more
    kConflict,    // somebody wrote it meanwhile
    kBudget,      // its budget forbids it now
    kTwoBudgets,  // more than one budget is about it
    kRefused,     // a right is missing, or nothing of it is allowed
    kFailed,      // no answer, or none that says what happened
  };
  Answer answer = Answer::kFailed;
  std::optional<base::Duration> retry_after;
  std::string message;
};

/// What people should hear of, on the pod.
struct DrainNotice {
  DrainNotice() = default;
  enum class Kind : std::uint8_t { kStarted, kDetached, kDone, kBlocked, kAborted };
  Kind kind = Kind::kStarted;
  model::HomePod pod;
  std::string message;
};

/// How a move ended. A closed set; a metric's label.
enum class DrainEnd : std::uint8_t { kHome, kReturned, kStalled, kAborted, kBlocked, kGone };
std::string_view to_string(DrainEnd end);

struct DrainResult {
  DrainResult() = default;
  DrainMode mode = DrainMode::kEvict;
  DrainEnd end = DrainEnd::kHome;
  base::Duration took{0};
  std::optional<base::Money> price;  // an hour, that is no longer paid with kHome
};

/// What the gate says.
struct DrainSight {
  DrainSight() = default;
  GateDecision gate;
  std::set<std::string> closed_nodes;  // whose taint stands
  bool budgets_known = false;
};

struct DrainStep {
  DrainStep() = default;
  std::vector<DrainOrder> orders;
  std::vector<DrainNotice> notices;
  std::vector<DrainResult> results;
  base::TimePoint next{};  // look again then at the latest
  std::int64_t inflight = 0;
  std::int64_t waiting = 0;  // pods that could be moved and for which home has room beyond the reserve
  std::array<std::int64_t, kDrainBars> barred{};  // pods away by what bars them
};

class DrainPolicy {
 public:
  static constexpr base::Duration kOldest = std::chrono::minutes(30);    // a pod is never detached for longer
  static constexpr base::Duration kSkip = std::chrono::minutes(30);      // after a refusal
  static constexpr base::Duration kReturnsKept = std::chrono::hours(2);  // since the last one
  static constexpr int kMaxReturns = 2;
  static constexpr base::Duration kAdoption =
      std::chrono::minutes(2);  // by its ReplicaSet, of a pod that was given back
  static constexpr int kTries = 5;
  static constexpr base::Duration kTick = std::chrono::seconds(15);

  /// `reserve`: slots that stay free at home. The book must outlive it. No move begins within the interval after `now`:
  /// what an earlier process began may still be under way.
  DrainPolicy(const DrainRules& rules, std::int64_t reserve, const HomeBook& book, base::TimePoint now);

  DrainRoster& roster() { return roster_; }
  /// As DrainRoster's; what a budget forbade and allows again is asked for at the next step.
  void put_budget(model::DisruptionBudget budget, std::int64_t allowed);

  DrainStep step(const DrainSight& sight, base::Now now);
  /// To the order about this pod.
  void on_reply(const std::string& uid, const DrainReply& reply, base::Now now);

 private:
  enum class Phase : std::uint8_t { kDetaching, kStanding, kEvicting, kSettling, kReturning };
  struct Move {
    model::HomePod pod;  // as it was seen last
    DrainMode mode = DrainMode::kEvict;
    Phase phase = Phase::kEvicting;
    std::string place;  // a node of home; empty: none is reserved
    std::string owner_uid;
    std::set<std::string> before;  // pods of the controller that are no replacement
    base::WallTime since{};
    base::TimePoint started{};
    base::TimePoint retry_at{};
    base::TimePoint start_before{};  // last_start_ without this move
    int failures = 0;
    bool resumed = false;        // an earlier process began it
    bool asked = false;          // an order is not answered yet
    bool seen_detached = false;  // by the watch
    bool unwanted = false;       // its ReplicaSet is gone: it is evicted, and nothing takes its place
    base::TimePoint returned_at{};
    std::string why;  // it returns
    DrainEnd returns_as = DrainEnd::kAborted;
    std::optional<DrainEnd> end;
  };
  /// The pod that stands for the one that leaves.
  struct Successor {
    bool home = false;   // bound there
    bool away = false;   // bound to a rented node
    bool ready = false;  // Ready at home
    std::string name;
    std::string node;
  };
  struct Bar {
    DrainBar why = DrainBar::kNone;
    base::TimePoint until{};
    int failures = 0;
  };

  bool closed() const { return sight_.gate.state == GateState::kClosed; }
  /// Nor has a person opened the pod's node.
  bool closed_for(const Move& move) const { return closed() && sight_.closed_nodes.contains(move.pod.node_name); }
  Successor successor_of(const Move& move) const;
  HomeBook::Reserved reserved() const;
  std::int64_t unbound_moves() const;
  std::int64_t spare_slots(const HomeBook::Reserved& reserved) const;
  bool short_of_room() const;

  void take_up_detached();
  void advance(Move& move);
  void advance_detaching(Move& move);
  void advance_standing(Move& move);
  void advance_evicting(Move& move, bool gone);
  void advance_settling(Move& move, bool gone);
  void advance_returning(Move& move, bool gone);
  void await_adoption(Move& move);
  void give_back(Move& move, DrainEnd as, std::string why);
  void on_detach_reply(Move& move, const DrainReply& reply);
  void on_evict_reply(Move& move, const DrainReply& reply);
  void on_return_reply(Move& move, const DrainReply& reply);
  void order(Move& move, DrainOrder::Verb verb);
  void retry(Move& move, const DrainReply& reply);
  base::Duration age_of(const Move& move) const { return now_.steady - move.started; }
  Move* find_move(const std::string& uid);
  bool is_busy(const std::string& owner_uid) const;
  void finish(Move& move, DrainEnd end);
  void start_moves();
  std::int64_t under_way() const;
  bool start(const model::HomePod& pod);
  DrainBar bar_of(const model::HomePod& pod) const;
  void bar(const std::string& key, DrainBar why, base::Duration length);
  void note_stall(const Move& move);
  void note_return(const std::string& owner_uid);
  void tell(DrainNotice::Kind kind, const Move& move, std::string message);
  void count();

  DrainRules rules_;
  std::int64_t reserve_;
  const HomeBook& book_;
  DrainRoster roster_;
  std::deque<Move> moves_;
  std::map<std::string, Bar> bars_;  // by controller, or by pod
  std::map<std::string, std::pair<int, base::TimePoint>> returns_;
  base::TimePoint last_start_{};
  base::TimePoint paused_until_{};
  // Of the step under way.
  DrainSight sight_;
  base::Now now_{};
  DrainStep out_;
};

}  // namespace spillway::core
