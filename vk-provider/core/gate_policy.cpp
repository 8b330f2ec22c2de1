#include "vk-provider/core/gate_policy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace spillway::core {
namespace {

constexpr std::int64_t kHomeShare = 10;  // a tenth
constexpr double kDisagreeGpus = 2;
constexpr double kDisagreeShare = 0.25;
constexpr base::Duration kUnknownAfter = std::chrono::seconds(30);

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void hold(std::optional<base::TimePoint>& since, bool condition, base::TimePoint now) {
  if (!condition) {
    since.reset();
  } else if (!since) {
    since = now;
  }
}

bool disagree(double prometheus, double kubernetes) {
  const double gap = std::abs(prometheus - kubernetes);
  return gap > kDisagreeGpus || gap > kDisagreeShare * std::max(prometheus, kubernetes);
}

}  // namespace

GatePolicy::GatePolicy(const GateRules& rules) : rules_(rules) {}

void GatePolicy::adopt(GateState state, base::TimePoint since) {
  state_ = state;
  reason_ = state == GateState::kOpen ? GateReason::kAdopted : GateReason::kStarted;
  since_ = since;
  started_ = true;
}

void GatePolicy::on_poll(const GatePoll& poll, base::TimePoint now) {
  polled_at_ = now;
  if (poll) {
    polled_ = *poll;
    bad_polls_ = 0;
    if (!lost_) {
      missing_since_.reset();
      return;
    }
    if (++good_polls_ < kPollsToTurn) return;
    lost_ = false;
    missing_since_.reset();
    due_.push_back(GateNotice::kDataRestored);
    return;
  }
  polled_.reset();
  good_polls_ = 0;
  if (!missing_since_) missing_since_ = now;
  if (++bad_polls_ < kPollsToTurn || lost_) return;
  lost_ = true;
  due_.push_back(GateNotice::kDataMissing);
}

GateDecision GatePolicy::evaluate(const std::optional<HomeSight>& home, base::TimePoint now) {
  if (!started_) adopt(GateState::kClosed, now);
  if (now - last_look_ > kLongestGap) forget_timers();
  last_look_ = now;
  relax(now);

  GateDecision out;
  out.notices = std::exchange(due_, {});
  out.next = now + kTick;
  if (home) {
    out.home = *home;
    out.close_at = close_at(*home);
    out.blindness = home->nodes == 0 && !rules_.allow_no_home ? GateBlindness::kNoHome : choose_source(out, now);
  } else {
    out.blindness = GateBlindness::kHomeUnknown;
  }
  note_blindness(out, now);
  if (out.blindness == GateBlindness::kNone) {
    run_timers(out, now);
    decide(out, now);
  } else {
    // The timers count what was seen, not what may have been.
    forget_timers();
    if (out.blindness == GateBlindness::kPrometheusLost) apply_on_blind(out, now);
  }
  out.state = state_;
  out.reason = reason_;
  return out;
}

void GatePolicy::forget_timers() {
  need_.reset();
  level_.reset();
  surplus_.reset();
}

bool GatePolicy::poll_counts(base::TimePoint now) const { return polled_ && now - polled_at_ <= kPollCounts; }

/// Fills in the free slots by each source, and which of them count.
GateBlindness GatePolicy::choose_source(GateDecision& out, base::TimePoint now) {
  const HomeSight& home = out.home;
  const std::int64_t ahead = divide_up(home.demand_gpus, home.slot_gpus);
  out.free_slots_kubernetes = home.free_slots - ahead;
  if (poll_counts(now)) {
    // Sick GPUs are known here only: in the sum that Prometheus gives they are free.
    const double healthy = std::max(0.0, *polled_ - static_cast<double>(home.sick_gpus));
    constexpr auto kMost = static_cast<double>(std::numeric_limits<std::int32_t>::max());
    out.free_slots_prometheus = static_cast<std::int64_t>(std::min(healthy, kMost)) / home.slot_gpus - ahead;
  }
  cross_check(out, now);
  const bool prometheus_first = rules_.mode != GateMode::kKubernetes;
  if (prometheus_first && (lost_ || !out.free_slots_prometheus)) {
    if (rules_.mode == GateMode::kPrometheus) return lost_ ? GateBlindness::kPrometheusLost : GateBlindness::kNoPoll;
    if (!lost_) return GateBlindness::kNoPoll;
    out.free_slots = out.free_slots_kubernetes;
    return GateBlindness::kNone;
  }
  out.free_slots = prometheus_first ? out.free_slots_prometheus : out.free_slots_kubernetes;
  // Open if either says that none is free; close only if both say surplus.
  if (disagreeing_) out.free_slots = std::min(*out.free_slots_prometheus, *out.free_slots_kubernetes);
  return GateBlindness::kNone;
}

void GatePolicy::cross_check(GateDecision& out, base::TimePoint now) {
  const bool both = rules_.cross_check && out.free_slots_prometheus && !lost_;
  hold(disagree_since_, both && disagree(*polled_, static_cast<double>(out.home.free_gpus + out.home.sick_gpus)), now);
  const bool now_disagreeing = disagree_since_ && now - *disagree_since_ >= kDisagreeAfter;
  if (now_disagreeing == disagreeing_) return;
  disagreeing_ = now_disagreeing;
  if (disagreeing_ || both) out.notices.push_back(disagreeing_ ? GateNotice::kDisagreement : GateNotice::kAgreement);
}

void GatePolicy::note_blindness(GateDecision& out, base::TimePoint now) {
  const GateBlindness is = out.blindness;
  if (is == GateBlindness::kNoHome && told_ != is) out.notices.push_back(GateNotice::kNoHome);
  if (is == GateBlindness::kHomeUnknown) {
    // A list that is only being read is no news.
    if (!unknown_since_) unknown_since_ = now;
    if (told_ == is) return;
    if (now - *unknown_since_ < kUnknownAfter) {
      out.next = std::min(out.next, *unknown_since_ + kUnknownAfter);
      return;
    }
    out.notices.push_back(GateNotice::kHomeUnknown);
  } else {
    unknown_since_.reset();
    if (told_ == GateBlindness::kHomeUnknown) out.notices.push_back(GateNotice::kHomeKnown);
  }
  told_ = is;
}

void GatePolicy::apply_on_blind(GateDecision& out, base::TimePoint now) {
  if (rules_.on_blind == OnBlind::kHold || !missing_since_) return;
  const base::TimePoint due = *missing_since_ + rules_.hold_for;
  if (now < due) {
    out.next = std::min(out.next, due);
    return;
  }
  const GateState wanted = rules_.on_blind == OnBlind::kOpen ? GateState::kOpen : GateState::kClosed;
  if (wanted != state_) change(wanted, GateReason::kBlind, *missing_since_, out, now);
}

void GatePolicy::run_timers(const GateDecision& out, base::TimePoint now) {
  hold(need_, out.home.pending > out.home.fitting, now);
  hold(level_, *out.free_slots < rules_.open_below, now);
  hold(surplus_, *out.free_slots >= out.close_at, now);
}

void GatePolicy::decide(GateDecision& out, base::TimePoint now) {
  if (state_ == GateState::kClosed) {
    decide_closed(out, now);
    return;
  }
  if (!surplus_ || out.home.pending > 0) return;
  const base::TimePoint due = std::max(*surplus_ + stretched(rules_.close_after), since_ + stretched(rules_.min_open));
  if (now >= due) {
    change(GateState::kClosed, GateReason::kSurplus, *surplus_, out, now);
  } else {
    out.next = std::min(out.next, due);
  }
}

void GatePolicy::decide_closed(GateDecision& out, base::TimePoint now) {
  if (need_) {
    const base::TimePoint due = std::max(*need_ + rules_.open_after, since_ + std::min(rules_.min_closed, kNeedWaits));
    if (now >= due) {
      change(GateState::kOpen, GateReason::kNeed, *need_, out, now);
      return;
    }
    out.next = std::min(out.next, due);
  }
  if (level_) {
    const base::TimePoint due = std::max(*level_ + rules_.open_level_after, since_ + rules_.min_closed);
    if (now >= due) {
      change(GateState::kOpen, GateReason::kLevel, *level_, out, now);
      return;
    }
    out.next = std::min(out.next, due);
  }
}

void GatePolicy::change(GateState to, GateReason reason, base::TimePoint rule_since, GateDecision& out,
                        base::TimePoint now) {
  out.rule_since = rule_since;
  state_ = to;
  reason_ = reason;
  since_ = now;
  forget_timers();
  out.notices.push_back(to == GateState::kOpen ? GateNotice::kOpened : GateNotice::kClosed);
  changes_.push_back(now);
  while (now - changes_.front() > kFlapWindow) changes_.pop_front();
  if (changes_.size() <= kFlapChanges) return;
  changes_.clear();
  stretch_moved_ = now;
  if (stretched(rules_.close_after) < kLongestStretch || stretched(rules_.min_open) < kLongestStretch) ++stretch_;
  out.notices.push_back(GateNotice::kFlapping);
}

/// One doubling is taken back for each two hours without a change.
void GatePolicy::relax(base::TimePoint now) {
  const base::TimePoint quiet_since = std::max(stretch_moved_, since_);
  if (stretch_ == 0 || now - quiet_since < kFlapQuiet) return;
  --stretch_;
  stretch_moved_ = now;
}

base::Duration GatePolicy::stretched(base::Duration d) const {
  // What is configured beyond the bound stays as it is.
  return d >= kLongestStretch ? d : std::min(d * (std::int64_t{1} << std::min(stretch_, 16)), kLongestStretch);
}

std::int64_t GatePolicy::close_at(const HomeSight& home) const {
  if (rules_.close_at) return *rules_.close_at;
  const std::int64_t wanted =
      std::max({std::int64_t{2}, divide_up(home.home_slots, kHomeShare), rules_.reserve + 2, lowest_close_at(rules_)});
  // A home that is smaller than that could never close the gate.
  return std::min(wanted, std::max(home.home_slots, rules_.open_below + 1));
}

}  // namespace spillway::core
