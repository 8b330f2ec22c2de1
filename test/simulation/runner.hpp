// Many runs: seed after seed, in several processes, until the lives, seeds or minutes are used up.
//
// Each worker is a process of its own, so that a crash of the daemon is a finding like any other, with its seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/simulation/world.hpp"

namespace spillway::simulation {

struct Batch {
  std::uint64_t first = 1;                    // seed
  std::optional<std::uint64_t> last;          // seed
  std::optional<std::uint64_t> lives;         // enough
  std::optional<std::chrono::seconds> limit;  // of real time
  int jobs = 1;
  const Mutant* mutant = nullptr;
  bool keep_going = false;  // past a finding
};

struct Finding {
  std::uint64_t seed = 0;
  Violation violation;
};

struct Tally {
  std::uint64_t lives = 0;
  std::uint64_t seeds = 0;
  base::Duration virtual_time{0};
  Coverage coverage;
  std::vector<Finding> findings;
};

/// What a batch runs for a seed: planted bugs are looked for with few pods.
Plan plan_of(const Batch& batch, std::uint64_t seed);

/// Ends at the first finding, unless it is to keep going. `progress` is called about once a second.
Tally run_batch(const Batch& batch, const std::function<void(const Tally&)>& progress);

/// One plan, in a process of its own.
std::optional<Violation> run_apart(const Plan& plan, const Mutant* mutant);

/// A smaller plan that breaks the same rule: without the steps, owners, replicas and clouds that do not matter. Takes
/// at most `tries` runs.
Plan shrink(Plan plan, const std::string& rule, const Mutant* mutant, int tries);

}  // namespace spillway::simulation
