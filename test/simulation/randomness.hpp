// Streams of random numbers by name, all from one seed.
//
// What is drawn from one stream does not move another one: a fault that is taken out of a plan leaves the rest of the
// world as it was.
#pragma once

#include <cstdint>
#include <string_view>

#include "vk-provider/base/random.hpp"

namespace spillway::simulation {

inline std::uint64_t mix(std::uint64_t seed, std::string_view name) {
  std::uint64_t h = seed ^ 0xCBF29CE484222325U;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  h ^= h >> 31;
  h *= 0xBF58476D1CE4E5B9U;
  return h ^ (h >> 29);
}

/// SplitMix64: a stream costs eight bytes, and a world has many.
class Stream final : public base::Random {
 public:
  Stream(std::uint64_t seed, std::string_view name) : state_(mix(seed, name)) {}

  std::uint64_t next() override {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  /// Uniform from `least` to `most`, both included.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace spillway::simulation
