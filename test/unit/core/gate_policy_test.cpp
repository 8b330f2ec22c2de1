#include "vk-provider/core/gate_policy.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace core = spillway::core;
using core::GateBlindness;
using core::GateMode;
using core::GateNotice;
using core::GateReason;
using core::GateState;

namespace {

/// A home of two nodes with 8 GPUs each.
core::HomeSight home_with(std::int64_t free) {
  core::HomeSight home;
  home.nodes = 2;
  home.free_gpus = home.free_slots = free;
  home.home_slots = 16;
  return home;
}

core::HomeSight full_home(std::int64_t pending = 0) {
  core::HomeSight home = home_with(0);
  home.pending = pending;
  return home;
}

bool told(const core::GateDecision& decision, GateNotice notice) {
  return std::ranges::find(decision.notices, notice) != decision.notices.end();
}

/// A gate and a clock that moves in small steps, with the same home until it is changed.
struct Gate {
  explicit Gate(core::GateRules rules = {}) : policy(rules) { now_state(); }

  core::GateDecision look() {
    last = policy.evaluate(home, now);
    for (const GateNotice notice : last.notices) notices.push_back(notice);
    return last;
  }
  GateState now_state() { return look().state; }
  /// Looks each second, as many changes make it do.
  GateState after(base::Duration d) {
    for (const base::TimePoint end = now + d; now < end;) {
      now += 1s;
      if (poll) policy.on_poll(*poll, now);
      look();
    }
    return last.state;
  }
  /// Looks only when the policy asks for it; says after which time the state is `wanted`.
  base::Duration until(GateState wanted, base::Duration limit) {
    const base::TimePoint begin = now;
    while (now_state() != wanted && now - begin < limit) now = last.next;
    return now - begin;
  }
  bool heard(GateNotice notice) const { return std::ranges::find(notices, notice) != notices.end(); }

  core::GatePolicy policy;
  base::TimePoint now{1h};
  std::optional<core::HomeSight> home = home_with(8);
  std::optional<core::GatePoll> poll;
  core::GateDecision last;
  std::vector<GateNotice> notices;
};

core::GateRules with_mode(GateMode mode) {
  core::GateRules rules;
  rules.mode = mode;
  return rules;
}

core::GatePoll bad(const char* why = "empty") { return std::unexpected(std::string(why)); }

/// Open since just now, with the room that closes it again.
Gate open_gate(core::GateRules rules = {}) {
  Gate gate(rules);
  gate.policy.adopt(GateState::kOpen, gate.now);
  return gate;
}

}  // namespace

TEST_CASE("a gate starts closed, and stays so while home has room") {
  Gate gate;
  CHECK(gate.last.state == GateState::kClosed);
  CHECK(gate.last.reason == GateReason::kStarted);
  CHECK(gate.after(1h) == GateState::kClosed);
  CHECK(gate.notices.empty());
}

TEST_CASE("need opens 3 s after pods do not fit home") {
  Gate gate;
  gate.after(1min);
  gate.home = full_home(1);
  CHECK(gate.until(GateState::kOpen, 1h) == 3s);
  CHECK(gate.last.reason == GateReason::kNeed);
  CHECK(told(gate.last, GateNotice::kOpened));
}

TEST_CASE("pods that fit home are no need") {
  Gate gate;
  gate.home->pending = gate.home->fitting = 3;
  CHECK(gate.after(1h) == GateState::kClosed);
}

TEST_CASE("a need that passes begins anew") {
  Gate gate;
  gate.after(1min);
  for (int i = 0; i < 20; ++i) {
    gate.home = home_with(8);
    gate.home->pending = 1;
    CHECK(gate.after(2s) == GateState::kClosed);
    gate.home = home_with(8);
    CHECK(gate.after(1s) == GateState::kClosed);
  }
}

TEST_CASE("too few slots open 15 s later") {
  Gate gate;
  gate.after(2min);
  gate.home = full_home();
  CHECK(gate.until(GateState::kOpen, 1h) == 15s);
  CHECK(gate.last.reason == GateReason::kLevel);
}

TEST_CASE("GPUs that training waits for are not free") {
  Gate gate;
  gate.after(2min);
  gate.home = home_with(8);
  gate.home->demand_gpus = 16;
  CHECK(gate.until(GateState::kOpen, 1h) == 15s);
  CHECK(gate.last.free_slots == -8);
  SECTION("and they keep an open gate open, however much looks free") {
    gate.home = home_with(16);
    gate.home->demand_gpus = 14;
    CHECK(gate.after(3h) == GateState::kOpen);
  }
}

TEST_CASE("a slot is as large as the largest burst pod") {
  Gate gate;
  gate.after(2min);
  gate.home = home_with(6);
  gate.home->slot_gpus = 4;
  gate.home->free_slots = 0;  // 3 and 3
  CHECK(gate.until(GateState::kOpen, 1h) == 15s);
}

TEST_CASE("surplus closes after 300 s, but not before the gate was open for 600 s") {
  Gate gate = open_gate();
  CHECK(gate.last.reason == GateReason::kStarted);
  CHECK(gate.until(GateState::kClosed, 2h) == 600s);
  CHECK(gate.last.reason == GateReason::kSurplus);
  CHECK(told(gate.last, GateNotice::kClosed));
  SECTION("later it is the 300 s that count") {
    Gate later = open_gate();
    later.home = full_home();
    later.after(1h);
    later.home = home_with(8);
    CHECK(later.until(GateState::kClosed, 2h) == 300s);
  }
}

TEST_CASE("a surplus that breaks off counts anew") {
  Gate gate = open_gate();
  gate.after(10min - 1s);
  for (int i = 0; i < 10; ++i) {
    gate.home = full_home();
    gate.after(1s);
    gate.home = home_with(8);
    CHECK(gate.after(299s) == GateState::kOpen);
  }
}

TEST_CASE("the gate does not close while a burst pod waits") {
  Gate gate = open_gate();
  gate.home->pending = gate.home->fitting = 1;
  CHECK(gate.after(2h) == GateState::kOpen);
  gate.home->pending = gate.home->fitting = 0;
  CHECK(gate.after(1s) == GateState::kClosed);
}

TEST_CASE("closeAt is the largest of its floors, and reachable in a small home") {
  struct Row {
    std::int64_t home_slots, reserve, open_below;
    std::optional<std::int64_t> configured;
    std::int64_t close_at;
  };
  const auto [home_slots, reserve, open_below, configured, close_at] = GENERATE(values<Row>(
      {Row{16, 1, 1, {}, 3}, Row{200, 1, 1, {}, 20}, Row{201, 1, 1, {}, 21}, Row{16, 4, 1, {}, 6}, Row{16, 1, 5, {}, 7},
       Row{16, 1, 1, 9, 9}, Row{2, 1, 1, {}, 2}, Row{1, 1, 1, {}, 2}, Row{0, 1, 1, {}, 2}}));
  core::GateRules rules;
  rules.reserve = reserve;
  rules.open_below = open_below;
  rules.close_at = configured;
  Gate gate(rules);
  gate.home->home_slots = home_slots;
  gate.look();
  CHECK(gate.last.close_at == close_at);
}

TEST_CASE("after a close a level waits 60 s, a need 10 s") {
  Gate gate = open_gate();
  gate.until(GateState::kClosed, 2h);
  SECTION("level") {
    gate.home = full_home();
    CHECK(gate.until(GateState::kOpen, 1h) == 60s);
  }
  SECTION("need") {
    gate.home = full_home(1);
    CHECK(gate.until(GateState::kOpen, 1h) == 10s);
  }
}

TEST_CASE("more than six changes in an hour double closeAfter and minOpen, and two quiet hours undo it") {
  core::GateRules rules;
  rules.min_open = 60s;
  rules.close_after = 30s;
  rules.min_closed = 10s;
  Gate gate(rules);
  gate.after(1min);
  const auto cycle = [&] {
    gate.home = full_home(1);
    gate.until(GateState::kOpen, 1h);
    gate.home = home_with(8);
    return gate.until(GateState::kClosed, 3h);
  };
  for (int i = 0; i < 3; ++i) CHECK(cycle() == 60s);
  CHECK_FALSE(gate.heard(GateNotice::kFlapping));
  CHECK(cycle() == 120s);
  CHECK(gate.heard(GateNotice::kFlapping));
  for (int i = 0; i < 40; ++i) CHECK(cycle() <= 1h);
  gate.after(2h);
  gate.notices.clear();
  const base::Duration relaxed = cycle();
  CHECK(relaxed < 1h);
  gate.after(20h);
  CHECK(cycle() == 60s);
}

TEST_CASE("home that is not known decides nothing and ends the timers") {
  Gate gate;
  gate.after(1min);
  gate.home = full_home(1);
  gate.after(2s);
  gate.home.reset();
  CHECK(gate.after(29s) == GateState::kClosed);
  CHECK_FALSE(gate.heard(GateNotice::kHomeUnknown));
  CHECK(gate.after(3min) == GateState::kClosed);
  CHECK(gate.last.blindness == GateBlindness::kHomeUnknown);
  CHECK(std::ranges::count(gate.notices, GateNotice::kHomeUnknown) == 1);
  gate.home = full_home(1);
  CHECK(gate.until(GateState::kOpen, 1h) == 3s);
  CHECK(gate.heard(GateNotice::kHomeKnown));
}

TEST_CASE("the timers begin again after a time that nobody saw") {
  Gate gate = open_gate();
  gate.after(9min);
  gate.now += 3min;  // the process was stopped
  CHECK(gate.now_state() == GateState::kOpen);
  CHECK(gate.until(GateState::kClosed, 1h) == 300s);
}

TEST_CASE("no home node at all is no reason, unless that is allowed") {
  core::GateRules rules;
  SECTION("not allowed: the state is held, and said once") {
    Gate gate(rules);
    gate.home = core::HomeSight();
    CHECK(gate.after(1h) == GateState::kClosed);
    CHECK(gate.last.blindness == GateBlindness::kNoHome);
    CHECK(std::ranges::count(gate.notices, GateNotice::kNoHome) == 1);
  }
  SECTION("allowed: nothing is free") {
    rules.allow_no_home = true;
    Gate gate(rules);
    gate.home = core::HomeSight();
    CHECK(gate.after(2min) == GateState::kOpen);
  }
}

TEST_CASE("a home whose nodes are all NotReady has no room") {
  Gate gate;
  gate.after(2min);
  gate.home = core::HomeSight();
  gate.home->nodes = 2;
  CHECK(gate.until(GateState::kOpen, 1h) == 15s);
  CHECK(gate.last.reason == GateReason::kLevel);
}

TEST_CASE("Prometheus decides in its modes, and zero is data") {
  Gate gate(with_mode(GateMode::kPrometheus));
  gate.poll = 0.0;
  CHECK(gate.after(61s) == GateState::kOpen);
  CHECK(gate.last.reason == GateReason::kLevel);
  CHECK(gate.last.free_slots_prometheus == 0);
  CHECK(gate.last.free_slots_kubernetes == 8);
}

TEST_CASE("Prometheus does not know which GPUs are sick") {
  Gate gate(with_mode(GateMode::kPrometheus));
  gate.home = full_home();
  gate.home->sick_gpus = 8;
  gate.poll = 8.0;
  CHECK(gate.after(61s) == GateState::kOpen);
  CHECK_FALSE(gate.heard(GateNotice::kDisagreement));
}

TEST_CASE("until Prometheus was asked nothing is decided") {
  for (const GateMode mode : {GateMode::kPrometheus, GateMode::kPrometheusThenKubernetes}) {
    Gate gate(with_mode(mode));
    gate.home = full_home(3);
    CHECK(gate.after(10min) == GateState::kClosed);
    CHECK(gate.last.blindness == GateBlindness::kNoPoll);
  }
}

TEST_CASE("two bad polls hold, three change to Kubernetes, three good ones change back") {
  Gate gate(with_mode(GateMode::kPrometheusThenKubernetes));
  gate.poll = 8.0;
  gate.after(2min);
  gate.home = full_home(1);
  const auto poll_each = [&](const core::GatePoll& poll) {
    gate.policy.on_poll(poll, gate.now);
    gate.poll.reset();
    gate.after(15s);
  };
  poll_each(bad());
  CHECK(gate.last.blindness == GateBlindness::kNoPoll);
  poll_each(bad());
  CHECK(gate.last.state == GateState::kClosed);
  CHECK_FALSE(gate.heard(GateNotice::kDataMissing));
  poll_each(bad());
  CHECK(gate.heard(GateNotice::kDataMissing));
  CHECK(gate.last.blindness == GateBlindness::kNone);
  CHECK(gate.last.state == GateState::kOpen);
  poll_each(8.0);
  poll_each(8.0);
  CHECK(gate.policy.prometheus_lost());
  poll_each(8.0);
  CHECK_FALSE(gate.policy.prometheus_lost());
  CHECK(gate.heard(GateNotice::kDataRestored));
}

TEST_CASE("Prometheus alone and without data: onBlind after holdFor") {
  core::GateRules rules = with_mode(GateMode::kPrometheus);
  SECTION("hold") {
    Gate gate(rules);
    gate.poll = bad();
    gate.home = full_home(5);
    CHECK(gate.after(3h) == GateState::kClosed);
    CHECK(gate.last.blindness == GateBlindness::kPrometheusLost);
  }
  SECTION("open") {
    rules.on_blind = core::OnBlind::kOpen;
    Gate gate(rules);
    gate.poll = bad();
    CHECK(gate.after(10min) == GateState::kClosed);
    CHECK(gate.after(1s) == GateState::kOpen);
    CHECK(gate.last.reason == GateReason::kBlind);
  }
  SECTION("close") {
    rules.on_blind = core::OnBlind::kClose;
    Gate gate = open_gate(rules);
    gate.poll = bad();
    gate.home = full_home(5);
    CHECK(gate.after(10min) == GateState::kOpen);
    CHECK(gate.after(1s) == GateState::kClosed);
    CHECK(gate.last.reason == GateReason::kBlind);
  }
}

TEST_CASE("an answer of Prometheus that nobody renews is no data") {
  Gate gate(with_mode(GateMode::kPrometheus));
  gate.poll = 8.0;
  gate.after(10s);
  gate.poll.reset();
  gate.after(61s);
  CHECK(gate.last.blindness == GateBlindness::kNoPoll);
}

TEST_CASE("sources that disagree for 5 minutes: the smaller one counts") {
  SECTION("a lying Prometheus cannot keep the gate closed") {
    Gate gate(with_mode(GateMode::kPrometheus));
    gate.poll = 100.0;
    gate.home = full_home();
    CHECK(gate.after(5min) == GateState::kClosed);
    CHECK(gate.after(20s) == GateState::kOpen);
    CHECK(std::ranges::count(gate.notices, GateNotice::kDisagreement) == 1);
    SECTION("and an end of it is told") {
      gate.poll = 0.0;
      gate.after(1s);
      CHECK(gate.heard(GateNotice::kAgreement));
    }
  }
  SECTION("nor close it") {
    Gate gate = open_gate(with_mode(GateMode::kPrometheus));
    gate.poll = 100.0;
    gate.home = full_home();
    CHECK(gate.after(2h) == GateState::kOpen);
  }
  SECTION("with Kubernetes as the source Prometheus is a check as well") {
    Gate gate = open_gate();
    gate.poll = 0.0;
    CHECK(gate.after(2h) == GateState::kOpen);
    CHECK(gate.heard(GateNotice::kDisagreement));
  }
  SECTION("small differences are none") {
    Gate gate;
    gate.poll = 7.0;
    gate.after(1h);
    CHECK_FALSE(gate.heard(GateNotice::kDisagreement));
  }
  SECTION("and it can be switched off") {
    core::GateRules rules;
    rules.cross_check = false;
    Gate gate = open_gate(rules);
    gate.poll = 0.0;
    CHECK(gate.after(1h) == GateState::kClosed);
  }
}

TEST_CASE("a gate that an earlier process opened stays open for the rest of its time") {
  Gate gate;
  gate.policy.adopt(GateState::kOpen, gate.now - 9min);
  gate.look();
  CHECK(gate.last.reason == GateReason::kAdopted);
  CHECK(gate.until(GateState::kClosed, 1h) == 300s);
}

TEST_CASE("an override is an order with an end") {
  const auto order = core::read_override("open", "2026-11-29T01:00:00Z");
  REQUIRE(order.has_value());
  const base::WallTime end = *base::from_rfc3339("2026-11-29T01:00:00Z");
  CHECK((*order)->state == GateState::kOpen);
  CHECK(core::in_force(*order, end - 1s));
  CHECK_FALSE(core::in_force(*order, end));
  CHECK(core::in_force(*core::read_override("closed", ""), end + 9999h));
  CHECK_FALSE(core::in_force(*core::read_override("auto", "2026-11-29T01:00:00Z"), end - 1s));
  CHECK_FALSE(core::in_force(*core::read_override("", ""), end));
  CHECK_FALSE(core::read_override("ajar", "").has_value());
  CHECK_FALSE(core::read_override("open", "tomorrow").has_value());
}

TEST_CASE("the reason is a sentence with the numbers") {
  Gate gate;
  CHECK(core::explain_gate(gate.last, gate.policy.rules()) ==
        "closed: nothing was decided yet; now 8 slots of 1 GPU free at home after a demand of 0 GPUs ahead, 0 burst "
        "pods waiting of which 0 fit home; opens below 1, closes at 3");
  gate.home.reset();
  gate.look();
  CHECK(core::explain_gate(gate.last, gate.policy.rules()) ==
        "closed: nothing was decided yet; nothing is decided now: the nodes and pods of the cluster are not known "
        "completely");
}
