#include "vk-provider/core/cooling.hpp"

#include <algorithm>

namespace spillway::core {
namespace {
constexpr int kRecovered = 64;  // so many at once without a failure, and the limit falls
}

size_t Cooling::leases(base::TimePoint now) const {
  return static_cast<size_t>(std::ranges::count_if(leases_, [&](const Lease& l) { return l.until > now; }));
}

Cooling::Opening Cooling::opening(const base::BackoffPolicy& policy, base::TimePoint now) const {
  Opening out;
  if (!needs_lease()) return out;
  out.again = base::backoff_delay(policy, streak_ + 1);
  out.at = until_;
  if (until_ > now) return out;
  const size_t limit = streak_ > 0 ? 1 : static_cast<size_t>(allowed_);
  if (leases(now) < limit) return out;
  out.probing = true;
  out.at = std::ranges::min(leases_, {}, [&](const Lease& l) {
             return l.until > now ? l.until : base::TimePoint::max();
           }).until;
  return out;
}

bool Cooling::begin(const base::InstanceTag& who, base::TimePoint now) {
  if (!needs_lease()) return true;
  if (until_ > now) return false;
  std::erase_if(leases_, [&](const Lease& l) { return l.until <= now || l.who == who; });
  const size_t limit = streak_ > 0 ? 1 : static_cast<size_t>(allowed_);
  if (leases_.size() >= limit) return false;
  leases_.push_back({who, now + kLease});
  return true;
}

void Cooling::given_back(const base::InstanceTag& who) {
  std::erase_if(leases_, [&](const Lease& l) { return l.who == who; });
}

void Cooling::succeeded(const base::InstanceTag& who) {
  given_back(who);
  if (!needs_lease()) return;
  allowed_ = streak_ > 0 ? 2 : allowed_ * 2;
  streak_ = 0;
  until_ = {};
  if (allowed_ <= kRecovered) return;
  allowed_ = 0;
  leases_.clear();
}

void Cooling::failed(const base::InstanceTag& who, const base::BackoffPolicy& policy, base::TimePoint now,
                     base::Duration at_least) {
  given_back(who);
  const bool news = until_ <= now;
  if (news) ++streak_;
  allowed_ = 0;
  const base::Duration wait = news ? std::max(base::backoff_delay(policy, streak_), at_least) : at_least;
  until_ = std::max(until_, now + wait);
}

}  // namespace spillway::core
