#include "test/simulation/world.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "test/simulation/runner.hpp"
#include "test/simulation/shapes.hpp"

using namespace spillway;
using namespace spillway::simulation;

namespace {

Outcome run(const Plan& plan, const Mutant* mutant = nullptr) {
  Options options;
  options.mutant = mutant;
  World world(plan, options);
  return world.run();
}

const Mutant* find_mutant(std::string_view name) {
  const auto it = std::ranges::find(mutants(), name, &Mutant::name);
  REQUIRE(it != mutants().end());
  return &*it;
}

std::uint64_t count(const Outcome& outcome, Counter counter) { return outcome.coverage[static_cast<size_t>(counter)]; }

/// Three pods that run and are deleted, at one cloud, with nothing wrong.
constexpr const char* kQuiet =
    "spillway-simulation 1\nseed 1\nworld length=60000\ncloud\nat 5000 owner kind=0 shape=0 replicas=3\n";

}  // namespace

TEST_CASE("the same plan leaves the same trace, another one another trace") {
  const Outcome first = run(draw_plan(11));
  CHECK_FALSE(first.violation.has_value());
  CHECK(first.trace_hash == run(draw_plan(11)).trace_hash);
  CHECK(first.trace_hash != run(draw_plan(12)).trace_hash);
}

TEST_CASE("a quiet life: three pods run, are deleted, and leave nothing behind") {
  const Outcome outcome = run(parse_plan(kQuiet).value());
  CHECK_FALSE(outcome.violation.has_value());
  CHECK(outcome.lives == 3);
  CHECK(count(outcome, Counter::kRunning) == 3);
  CHECK(count(outcome, Counter::kKilled) == 0);
}

TEST_CASE("a daemon that is killed, frozen and stopped comes back to the same pods") {
  const Outcome outcome = run(parse_plan(std::string(kQuiet) + "at 5400 kill which=0 after=7 restart=1000\n"
                                                               "at 20000 freeze which=0 lasts=50000\n"
                                                               "at 55000 stop which=0 restart=100\n")
                                  .value());
  CHECK_FALSE(outcome.violation.has_value());
  CHECK(outcome.lives == 3);
}

TEST_CASE("a daemon that is killed while it stops comes back to the same pods") {
  std::uint64_t killed = 0;
  for (int after = 1; after <= 40; ++after) {
    CAPTURE(after);
    const std::string step = "at 5400 stop-kill which=0 restart=1000 after=" + std::to_string(after) + "\n";
    const Outcome outcome = run(parse_plan(kQuiet + step).value());
    CHECK_FALSE(outcome.violation.has_value());
    CHECK(outcome.lives == 3);
    killed += count(outcome, Counter::kKilledStopping);
  }
  CHECK(killed > 20);
}

TEST_CASE("writes that are answered 409 are made in the end, whether somebody wrote before or nobody did") {
  const auto [what, counter] = GENERATE(std::pair(7, Counter::kApiConflict), std::pair(8, Counter::kOvertaken));
  const int which = GENERATE(2, 3, 4);  // all writes, those of pods, those of leases
  const std::string step = "at 3000 api-fault percent=70 lasts=20000 what=" + std::to_string(what) +
                           " which=" + std::to_string(which) + "\n";
  CAPTURE(step);
  const Outcome outcome = run(parse_plan(kQuiet + step).value());
  CHECK_FALSE(outcome.violation.has_value());
  CHECK(count(outcome, Counter::kRunning) == 3);
  CHECK(count(outcome, counter) > 0);
}

TEST_CASE("an owner whose pods fail is slowed down, and a daemon that slows down each pod by itself is found") {
  const auto [shape, rule] = GENERATE(std::pair("fails", "a failing owner is launched for ever more slowly"),
                                      std::pair("unsupported", "a refused pod is shown before it fails"));
  const auto it = std::ranges::find(shapes(), shape, &Shape::name);
  REQUIRE(it != shapes().end());
  const Plan plan =
      parse_plan("spillway-simulation 1\nworld length=200000\ncloud boot=0\nat 5000 owner replicas=2 shape=" +
                 std::to_string(it - shapes().begin()) + "\n")
          .value();
  const Outcome honest = run(plan);
  CHECK_FALSE(honest.violation.has_value());
  CHECK(count(honest, Counter::kFailed) >= 4);
  const Outcome outcome = run(plan, find_mutant("pod-is-owner"));
  REQUIRE(outcome.violation.has_value());
  CHECK(outcome.violation->rule == rule);
}

TEST_CASE("a planted bug is found, and its plan made small") {
  const Mutant* mutant = find_mutant("no-intent");
  const Outcome outcome = run(parse_plan(kQuiet).value(), mutant);
  REQUIRE(outcome.violation.has_value());
  CHECK(outcome.violation->rule == "the intent stands before money is spent");

  const Plan drawn = draw_plan(1);
  const Plan small = shrink(drawn, outcome.violation->rule, mutant, 60);
  CHECK(small.steps.size() == 1);
  CHECK(small.steps[0].verb == find_verb("owner"));
  REQUIRE(run(small, mutant).violation.has_value());
  CHECK_FALSE(run(small).violation.has_value());
}
