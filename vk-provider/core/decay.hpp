// How fast what was seen stops to matter. Pure.
#pragma once

#include <array>

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

/// Time in hours, as prices and hazards are counted.
inline double hours(base::Duration d) { return static_cast<double>(d.count()) / 3.6e12; }
base::Duration from_hours(double h);

/// The correlation of a pool's state with itself that much later: 1 at once, 0.55 after an hour, 0.10 after twelve.
/// A sum of exponentials, fitted to the availability of 9 GPU pools over 45 days.
double correlation(base::Duration age);
struct CorrelationPart {
  double share;
  base::Duration life;
};
inline constexpr std::array<CorrelationPart, 3> kCorrelationParts{
    {{0.20, std::chrono::minutes(10)}, {0.35, std::chrono::minutes(72)}, {0.45, std::chrono::hours(8)}}};

/// 1 at once, 1/2 after one half-life.
double halved(base::Duration age, base::Duration half_life);

/// How much likelier than on average a pool is to be taken back when it came back `up` ago: 3 at first, falling as
/// up^-0.55 to 0.3. What is old lives on.
double youth(base::Duration up);

}  // namespace spillway::core
