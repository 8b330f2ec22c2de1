// The parts of placebench, on made-up data: what it reads, its worlds, its bounds, and that nobody beats them.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "test/bench/placebench/calibration.hpp"
#include "test/bench/placebench/draw.hpp"
#include "test/bench/placebench/report.hpp"

namespace spillway::placebench {
namespace {

Dataset made_up() {
  auto data = load_data(std::filesystem::path(SPILLWAY_SOURCE_DIR) / "test/data/placebench");
  REQUIRE(data);
  return std::move(*data);
}

Size small(double value = 1) { return {120, 3, value}; }

RunResult run(const Scenario& scenario, const std::string& policy) {
  const auto p = make_policy(policy, scenario.world, 3);
  REQUIRE(p);
  return simulate(scenario, *p);
}

TEST_CASE("trace: up and down, and round again") {
  const Trace trace(true, {10, 30}, 50);
  CHECK(trace.up(0));
  CHECK(trace.up(9));
  CHECK_FALSE(trace.up(10));
  CHECK_FALSE(trace.up(29));
  CHECK(trace.up(30));
  CHECK(trace.up(55));
  CHECK_FALSE(trace.up(60));
  CHECK(trace.next_up(5) == 5);
  CHECK(trace.next_up(12) == 30);
  CHECK(trace.next_down(31) == 60);
  CHECK(trace.next_down(112) == 112);
  CHECK(trace.availability() == Approx(0.6));
  const Trace always;
  CHECK(always.up(1e9));
  CHECK(std::isinf(always.next_down(0)));
}

TEST_CASE("price path: steps, and round again") {
  const PricePath path({0, 10, 20}, {1, 2, 0.5}, 30);
  CHECK(path.at(0) == 1);
  CHECK(path.at(15) == 2);
  CHECK(path.at(45) == 2);
  CHECK(path.next_change(3) == 10);
  CHECK(path.next_change(25) == 30);
  CHECK(PricePath().at(5) == 1);
}

TEST_CASE("data: the made-up set is read, and a bad one is refused with file and line") {
  const Dataset data = made_up();
  CHECK(data.traces.size() == 10);
  CHECK(data.prices.size() == 9);
  CHECK(data.run_times.size() == 101);
  CHECK(data.price_paths.size() == 3);
  CHECK(data.pods.size() == 40);
  CHECK(data.digests.size() == 5);
  CHECK(held_out_set(data) == "made-up-2");
  CHECK(load_data("/nowhere").error() == "/nowhere: is no folder; name one with the CSV files of README.md");
  const auto folder = std::filesystem::temp_directory_path() / "spillway-placebench-test";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(std::filesystem::path(SPILLWAY_SOURCE_DIR) / "test/data/placebench", folder);
  std::ofstream(folder / "philly_runtime_quantiles.csv") << "q,runtime_s\n0,1\n0.5,soon\n";
  CHECK(load_data(folder).error() == "philly_runtime_quantiles.csv:3: 'soon' is no number");
  std::ofstream(folder / "philly_runtime_quantiles.csv") << "q,seconds\n0,1\n";
  CHECK(load_data(folder).error() == "philly_runtime_quantiles.csv: has no column runtime_s");
  std::ofstream(folder / "philly_runtime_quantiles.csv") << "q,runtime_s\n0\n";
  CHECK(load_data(folder).error() == "philly_runtime_quantiles.csv:2: has 1 fields, the header has 2");
  std::filesystem::remove_all(folder);
}

TEST_CASE("world: fate does not depend on the order in which it is asked") {
  const auto scenario = scenario_b(made_up(), small());
  REQUIRE(scenario);
  const Draw first = scenario->world.draw(3, 1000, 7);
  scenario->world.draw(4, 1000, 7);
  const Draw again = scenario->world.draw(3, 1010, 7);
  CHECK(again.start == first.start);
  CHECK(scenario->world.draw(3, 1000, 8).start != first.start);
}

TEST_CASE("simulation: every policy does all the work of every pod, and none beats the bound") {
  const Dataset data = made_up();
  for (const auto& scenario : {scenario_a(data, small()), scenario_b(data, small()), scenario_d(data, small())}) {
    REQUIRE(scenario);
    for (const std::string& name : policy_names()) {
      CAPTURE(scenario->id, name);
      const RunResult result = run(*scenario, name);
      REQUIRE(result.jobs.size() == 120);
      for (size_t j = 0; j < result.jobs.size(); ++j) {
        const JobResult& r = result.jobs[j];
        CHECK(r.calls >= 1);
        CHECK(r.to_running > 0);
        CHECK(r.delay >= 0);
        CHECK(r.rent > 0);
      }
      const Metrics m = measure(*scenario, result);
      CHECK(m.total_to_least >= 1);
      if (scenario->id == "A") CHECK(m.rent_to_least >= 1);
    }
  }
}

TEST_CASE("simulation: the same seed gives the same figures") {
  const auto scenario = scenario_a(made_up(), small());
  REQUIRE(scenario);
  const Metrics first = measure(*scenario, run(*scenario, "index+hedge"));
  const Metrics second = measure(*scenario, run(*scenario, "index+hedge"));
  CHECK(first.total_to_least == second.total_to_least);
  CHECK(first.calls_per_pod == second.calls_per_pod);
}

TEST_CASE("simulation: the index is cheaper than a coin, and knows what it does not know") {
  const auto scenario = scenario_b(made_up(), {600, 3, 1});
  REQUIRE(scenario);
  const RunResult ours = run(*scenario, "index+hedge");
  const Metrics m = measure(*scenario, ours);
  CHECK(m.total_to_least < 0.9 * measure(*scenario, run(*scenario, "random")).total_to_least);
  CHECK(ours.bets.size() > 600);
  CHECK(m.brier < 0.25);
  CHECK(run(*scenario, "skypilot").bets.empty());
}

TEST_CASE("calibration: beliefs are better than the last outcome and than three minutes") {
  const Dataset data = made_up();
  const double ours = brier_of(calibrate(data, 3));
  CHECK(ours > 0.02);
  CHECK(ours < brier_of(calibrate_last_outcome(data, 3)));
  CHECK(ours < brier_of(calibrate_three_minutes(data, 3)));
}

TEST_CASE("storm: nothing leaks, nothing is bought twice, no cap is passed") {
  const StormResult g = run_storm(5, 400);
  CHECK(g.done == 400);
  CHECK(g.leaked == 0);
  CHECK(g.doubles == 0);
  CHECK(g.overruns == 0);
  CHECK(g.ghosts > 0);
  CHECK(g.most_burn <= g.cap);
}

TEST_CASE("report: figures, musts and where somebody else wins") {
  Report report;
  report.folder = "somewhere";
  report.pods = 10;
  report.seeds = 2;
  Metrics good;
  good.total_to_least = 1.10;
  Metrics bad = good;
  bad.total_to_least = 1.20;
  report.rows = {{"B", "what", 0.2, "cheapest5", {good, good}, {}},
                 {"B", "what", 0.2, "index+hedge", {good, bad}, {{0.9, true}}}};
  const auto musts = musts_of(report);
  REQUIRE(musts.size() == 1);
  CHECK(musts[0].value == Approx(1.15));
  CHECK_FALSE(musts[0].met());
  const std::string page = to_markdown(report);
  CHECK_THAT(page, Catch::Contains("| B, v=0.2: rent and delay over the bound | 1.135 | 1.150 | MISSED |"));
  CHECK_THAT(page, Catch::Contains("In B at v = 0.2 `cheapest5` wins: 1.100 against 1.150."));
  CHECK_THAT(page, Catch::Contains("1.150 (1.200)"));
  CHECK_THAT(to_json(report), Catch::Contains("\"worst\": 1.2"));
}

}  // namespace
}  // namespace spillway::placebench
