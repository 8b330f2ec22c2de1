// Whether burst pods may leave home: one capacity gate, as a decision over plain values.
//
// Pure: no clock, no I/O. Owned by control/gate_controller, one per gate (a class of GPUs). It opens fast on need and
// slowly on level, closes slowly on surplus, and never takes "no data" for zero. docs/gate.md
// has the rules. Time-outs run on the monotonic clock: a jump of the wall clock moves nothing but the end of
// an override.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

/// Closed: the taint stands, pods go home. Open: it does not.
enum class GateState : std::uint8_t { kClosed, kOpen };
std::string_view to_string(GateState state);

/// Which rule made the state what it is.
enum class GateReason : std::uint8_t {
  kStarted,  // closed, because nothing was decided yet
  kAdopted,  // open, because an earlier process of ours had opened it
  kNeed,     // opened: pods wait that home has no room for
  kLevel,    // opened: too few slots are free at home
  kSurplus,  // closed: enough slots are free at home
  kBlind,    // opened or closed by onBlind, after holdFor without data
};
std::string_view to_string(GateReason reason);

/// Why nothing can be decided now.
enum class GateBlindness : std::uint8_t {
  kNone,
  kHomeUnknown,     // the lists of nodes and pods are not complete, or the watches are broken off
  kNoHome,          // not one home node is known, and allowNoHome is false
  kNoPoll,          // Prometheus was not asked yet, or one or two answers were no data
  kPrometheusLost,  // Prometheus alone is to decide, and has no data
};
std::string_view to_string(GateBlindness blindness);

enum class GateMode : std::uint8_t { kKubernetes, kPrometheus, kPrometheusThenKubernetes };
enum class OnBlind : std::uint8_t { kHold, kOpen, kClose };

/// Slots are room for one burst pod each.
struct GateRules {
  GateRules() = default;
  GateMode mode = GateMode::kKubernetes;
  bool cross_check = true;  // compare both sources, where there are two
  base::Duration open_after{std::chrono::seconds(3)};
  base::Duration open_level_after{std::chrono::seconds(15)};
  base::Duration close_after{std::chrono::seconds(300)};
  base::Duration min_open{std::chrono::seconds(600)};
  base::Duration min_closed{std::chrono::seconds(60)};
  std::int64_t open_below = 1;
  /// Empty: max(2, a tenth of home's slots, reserve + 2, open_below + reserve + 1), but not more than home has.
  std::optional<std::int64_t> close_at;
  std::int64_t reserve = 1;  // slots that a drain home leaves free
  bool allow_no_home = false;
  OnBlind on_blind = OnBlind::kHold;
  base::Duration hold_for{std::chrono::minutes(10)};
  bool operator==(const GateRules&) const = default;
};

/// The lowest close_at that leaves room between opening and closing.
inline std::int64_t lowest_close_at(const GateRules& rules) { return rules.open_below + rules.reserve + 1; }

/// Home as the objects of the API server show it (core/home_book).
struct HomeSight {
  HomeSight() = default;
  std::int64_t nodes = 0;      // that belong to this home, usable or not
  std::int64_t slot_gpus = 1;  // GPUs of one slot: those of the largest burst pod
  std::int64_t free_gpus = 0;  // on usable nodes, without sick ones
  std::int64_t sick_gpus = 0;  // that would be free, but are left out because they are sick
  std::int64_t free_slots = 0;
  std::int64_t home_slots = 0;   // of the usable nodes if they were empty
  std::int64_t demand_gpus = 0;  // that pods ahead of the burst pods wait for
  std::int64_t pending = 0;      // burst pods that wait
  std::int64_t fitting = 0;      // of these, how many fit home
  bool operator==(const HomeSight&) const = default;
};

/// One answer of Prometheus: free GPUs at home, or the reason why it is no data (of a closed set; a metric's label).
using GatePoll = std::expected<double, std::string>;

/// What people should hear of, each when it begins.
enum class GateNotice : std::uint8_t {
  kOpened,
  kClosed,
  kDataMissing,
  kDataRestored,
  kDisagreement,
  kAgreement,
  kFlapping,
  kNoHome,
  kHomeUnknown,
  kHomeKnown,
};

struct GateDecision {
  GateDecision() = default;
  GateState state = GateState::kClosed;
  GateReason reason = GateReason::kStarted;
  GateBlindness blindness = GateBlindness::kNone;
  std::vector<GateNotice> notices;
  base::TimePoint next{};        // look again then at the latest
  base::TimePoint rule_since{};  // since when the rule held that changed the state now
  // What it was decided by. Without a value where there was no data.
  std::optional<std::int64_t> free_slots_kubernetes;  // less the demand ahead
  std::optional<std::int64_t> free_slots_prometheus;
  std::optional<std::int64_t> free_slots;  // that counted
  std::int64_t close_at = 0;
  HomeSight home;
};

class GatePolicy {
 public:
  /// Evaluated at least so often.
  static constexpr base::Duration kTick = std::chrono::seconds(15);
  /// After a longer silence the timers of the rules begin again: nobody knows what was between.
  static constexpr base::Duration kLongestGap = std::chrono::seconds(60);
  /// An answer of Prometheus counts for so long.
  static constexpr base::Duration kPollCounts = std::chrono::seconds(60);
  /// What a need waits of min_closed at most.
  static constexpr base::Duration kNeedWaits = std::chrono::seconds(10);
  /// So many answers in a row change whether Prometheus is believed.
  static constexpr int kPollsToTurn = 3;
  static constexpr base::Duration kDisagreeAfter = std::chrono::minutes(5);
  static constexpr base::Duration kFlapWindow = std::chrono::hours(1);
  static constexpr size_t kFlapChanges = 6;
  static constexpr base::Duration kFlapQuiet = std::chrono::hours(2);
  static constexpr base::Duration kLongestStretch = std::chrono::hours(1);

  explicit GatePolicy(const GateRules& rules);

  /// Goes on from what an earlier process left behind; to be called before anything else.
  void adopt(GateState state, base::TimePoint since);
  void on_poll(const GatePoll& poll, base::TimePoint now);
  /// Without a value: home is not known.
  GateDecision evaluate(const std::optional<HomeSight>& home, base::TimePoint now);

  GateState state() const { return state_; }
  base::TimePoint since() const { return since_; }
  /// Prometheus is not believed at present.
  bool prometheus_lost() const { return lost_; }
  const GateRules& rules() const { return rules_; }

 private:
  using Since = std::optional<base::TimePoint>;

  void forget_timers();
  bool poll_counts(base::TimePoint now) const;
  GateBlindness choose_source(GateDecision& out, base::TimePoint now);
  void cross_check(GateDecision& out, base::TimePoint now);
  void note_blindness(GateDecision& out, base::TimePoint now);
  void apply_on_blind(GateDecision& out, base::TimePoint now);
  void run_timers(const GateDecision& out, base::TimePoint now);
  void decide(GateDecision& out, base::TimePoint now);
  void decide_closed(GateDecision& out, base::TimePoint now);
  void change(GateState to, GateReason reason, base::TimePoint rule_since, GateDecision& out, base::TimePoint now);
  void relax(base::TimePoint now);
  base::Duration stretched(base::Duration d) const;
  std::int64_t close_at(const HomeSight& home) const;

  GateRules rules_;
  GateState state_ = GateState::kClosed;
  GateReason reason_ = GateReason::kStarted;
  base::TimePoint since_{};
  bool started_ = false;

  // Timers of the rules: since when each condition holds without a break.
  Since need_, level_, surplus_;
  base::TimePoint last_look_{};

  // Prometheus.
  std::optional<double> polled_;
  base::TimePoint polled_at_{};
  int bad_polls_ = 0;
  int good_polls_ = 0;
  bool lost_ = false;
  Since missing_since_;
  Since disagree_since_;
  bool disagreeing_ = false;

  // Flap guard.
  std::deque<base::TimePoint> changes_;
  int stretch_ = 0;
  base::TimePoint stretch_moved_{};

  // Notices that were given.
  GateBlindness told_ = GateBlindness::kNone;
  Since unknown_since_;
  std::vector<GateNotice> due_;  // from on_poll, for the next evaluate
};

/// An order of a person, from the annotations spillway.dev/gate and spillway.dev/gate-until of a virtual node.
struct GateOverride {
  GateOverride() = default;
  GateState state = GateState::kClosed;
  std::optional<base::WallTime> until;  // empty: until it is taken away
  bool operator==(const GateOverride&) const = default;
};

/// No value for "auto" or nothing. An Error text for what is none of open, closed, auto, or no RFC 3339 time.
std::expected<std::optional<GateOverride>, std::string> read_override(std::string_view order, std::string_view until);
/// Whether it still holds.
bool in_force(const std::optional<GateOverride>& order, base::WallTime wall);

/// One sentence that answers "why", for the condition and the events.
std::string explain_gate(const GateDecision& decision, const GateRules& rules);

}  // namespace spillway::core
