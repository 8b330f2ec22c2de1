// What one drain home is told by the configuration (docs/drain.md). Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

enum class DrainMode : std::uint8_t { kOff, kEvict, kSurge };
std::string_view to_string(DrainMode mode);

struct DrainRules {
  DrainRules() = default;
  DrainMode mode = DrainMode::kOff;
  int max_concurrent = 2;  // of all controllers; of one it is one
  base::Duration interval{std::chrono::seconds(60)};
  base::Duration min_age{std::chrono::minutes(10)};  // for which a pod was Ready before it is moved
  base::Duration replacement_timeout{std::chrono::minutes(15)};
  base::Duration stall_pause{std::chrono::minutes(10)};
  bool allow_without_pdb = false;
  bool jobs = false;  // move pods of Jobs, too
  bool operator==(const DrainRules&) const = default;
};

}  // namespace spillway::core
