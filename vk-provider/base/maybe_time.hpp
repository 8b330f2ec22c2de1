// A time that may be missing, in the room of the time alone: half of what a std::optional takes.
//
// A value that reads as an optional. For records of which there are ten thousand.
#pragma once

#include <concepts>
#include <optional>

namespace spillway::base {

template <class Time>
class MaybeTime {
 public:
  MaybeTime() = default;
  template <std::convertible_to<Time> T>
  MaybeTime(const T& time) : time_(time) {}   // NOLINT(google-explicit-constructor): as optional
  MaybeTime(const std::optional<Time>& time)  // NOLINT(google-explicit-constructor): it is read as one
      : time_(time.value_or(kNone)) {}

  explicit operator bool() const { return time_ != kNone; }
  bool has_value() const { return time_ != kNone; }
  const Time& operator*() const { return time_; }
  Time value_or(const Time& other) const { return has_value() ? time_ : other; }
  void reset() { time_ = kNone; }
  operator std::optional<Time>() const {  // NOLINT(google-explicit-constructor): it is read as one
    return has_value() ? std::optional(time_) : std::nullopt;
  }

  friend bool operator==(const MaybeTime& a, const MaybeTime& b) { return a.time_ == b.time_; }
  template <std::convertible_to<Time> T>
  friend bool operator==(const MaybeTime& a, const T& b) {
    return a.time_ == b;
  }
  friend bool operator==(const MaybeTime& a, const std::optional<Time>& b) { return a == MaybeTime(b); }

 private:
  static constexpr Time kNone = Time::min();

  Time time_ = kNone;
};

}  // namespace spillway::base
