// placebench: how well placements are chosen, in worlds made of recorded data. README.md says how to read it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "test/bench/placebench/calibration.hpp"
#include "test/bench/placebench/report.hpp"

namespace spillway::placebench {
namespace {

struct Options {
  std::string data;
  std::string out = "build/placebench";
  std::string only;  // scenarios, as one word: "ABDGHC"
  std::string policies;
  int seeds = 10;
  int pods = 3000;
  int jobs = 1;
  bool check = false;
};

struct Cell {
  std::string scenario;
  double value = 1;
  std::string policy;
};

std::vector<Cell> cells_of(const Options& options, const Dataset& data) {
  struct Wanted {
    char letter;
    const char* scenario;
    std::vector<double> values;
  };
  const std::vector<Wanted> all{
      {'A', "A", {0.2, 1, 5}}, {'A', "A-held-out", {1}}, {'B', "B", {0.2, 1, 5}}, {'D', "D", {1}}};
  std::vector<Cell> out;
  for (const Wanted& w : all) {
    if (!options.only.empty() && options.only.find(w.letter) == std::string::npos) continue;
    if (std::string(w.scenario) == "A-held-out" && held_out_set(data).empty()) continue;
    for (const double value : w.values) {
      for (const std::string& policy : policy_names()) {
        if (options.policies.empty() || (options.policies + ",").find(policy + ",") != std::string::npos) {
          out.push_back({w.scenario, value, policy});
        }
      }
    }
  }
  return out;
}

std::expected<Scenario, std::string> scenario_of(const Dataset& data, const std::string& id, const Size& size) {
  if (id == "B") return scenario_b(data, size);
  if (id == "D") return scenario_d(data, size);
  return scenario_a(data, size, id == "A" ? "" : held_out_set(data));
}

std::expected<Row, std::string> run_cell(const Dataset& data, const Cell& cell, const Options& options) {
  Row row;
  row.scenario = cell.scenario;
  row.value = cell.value;
  row.policy = cell.policy;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    const Size size{options.pods, static_cast<std::uint64_t>(seed), cell.value};
    const auto scenario = scenario_of(data, cell.scenario, size);
    if (!scenario) return std::unexpected(scenario.error());
    row.what = scenario->what;
    const auto policy = make_policy(cell.policy, scenario->world, size.seed);
    const RunResult run = simulate(*scenario, *policy);
    row.seeds.push_back(measure(*scenario, run));
    row.bets.insert(row.bets.end(), run.bets.begin(), run.bets.end());
  }
  return row;
}

bool wanted(const Options& options, char letter) {
  return options.only.empty() || options.only.find(letter) != std::string::npos;
}

std::expected<Report, std::string> run_all(const Options& options, const Dataset& data) {
  Report report;
  report.folder = data.folder;
  report.digests = data.digests;
  report.pods = options.pods;
  report.seeds = options.seeds;
  // Before anything else heats the machine.
  if (wanted(options, 'H')) report.speed = measure_speed(data);
  if (wanted(options, 'G')) report.storm = run_storm(1);
  if (wanted(options, 'C')) {
    report.calibrations.push_back({"beliefs", calibrate(data, 30)});
    report.calibrations.push_back({"last outcome for ever", calibrate_last_outcome(data, 30)});
    report.calibrations.push_back({"sold out for 3 minutes", calibrate_three_minutes(data, 30)});
  }
  const std::vector<Cell> cells = cells_of(options, data);
  for (size_t i = 0; i < cells.size(); i += static_cast<size_t>(options.jobs)) {
    std::vector<std::future<std::expected<Row, std::string>>> running;
    for (size_t k = i; k < std::min(cells.size(), i + static_cast<size_t>(options.jobs)); ++k) {
      running.push_back(
          std::async(std::launch::async, run_cell, std::cref(data), std::cref(cells[k]), std::cref(options)));
    }
    for (auto& future : running) {
      auto row = future.get();
      if (!row) return std::unexpected(row.error());
      report.rows.push_back(std::move(*row));
    }
  }
  return report;
}

int run(const Options& options) {
  const auto data = load_data(options.data);
  if (!data) {
    fmt::print(stderr, "placebench: {}\n", data.error());
    return 2;
  }
  const auto report = run_all(options, *data);
  if (!report) {
    fmt::print(stderr, "placebench: {}\n", report.error());
    return 2;
  }
  std::filesystem::create_directories(options.out);
  std::ofstream(std::filesystem::path(options.out) / "results.json") << to_json(*report);
  const std::string page = to_markdown(*report);
  std::ofstream(std::filesystem::path(options.out) / "results.md") << page;
  fmt::print("{}", page);
  if (!options.check) return 0;
  const auto musts = musts_of(*report);
  return std::ranges::all_of(musts, &Must::met) ? 0 : 1;
}

}  // namespace
}  // namespace spillway::placebench

int main(int argc, char** argv) {
  spillway::placebench::Options options;
  CLI::App app("How well placements are chosen, in worlds made of recorded data.");
  app.add_option("--data", options.data, "folder with the CSV files")->required();
  app.add_option("--out", options.out, "folder for results.json and results.md")->capture_default_str();
  app.add_option("--only", options.only, "letters of scenarios: A B D G H, and C for calibration");
  app.add_option("--policies", options.policies, "names with commas between");
  app.add_option("--seeds", options.seeds)->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--pods", options.pods)->capture_default_str()->check(CLI::Range(10, 1000000));
  app.add_option("--jobs", options.jobs, "scenarios at once")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_flag("--check", options.check, "exit 1 if a must is missed");
  CLI11_PARSE(app, argc, argv);
  return spillway::placebench::run(options);
}
