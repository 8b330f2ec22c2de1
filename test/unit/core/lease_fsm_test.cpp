#include "vk-provider/core/lease_fsm.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using spillway::base::TimePoint;
using spillway::core::LeaseAction;
using spillway::core::LeaseDecision;
using spillway::core::LeaseFsm;
using spillway::core::LeaseTimes;
using spillway::core::LeaseView;

namespace {

const TimePoint kStart{1h};

LeaseView lease(std::string holder, std::string version, std::chrono::seconds duration = 30s) {
  LeaseView view;
  view.exists = true;
  view.holder = std::move(holder);
  view.version = std::move(version);
  view.duration = duration;
  return view;
}

LeaseFsm make() { return {"me", LeaseTimes()}; }

/// A machine that took a released lease at kStart.
LeaseFsm make_holder() {
  LeaseFsm fsm = make();
  fsm.observe(lease("", "1"), kStart);
  fsm.wrote(lease("me", "2"), kStart, kStart + 1s);
  return fsm;
}

void check(const LeaseDecision& decision, LeaseAction action, TimePoint at) {
  CHECK(decision.action == action);
  CHECK(decision.at == at);
}

}  // namespace

TEST_CASE("a lease that was never seen is looked at, not taken") {
  const LeaseFsm fsm = make();
  check(fsm.decide(kStart), LeaseAction::kWait, kStart + 2s);
  CHECK_FALSE(fsm.held(kStart));
}

TEST_CASE("what is found decides whether the lease is taken") {
  struct Row {
    const char* name;
    LeaseView view;
    LeaseAction action;
    TimePoint at;
  };
  const Row rows[] = {
      {"absent", LeaseView(), LeaseAction::kAcquire, kStart},
      {"released", lease("", "1"), LeaseAction::kAcquire, kStart},
      {"released with a short duration", lease("", "1", 1s), LeaseAction::kAcquire, kStart},
      {"held by another", lease("other", "1"), LeaseAction::kWait, kStart + 2s},
      {"ours, from a write whose answer was lost", lease("me", "1"), LeaseAction::kAcquire, kStart},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    LeaseFsm fsm = make();
    fsm.observe(row.view, kStart);
    check(fsm.decide(kStart), row.action, row.at);
  }
}

TEST_CASE("the lease of another expires by our own clock, from the change that we saw last") {
  LeaseFsm fsm = make();
  fsm.observe(lease("other", "1"), kStart);
  fsm.observe(lease("other", "1"), kStart + 29s);
  check(fsm.decide(kStart + 29s), LeaseAction::kWait, kStart + 30s);
  check(fsm.decide(kStart + 30s), LeaseAction::kAcquire, kStart + 30s);

  fsm.observe(lease("other", "2"), kStart + 29s);  // he lives
  check(fsm.decide(kStart + 30s), LeaseAction::kWait, kStart + 32s);
  CHECK(fsm.decide(kStart + 58s).action == LeaseAction::kWait);
  CHECK(fsm.decide(kStart + 59s).action == LeaseAction::kAcquire);
}

TEST_CASE("a holder who promises more time than we would is believed, one who promises less is not hurried") {
  LeaseFsm fsm = make();
  fsm.observe(lease("other", "1", 60s), kStart);
  CHECK(fsm.decide(kStart + 59s).action == LeaseAction::kWait);
  CHECK(fsm.decide(kStart + 60s).action == LeaseAction::kAcquire);

  LeaseFsm hasty = make();
  hasty.observe(lease("other", "1", 5s), kStart);
  CHECK(hasty.decide(kStart + 29s).action == LeaseAction::kWait);
}

TEST_CASE("a renewal counts from when it was sent, not from when it was answered") {
  LeaseFsm fsm = make();
  fsm.observe(lease("", "1"), kStart);
  fsm.wrote(lease("me", "2"), kStart, kStart + 4s);
  CHECK(fsm.acquired_at() == kStart + 4s);
  CHECK(fsm.valid_until() == kStart + 30s);
  CHECK(fsm.held(kStart + 29s));
  CHECK_FALSE(fsm.held(kStart + 30s));
  check(fsm.decide(kStart + 4s), LeaseAction::kRenew, kStart + 5s);

  fsm.wrote(lease("me", "3"), kStart + 5s, kStart + 6s);
  CHECK(fsm.valid_until() == kStart + 35s);
  CHECK(fsm.acquired_at() == kStart + 4s);  // a renewal is no acquisition
}

TEST_CASE("a failed renewal is repeated soon, until the lease has run out") {
  LeaseFsm fsm = make_holder();
  fsm.failed(kStart + 10s);
  check(fsm.decide(kStart + 10s), LeaseAction::kRenew, kStart + 11s);
  CHECK(fsm.decide(kStart + 29s).action == LeaseAction::kRenew);
  check(fsm.decide(kStart + 30s), LeaseAction::kLost, kStart + 30s);
}

TEST_CASE("a lease that ran out is lost for good, also if the write arrives or nobody took it") {
  LeaseFsm fsm = make_holder();
  CHECK(fsm.decide(kStart + 31s).action == LeaseAction::kLost);
  fsm.observe(lease("me", "2"), kStart + 32s);
  CHECK(fsm.decide(kStart + 32s).action == LeaseAction::kLost);
}

TEST_CASE("another holder ends ours at once") {
  LeaseFsm fsm = make_holder();
  fsm.observe(lease("other", "3"), kStart + 5s);
  CHECK_FALSE(fsm.held(kStart + 5s));
  CHECK(fsm.decide(kStart + 5s).action == LeaseAction::kLost);
}

TEST_CASE("a lease that was deleted behind our back is still ours, and is written again") {
  LeaseFsm fsm = make_holder();
  fsm.observe(LeaseView(), kStart + 5s);
  CHECK(fsm.held(kStart + 5s));
  check(fsm.decide(kStart + 5s), LeaseAction::kRenew, kStart + 5s);
}

TEST_CASE("only a released lease is a clean handover") {
  CHECK(make_holder().handed_over());

  LeaseFsm expired = make();
  expired.observe(lease("other", "1"), kStart);
  expired.wrote(lease("me", "2"), kStart + 30s, kStart + 30s);
  CHECK_FALSE(expired.handed_over());

  LeaseFsm absent = make();
  absent.observe(LeaseView(), kStart);
  absent.wrote(lease("me", "1"), kStart, kStart);
  CHECK_FALSE(absent.handed_over());

  LeaseFsm renewed = make_holder();
  renewed.wrote(lease("me", "3"), kStart + 5s, kStart + 5s);
  CHECK(renewed.handed_over());
}

TEST_CASE("what was given back can be taken again") {
  LeaseFsm fsm = make_holder();
  fsm.released();
  CHECK_FALSE(fsm.held(kStart + 2s));
  CHECK(fsm.decide(kStart + 2s).action == LeaseAction::kWait);
  fsm.observe(lease("", "3"), kStart + 3s);
  CHECK(fsm.decide(kStart + 3s).action == LeaseAction::kAcquire);
}
