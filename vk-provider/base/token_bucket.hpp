// A rate limit that takes the time as an argument. Pure; one owner, one thread.
#pragma once

#include "vk-provider/base/clock.hpp"

namespace spillway::base {

class TokenBucket {
 public:
  /// `per_second` tokens flow in, at most `burst` are kept; starts full. per_second <= 0 means: no limit.
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  /// Takes a token now or in the future and says when the caller may go ahead (`now` if at once).
  TimePoint reserve(TimePoint now);
  /// What reserve() would say, without taking the token.
  TimePoint next(TimePoint now) const { return TokenBucket(*this).reserve(now); }

 private:
  double per_second_;
  double burst_;
  double tokens_;  // may be negative: reservations of the future
  TimePoint filled_at_{};
  bool started_ = false;
};

}  // namespace spillway::base
