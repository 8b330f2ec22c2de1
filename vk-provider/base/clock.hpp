// Time, as it is handed to code that decides.
//
// Two clocks, because they answer two questions. TimePoint never jumps and measures waits and deadlines inside this
// process; WallTime is what Kubernetes and clouds write down, and may jump. Decisions take a Now; nobody reads a
// clock in core/.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::base {

using Duration = std::chrono::nanoseconds;

/// Tag of the process-local monotonic clock. It has no now(): ask a Clock.
struct Monotonic {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Monotonic>;
  static constexpr bool is_steady = true;
};
using TimePoint = Monotonic::time_point;
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

/// When an operation must have ended. Made once at the top, passed down, applied at the edge.
using Deadline = TimePoint;

struct Now {
  TimePoint steady;
  WallTime wall;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual WallTime wall() const = 0;
  Now both() const { return {now(), wall()}; }
};

/// The machine's clocks (CLOCK_MONOTONIC, which goes on while the process is stopped, and CLOCK_REALTIME).
class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
  WallTime wall() const override;
};

/// RFC 3339 in UTC with second precision, as metav1.Time writes it: `2026-11-29T21:11:53Z`.
std::string to_rfc3339(WallTime t);
/// RFC 3339 in UTC with six digits, as metav1.MicroTime writes it (Leases).
std::string to_rfc3339_micro(WallTime t);
/// Any RFC 3339 time with `Z` or a numeric offset and any number of fraction digits. Empty on anything else.
std::optional<WallTime> from_rfc3339(std::string_view text);

}  // namespace spillway::base
