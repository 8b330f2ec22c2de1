// The one source of randomness, injected, so that a run can be repeated from its seed.
//
// Owned by the daemon; used on the reactor thread only. Not for keys or passwords.
#pragma once

#include <cstdint>
#include <random>

#include "vk-provider/base/clock.hpp"

namespace spillway::base {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// `d` lengthened or shortened by up to `fraction` of itself.
  Duration jittered(Duration d, double fraction) {
    // Two statements: in one, machines with a fused multiply-add round it another way, and a seed would repeat nothing.
    const double swing = fraction * (2.0 * unit() - 1.0);
    const double factor = 1.0 + swing;
    return Duration(static_cast<Duration::rep>(static_cast<double>(d.count()) * factor));
  }
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace spillway::base
