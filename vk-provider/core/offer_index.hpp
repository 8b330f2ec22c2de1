// What an offer costs a pod, all told: the number by which offers are compared, and the parts that it is made of.
//
// Pure. docs/placement.md derives it. Dollars in micro-dollars, as doubles on the way and whole at the end.
#pragma once

#include <cstdint>

#include "vk-provider/core/beliefs.hpp"
#include "vk-provider/core/shape.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::core {

/// Cost of one create call: rate limits and our own time.
inline constexpr double kCallMicros = 5'000;  // $0.005

/// index = fixed + (per_try + per_hour_of_wait * wait) / chance. Rises with the price, falls with the chance.
struct Score {
  double fixed = 0;
  double per_try = 0;
  double per_hour_of_wait = 0;

  double at(double chance, double wait_hours) const {
    return fixed + (per_try + per_hour_of_wait * wait_hours) / chance;
  }
  /// Nothing can make it less.
  double least() const { return fixed + per_try; }
};

/// The parts of `index`, each in micro-dollars.
struct IndexParts {
  double rent = 0;   // price of the time that it runs and boots, and what is paid once
  double start = 0;  // the pod's time while it boots
  double loss = 0;   // interruptions: work done again, and the time until it runs again
  double tries = 0;  // calls, and machines that never start
  double wait = 0;   // until the pool may be asked
  double sum() const { return rent + start + loss + tries + wait; }
};

struct IndexInput {
  const model::Offer* offer = nullptr;
  const Traits* traits = nullptr;
  const Shape* shape = nullptr;
  double price_factor = 1;   // shadow price of a budget that is nearly used
  base::Duration has_run{};  // what would be lost without checkpoints
};

/// How much longer a pod runs, in hours: as expected, or as long again as it has run; what is beyond a day is not
/// believed.
double rest_hours(const Worth& worth, base::Duration has_run);
Score score_of(const IndexInput& in);
IndexParts parts_of(const IndexInput& in, double chance, double wait_hours);
/// Whole micro-dollars, the end of the scale for what is beyond.
std::int64_t whole_micros(double micros);

}  // namespace spillway::core
