// What happens to a world, as data: its settings, and what users, faults and daemons do at which time.
//
// A value. It is drawn from a seed, written to a file when it found something, read back by `simulation replay`, and
// made smaller by dropping steps. What it does not say (latencies, the order of what is ready at once, the daemon's
// dice) follows from its seed by named streams.
//
//   spillway-simulation 1
//   seed 42
//   world nodes=1 length=240000 ...
//   cloud boot=2000 unique=1 ...
//   at 1500 owner kind=0 shape=3 replicas=2
//
// A line that begins with # says something to people. All times are milliseconds.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"

namespace spillway::simulation {

class World;

/// A named number and what it may be; the generator stays between `low` and `high`.
struct Field {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
  std::int64_t low;
  std::int64_t high;
};

inline constexpr size_t kMaxFields = 6;
using Args = std::array<std::int64_t, kMaxFields>;

/// One kind of step. The table of all of them is in verbs.cpp.
struct Verb {
  std::string_view name;
  std::string_view what;
  int weight;  // how often the generator draws it, against the others; 0: it has its own rule
  std::vector<Field> fields;
  void (*apply)(World&, const Args&);
};

const std::vector<Verb>& verbs();
const Verb* find_verb(std::string_view name);

struct Step {
  std::int64_t at = 0;
  const Verb* verb = nullptr;
  Args args{};
};

struct Settings {
  std::int64_t nodes = 1;
  std::int64_t length = 240'000;  // until everybody becomes calm
  std::int64_t latency = 10;      // of the API server, at most, when nothing is wrong
  std::int64_t standby = 0;       // a second daemon from the beginning
  std::int64_t cap = 0;           // micro-dollars per hour of a pod; 0: none
  std::int64_t budget = 0;        // the same of all that runs at once; 0: none
};

struct CloudTraits {
  std::int64_t boot = 1'000;
  std::int64_t unique = 1;  // one instance for each tag
  std::int64_t keeps = 1;   // a stopped instance stays until it is terminated
  std::int64_t settle = 5'000;
  std::int64_t lag = 0;        // a listing leaves out what is younger
  std::int64_t latency = 100;  // of one call, at most, when nothing is wrong
  std::int64_t step = 0;       // prices walk so often
  std::int64_t permille = 0;   // and at most so far
  std::int64_t stock = 0;      // of every offer; 0: as in the catalogue
};

struct Plan {
  std::uint64_t seed = 1;
  Settings settings;
  std::vector<CloudTraits> clouds;
  std::vector<Step> steps;  // those of the same time happen in this order
};

/// The same seed gives the same plan, everywhere.
Plan draw_plan(std::uint64_t seed);
/// The same with few pods: more happens to each of them.
Plan draw_thin_plan(std::uint64_t seed);

std::string to_text(const Plan& plan);
/// kInvalid with the line and what is wrong with it.
base::Result<Plan> parse_plan(std::string_view text);

}  // namespace spillway::simulation
