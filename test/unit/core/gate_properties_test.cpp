// What holds for the gate's policy whatever comes in.
#include <catch2/catch.hpp>

#include <vector>

#include "vk-provider/base/random.hpp"
#include "vk-provider/core/gate_policy.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace core = spillway::core;
using core::GateMode;
using core::GateState;

namespace {

struct Change {
  base::TimePoint at;
  GateState to;
  core::GateReason reason;
};

int pick(base::Random& random, int n) { return static_cast<int>(random.unit() * n); }

std::optional<core::HomeSight> any_home(base::Random& random) {
  if (pick(random, 10) == 0) return std::nullopt;
  core::HomeSight home;
  home.nodes = pick(random, 5);
  home.slot_gpus = 1 + pick(random, 4);
  home.home_slots = 16;
  home.free_slots = pick(random, 8);
  home.free_gpus = home.free_slots * home.slot_gpus;
  home.demand_gpus = pick(random, 3) == 0 ? pick(random, 20) : 0;
  home.pending = pick(random, 2) * pick(random, 4);
  home.fitting = home.pending == 0 ? 0 : pick(random, static_cast<int>(home.pending) + 1);
  return home;
}

core::GateRules any_rules(base::Random& random) {
  core::GateRules rules;
  rules.mode = static_cast<GateMode>(pick(random, 3));
  rules.min_open = 10s * (1 + pick(random, 30));
  rules.min_closed = 5s * (1 + pick(random, 10));
  rules.close_after = 10s * (1 + pick(random, 10));
  rules.cross_check = pick(random, 2) == 0;
  rules.hold_for = 30s;
  return rules;
}

}  // namespace

TEST_CASE("flapping input changes the gate at most once per window") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    base::SeededRandom random(seed);
    const core::GateRules rules = any_rules(random);
    core::GatePolicy policy(rules);
    base::TimePoint now{1h};
    std::vector<Change> changes;
    GateState state = GateState::kClosed;
    auto home = any_home(random);
    base::TimePoint poll_at = now;
    for (int step = 0; step < 3000; ++step) {
      if (pick(random, 3) == 0) home = any_home(random);
      if (now >= poll_at) {
        policy.on_poll(
            pick(random, 4) == 0 ? core::GatePoll(std::unexpected("empty")) : core::GatePoll(pick(random, 9)), now);
        poll_at = now + 15s;
      }
      const core::GateDecision decision = policy.evaluate(home, now);
      REQUIRE(decision.next > now);
      REQUIRE(decision.next <= now + core::GatePolicy::kTick);
      if (decision.state != state) changes.push_back({now, decision.state, decision.reason});
      state = decision.state;
      now = pick(random, 2) == 0 ? decision.next : now + 100ms * (1 + pick(random, 20));
    }
    for (size_t i = 1; i < changes.size(); ++i) {
      const base::Duration stood = changes[i].at - changes[i - 1].at;
      if (changes[i].to == GateState::kClosed) {
        REQUIRE(stood >= rules.min_open);
      } else {
        REQUIRE(stood >= std::min<base::Duration>(rules.min_closed, 10s));
      }
    }
  }
}

TEST_CASE("without data nothing opens or closes but by onBlind") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    base::SeededRandom random(seed);
    core::GateRules rules = any_rules(random);
    rules.on_blind = static_cast<core::OnBlind>(pick(random, 3));
    core::GatePolicy policy(rules);
    base::TimePoint now{1h};
    const GateState begin = pick(random, 2) == 0 ? GateState::kOpen : GateState::kClosed;
    policy.adopt(begin, now);
    const bool api_away = pick(random, 2) == 0;
    GateState state = begin;
    for (int step = 0; step < 500; ++step) {
      policy.on_poll(std::unexpected("http"), now);
      auto home = any_home(random);
      if (api_away || rules.mode == GateMode::kPrometheusThenKubernetes || rules.mode == GateMode::kKubernetes) {
        home.reset();
      }
      const core::GateDecision decision = policy.evaluate(home, now);
      REQUIRE(decision.blindness != core::GateBlindness::kNone);
      if (decision.state != state) {
        REQUIRE(decision.reason == core::GateReason::kBlind);
        REQUIRE(rules.mode == GateMode::kPrometheus);
        REQUIRE(decision.state == (rules.on_blind == core::OnBlind::kOpen ? GateState::kOpen : GateState::kClosed));
        REQUIRE(rules.on_blind != core::OnBlind::kHold);
      }
      state = decision.state;
      now += 100ms * (1 + pick(random, 150));
    }
  }
}
