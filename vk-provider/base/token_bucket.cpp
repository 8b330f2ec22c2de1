#include "vk-provider/base/token_bucket.hpp"

#include <algorithm>

namespace spillway::base {

TimePoint TokenBucket::reserve(TimePoint now) {
  if (per_second_ <= 0) return now;
  if (started_ && now > filled_at_) {
    const double seconds = std::chrono::duration<double>(now - filled_at_).count();
    const double earned = seconds * per_second_;  // by itself: see Random::jittered
    tokens_ = std::min(burst_, tokens_ + earned);
  }
  filled_at_ = started_ ? std::max(filled_at_, now) : now;
  started_ = true;
  tokens_ -= 1;
  if (tokens_ >= 0) return now;
  return now + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
}

}  // namespace spillway::base
