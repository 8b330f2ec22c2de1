// The scenarios: a world, the pods that come to it, and the least that they could cost.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "test/bench/placebench/data.hpp"
#include "test/bench/placebench/world.hpp"

namespace spillway::placebench {

struct Job {
  std::uint64_t id = 0;
  Seconds arrival = 0;
  Seconds work = 0;        // of running
  Seconds checkpoint = 0;  // work is saved so often
  double value = 0;        // dollars per hour of delay
};

struct Scenario {
  std::string id;
  std::string what;  // in one line
  World world;
  std::vector<Job> jobs;
  bool moves = false;  // pods may be moved while they run
  bool walks = false;  // the bound may move at every moment; otherwise it chooses one place and one time to start
};

/// The least that a job can cost: in rent alone, and with the value of its delay. No policy can do it.
struct Least {
  double rent = 0;
  double total = 0;
};
Least least_cost(const Scenario& scenario, const Job& job);

struct Size {
  int pods = 3000;
  std::uint64_t seed = 1;
  double value = 1;  // dollars per hour of delay
};

/// Spot zones of one instance type that are taken back, and three on-demand offers: preemption, regions, lock-in.
/// `set` names the traces; empty: the availability set with the most zones.
std::expected<Scenario, std::string> scenario_a(const Dataset& data, const Size& size, const std::string& set = {});
/// Twenty clouds that sell one model at very different prices, are sold out at times, and seldom start it at all.
std::expected<Scenario, std::string> scenario_b(const Dataset& data, const Size& size);
/// The same with prices that move.
std::expected<Scenario, std::string> scenario_d(const Dataset& data, const Size& size);

/// The name of a set of preemption traces with GPUs, for testing on what was not tuned on; empty if there is none.
std::string held_out_set(const Dataset& data);

}  // namespace spillway::placebench
