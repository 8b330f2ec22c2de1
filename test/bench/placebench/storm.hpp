// Scenario G: two thousand pods in a minute against clouds that misbehave, under a cap. Nothing may be leaked, bought
// twice or spent beyond the cap.
#pragma once

#include <cstdint>

namespace spillway::placebench {

struct StormResult {
  int pods = 0;
  int done = 0;
  double last_done = 0;  // seconds
  int calls = 0;         // creates
  int rate_limited = 0;  // 429
  int ghosts = 0;        // bought behind a 500
  int leaked = 0;        // instances that nobody ends
  int doubles = 0;       // moments at which a pod had two
  int overruns = 0;      // moments at which the clouds billed more than the cap
  double most_burn = 0;  // dollars per hour
  double cap = 0;
  int crowded_probes = 0;  // creates at a pool that cooled, beyond the one with the lease
};

StormResult run_storm(std::uint64_t seed, int pods = 2000);

}  // namespace spillway::placebench
