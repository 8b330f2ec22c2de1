// Random numbers that depend on what is asked and not on when: every policy sees the same world.
#pragma once

#include <cstdint>

namespace spillway::placebench {

constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

template <class... T>
constexpr std::uint64_t mixed_all(std::uint64_t seed, T... parts) {
  ((seed = mixed(seed ^ static_cast<std::uint64_t>(parts))), ...);
  return seed;
}

/// In (0, 1).
constexpr double unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11U) + 0.5) * 0x1.0p-53; }

/// Normal, mean 0 and deviation 1.
double normal(std::uint64_t bits);

}  // namespace spillway::placebench
