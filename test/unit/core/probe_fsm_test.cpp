#include "vk-provider/core/probe_fsm.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;

namespace {

constexpr base::TimePoint kStart{1000s};

model::Probe a_probe() {
  model::Probe probe;
  probe.period = 10s;
  probe.failure_threshold = 3;
  return probe;
}

/// Runs it when it is due, with this result.
std::optional<bool> run(ProbeFsm& fsm, const model::Probe& probe, bool success) {
  const base::TimePoint at = fsm.due();
  fsm.begin(at);
  return fsm.end(probe, success, at + 100ms);
}

}  // namespace

TEST_CASE("a probe is due after its initial delay, then period by period, and never while it runs") {
  model::Probe probe = a_probe();
  probe.initial_delay = 5s;
  ProbeFsm fsm(probe, ProbeKind::kReadiness, kStart, kStart);
  CHECK(fsm.due() == kStart + 5s);
  fsm.begin(kStart + 5s);
  CHECK(fsm.under_way());
  CHECK(fsm.end(probe, true, kStart + 6s) == true);
  CHECK(fsm.due() == kStart + 15s);
  fsm.begin(kStart + 15s);
  // It took longer than its period.
  fsm.end(probe, true, kStart + 40s);
  CHECK(fsm.due() == kStart + 40s);
}

TEST_CASE("a delay that has passed before probing begins is not waited for again") {
  model::Probe probe = a_probe();
  probe.initial_delay = 5s;
  CHECK(ProbeFsm(probe, ProbeKind::kReadiness, kStart, kStart + 60s).due() == kStart + 60s);
}

TEST_CASE("readiness follows its thresholds, and only changes are told") {
  model::Probe probe = a_probe();
  probe.success_threshold = 2;
  ProbeFsm fsm(probe, ProbeKind::kReadiness, kStart, kStart);
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK_FALSE(run(fsm, probe, true).has_value());
  CHECK(run(fsm, probe, true) == true);
  CHECK_FALSE(run(fsm, probe, true).has_value());
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK_FALSE(run(fsm, probe, true).has_value());
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK(run(fsm, probe, false) == false);
  CHECK_FALSE(run(fsm, probe, false).has_value());
}

TEST_CASE("liveness passes until it fails often enough in a row, and says so once") {
  const model::Probe probe = a_probe();
  ProbeFsm fsm(probe, ProbeKind::kLiveness, kStart, kStart);
  CHECK_FALSE(run(fsm, probe, true).has_value());
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK_FALSE(run(fsm, probe, false).has_value());
  CHECK(run(fsm, probe, false) == false);
  CHECK(fsm.due() == base::TimePoint::max());
}

TEST_CASE("a startup probe passes or fails once") {
  const model::Probe probe = a_probe();
  ProbeFsm passes(probe, ProbeKind::kStartup, kStart, kStart);
  CHECK_FALSE(run(passes, probe, false).has_value());
  CHECK(run(passes, probe, true) == true);
  CHECK(passes.due() == base::TimePoint::max());
  ProbeFsm fails(probe, ProbeKind::kStartup, kStart, kStart);
  CHECK_FALSE(run(fails, probe, false).has_value());
  CHECK_FALSE(run(fails, probe, false).has_value());
  CHECK(run(fails, probe, false) == false);
}

TEST_CASE("what came to nothing counts neither way") {
  const model::Probe probe = a_probe();
  ProbeFsm fsm(probe, ProbeKind::kLiveness, kStart, kStart);
  run(fsm, probe, false);
  run(fsm, probe, false);
  fsm.begin(fsm.due());
  fsm.skip(probe, kStart + 21s);
  CHECK(fsm.due() == kStart + 30s);
  CHECK(run(fsm, probe, false) == false);
}
