// Scenario H: how long decisions take, with tens of thousands of offers.
#pragma once

#include <cstdint>

#include "test/bench/placebench/data.hpp"

namespace spillway::placebench {

/// Microseconds, unless it says otherwise.
struct SpeedResult {
  double warm_p50 = 0;  // 10,000 offers, 64 shapes, beliefs that change all the time
  double warm_p99 = 0;
  double cold_p50 = 0;  // 50,000 offers, the first pod of a shape
  double cold_p99 = 0;
  double redecide_ms = 0;  // 10,000 pods of 256 shapes after a new catalogue of 50,000 offers, its table included
  double table_ms = 0;     // of it: the table
  double explain_us = 0;   // one explanation over 50,000 offers
  double learn_ns = 0;     // one report
  std::uint64_t checksum = 0;
};

SpeedResult measure_speed(const Dataset& data);

}  // namespace spillway::placebench
