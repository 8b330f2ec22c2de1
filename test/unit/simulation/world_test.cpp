#include "test/simulation/world.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "test/simulation/runner.hpp"

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
  CHECK(outcome.coverage[static_cast<size_t>(Counter::kRunning)] == 3);
  CHECK(outcome.coverage[static_cast<size_t>(Counter::kKilled)] == 0);
}

TEST_CASE("a daemon that is killed, frozen and stopped comes back to the same pods") {
  const Outcome outcome = run(parse_plan(std::string(kQuiet) + "at 5400 kill which=0 after=7 restart=1000\n"
                                                               "at 20000 freeze which=0 lasts=50000\n"
                                                               "at 55000 stop which=0 restart=100\n")
                                  .value());
  CHECK_FALSE(outcome.violation.has_value());
  CHECK(outcome.lives == 3);
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
