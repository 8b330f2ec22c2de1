// Runs the pods of a scenario under one policy, event by event.
#pragma once

#include <cstdint>
#include <vector>

#include "test/bench/placebench/policy.hpp"
#include "test/bench/placebench/scenario.hpp"

namespace spillway::placebench {

struct JobResult {
  double rent = 0;         // dollars, of all its instances
  Seconds delay = 0;       // from arrival to done, less the work
  Seconds to_running = 0;  // from arrival to the first Running
  Seconds redone = 0;      // work that was lost and done again
  int calls = 0;           // creates
  int losses = 0;          // instances that were taken back
  double wasted = 0;       // dollars for instances that never ran, and for second ones
};

struct RunResult {
  std::vector<JobResult> jobs;  // in the order of Scenario::jobs
  std::vector<Bet> bets;
  int decisions = 0;
};

RunResult simulate(const Scenario& scenario, Policy& policy);

}  // namespace spillway::placebench
