// Whether something that failed may be tried again: nobody for a while, then one, then more with each success.
//
// Pure; owned by core/beliefs, one for each pool, provider and quota. The one who tries first holds a lease, so that a
// thousand waiting pods make one call. A lease that is never given back ends by itself.
#pragma once

#include <vector>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"

namespace spillway::core {

class Cooling {
 public:
  /// How long a lease is kept for one who does not come back: create deadline, look-up and settling are done by then.
  static constexpr base::Duration kLease = std::chrono::minutes(3);

  struct Opening {
    base::TimePoint at{};    // now or earlier: it may be tried
    bool probing = false;    // somebody else is trying just now; `at` is when his lease ends
    base::Duration again{};  // how long it would cool if that try failed, too
  };
  Opening opening(const base::BackoffPolicy& policy, base::TimePoint now) const;
  /// True once it has failed and not yet recovered: then a try needs a lease.
  bool needs_lease() const { return streak_ > 0 || allowed_ > 0; }

  /// Takes a lease, if one is needed. False if it may not be tried now.
  bool begin(const base::InstanceTag& who, base::TimePoint now);
  void succeeded(const base::InstanceTag& who);
  /// What failed before the cooling began, or because of what began it, counts once. `at_least` is what the other side
  /// asked for.
  void failed(const base::InstanceTag& who, const base::BackoffPolicy& policy, base::TimePoint now,
              base::Duration at_least = {});
  /// The try said nothing about this.
  void given_back(const base::InstanceTag& who);

  int streak() const { return streak_; }
  base::TimePoint until() const { return until_; }

 private:
  struct Lease {
    base::InstanceTag who;
    base::TimePoint until;
  };
  size_t leases(base::TimePoint now) const;

  int streak_ = 0;           // failures in a row
  int allowed_ = 0;          // tries at once while it recovers; 0: no limit, or `streak_` tells
  base::TimePoint until_{};  // nobody before
  std::vector<Lease> leases_;
};

}  // namespace spillway::core
