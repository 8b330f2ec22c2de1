#include "vk-provider/core/reconsider.hpp"

#include <algorithm>
#include <cmath>

#include "vk-provider/core/decay.hpp"

namespace spillway::core {

std::optional<base::Money> worth_moving(const MoveQuestion& q, const MoveRules& rules) {
  if (q.ran < rules.least_stay || (q.moved && *q.moved < rules.between_moves)) return std::nullopt;
  const Candidate& there = *q.there;
  if (there.opening.why != Closed::kNo || !there.offer.price_per_hour) return std::nullopt;
  const auto here_price = static_cast<double>(q.price.micros());
  const auto there_price = static_cast<double>(there.offer.price_per_hour->micros());
  const auto value = static_cast<double>(q.worth.value_of_time.micros());
  const double rest = rest_hours(q.worth, q.ran);
  const double start = hours(there.start);
  const double stays = std::exp(-there.hazard * rest);
  // What interruptions cost there and do not cost here.
  const double again = start + (q.worth.checkpoint ? hours(*q.worth.checkpoint) / 2 : rest / 2);
  const double hazard = std::max(0.0, there.hazard - q.here->hazard) * rest * again * (there_price + value);
  const double saved = (here_price - there_price) * rest * std::max(stays, 1 - there.hazard * rest / 2) - hazard;
  const double waited = hours(q.unsaved) + (q.overlaps ? 0 : start);
  const double twice = q.overlaps ? here_price * start : 0;
  const double cost = waited * (here_price + value) + there_price * start + twice +
                      static_cast<double>(there.offer.setup_price.micros()) +
                      static_cast<double>(q.disruption.micros()) + kCallMicros / there.chance;
  if (saved < rules.gain_over_cost * cost) return std::nullopt;
  return base::Money::from_micros(whole_micros(saved - cost));
}

}  // namespace spillway::core
