// What a run came to, in figures that can be compared.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "test/bench/placebench/scenario.hpp"
#include "test/bench/placebench/simulate.hpp"

namespace spillway::placebench {

struct Metrics {
  double rent_per_hour = 0;   // dollars per useful GPU hour
  double rent_to_least = 0;   // rent over the least rent
  double total_to_least = 0;  // rent and value of the delay, over the least of it
  double to_running_p50 = 0;  // seconds
  double to_running_p95 = 0;
  double to_running_p99 = 0;
  double slow_share = 0;  // of pods that took more than 600 s to Running
  double calls_per_pod = 0;
  double losses_per_pod = 0;
  double redone_share = 0;  // work done again, of all work
  double wasted_share = 0;  // rent of what never did any work, of all rent
  double delay_hours = 0;   // mean
  double brier = 0;         // of the chances that it believed in; 0 if it has none
};

/// One seed.
Metrics measure(const Scenario& scenario, const RunResult& run);

struct Spread {
  double mean = 0;
  double worst = 0;  // the highest
};
Spread spread_of(const std::vector<Metrics>& seeds, double Metrics::* figure);

/// Of what was believed with about the same chance, how much came true.
struct Bin {
  double believed = 0;  // mean
  double came_true = 0;
  int count = 0;
};
std::array<Bin, 10> bins_of(const std::vector<Bet>& bets);
double brier_of(const std::vector<Bet>& bets);

}  // namespace spillway::placebench
