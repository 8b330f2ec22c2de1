// What a pool did over time: when it had stock, and what it cost. Repeats from the beginning where it ends.
#pragma once

#include <string>
#include <vector>

namespace spillway::placebench {

/// Seconds since the beginning of a scenario, or of a trace.
using Seconds = double;

class Trace {
 public:
  Trace() = default;
  Trace(bool up_first, std::vector<Seconds> changes, Seconds length)
      : up_first_(up_first), changes_(std::move(changes)), length_(length) {}

  bool up(Seconds t) const;
  /// The first time at or after t at which it is up (down); infinity if there is none.
  Seconds next_up(Seconds t) const { return next(t, true); }
  Seconds next_down(Seconds t) const { return next(t, false); }
  double availability() const;
  Seconds length() const { return length_; }

 private:
  bool state(size_t change) const { return (change % 2 == 0) == up_first_; }
  Seconds next(Seconds t, bool wanted) const;

  bool up_first_ = true;
  std::vector<Seconds> changes_;  // ascending, inside (0, length)
  Seconds length_ = 0;            // 0: it never changes
};

/// A price over time, as a factor of the price at its beginning.
class PricePath {
 public:
  PricePath() = default;
  /// Times ascending from 0.
  PricePath(std::vector<Seconds> times, std::vector<double> factors, Seconds length)
      : times_(std::move(times)), factors_(std::move(factors)), length_(length) {}
  double at(Seconds t) const;
  /// The next time at which it changes; infinity if it never does.
  Seconds next_change(Seconds t) const;

 private:
  std::vector<Seconds> times_;
  std::vector<double> factors_;
  Seconds length_ = 0;
};

}  // namespace spillway::placebench
