#include "test/bench/placebench/metrics.hpp"

#include <algorithm>
#include <cmath>

namespace spillway::placebench {
namespace {

constexpr double kHour = 3600;
constexpr double kSlow = 600;

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto i = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(i));
  return values[i];
}

}  // namespace

Metrics measure(const Scenario& scenario, const RunResult& run) {
  double work = 0;
  double rent = 0;
  double delay_value = 0;
  double delay = 0;
  Least least;
  double redone = 0;
  double wasted = 0;
  double calls = 0;
  double losses = 0;
  double slow = 0;
  std::vector<double> to_running;
  for (size_t j = 0; j < run.jobs.size(); ++j) {
    const Job& job = scenario.jobs[j];
    const JobResult& r = run.jobs[j];
    const Least l = least_cost(scenario, job);
    least.rent += l.rent;
    least.total += l.total;
    work += job.work;
    rent += r.rent;
    delay += r.delay;
    delay_value += job.value * r.delay / kHour;
    redone += r.redone;
    wasted += r.wasted;
    calls += r.calls;
    losses += r.losses;
    slow += r.to_running > kSlow ? 1 : 0;
    to_running.push_back(r.to_running);
  }
  const auto pods = static_cast<double>(run.jobs.size());
  Metrics m;
  m.rent_per_hour = rent / (work / kHour);
  m.rent_to_least = rent / least.rent;
  m.total_to_least = (rent + delay_value) / least.total;
  m.to_running_p50 = quantile(to_running, 0.50);
  m.to_running_p95 = quantile(to_running, 0.95);
  m.to_running_p99 = quantile(to_running, 0.99);
  m.slow_share = slow / pods;
  m.calls_per_pod = calls / pods;
  m.losses_per_pod = losses / pods;
  m.redone_share = redone / work;
  m.wasted_share = rent > 0 ? wasted / rent : 0;
  m.delay_hours = delay / pods / kHour;
  m.brier = brier_of(run.bets);
  return m;
}

Spread spread_of(const std::vector<Metrics>& seeds, double Metrics::* figure) {
  Spread out;
  for (const Metrics& m : seeds) {
    out.mean += m.*figure / static_cast<double>(seeds.size());
    out.worst = std::max(out.worst, m.*figure);
  }
  return out;
}

double brier_of(const std::vector<Bet>& bets) {
  double sum = 0;
  for (const Bet& bet : bets) sum += (bet.chance - (bet.won ? 1 : 0)) * (bet.chance - (bet.won ? 1 : 0));
  return bets.empty() ? 0 : sum / static_cast<double>(bets.size());
}

std::array<Bin, 10> bins_of(const std::vector<Bet>& bets) {
  std::array<Bin, 10> bins{};
  for (const Bet& bet : bets) {
    Bin& bin = bins.at(std::min<size_t>(static_cast<size_t>(bet.chance * 10), 9));
    bin.believed += bet.chance;
    bin.came_true += bet.won ? 1 : 0;
    ++bin.count;
  }
  for (Bin& bin : bins) {
    if (bin.count == 0) continue;
    bin.believed /= bin.count;
    bin.came_true /= bin.count;
  }
  return bins;
}

}  // namespace spillway::placebench
