#include "vk-provider/core/lease_fsm.hpp"

#include <algorithm>

namespace spillway::core {

void LeaseFsm::observe(const LeaseView& view, base::TimePoint now) {
  const bool changed = !view_ || view_->version != view.version || view_->exists != view.exists;
  if (changed && view.exists && view.holder != identity_) {
    // A holder may promise more than we would; he is believed.
    theirs_until_ = now + std::max(view.duration, times_.duration);
  }
  view_ = view;
  next_try_ = now;
  if (holding_ && view.exists && view.holder != identity_) holding_ = false;
}

void LeaseFsm::wrote(const LeaseView& view, base::TimePoint sent_at, base::TimePoint now) {
  if (!holding_) {
    acquired_at_ = now;
    // No Lease at all proves nothing: somebody may have deleted that of a living holder.
    handed_over_ = view_ && view_->exists && view_->holder.empty();
  }
  holding_ = true;
  view_ = view;
  valid_until_ = sent_at + times_.duration;
  next_try_ = sent_at + times_.renew_every;
}

void LeaseFsm::failed(base::TimePoint now) { next_try_ = now + times_.retry_every; }

void LeaseFsm::released() {
  holding_ = false;
  valid_until_ = {};
  view_.reset();
}

LeaseDecision LeaseFsm::decide(base::TimePoint now) const {
  LeaseDecision decision;
  if (valid_until_ != base::TimePoint{} && !held(now)) {
    // Also when nobody took it: what we did under it is over, and a new start must look at the world again.
    decision.action = LeaseAction::kLost;
    decision.at = now;
    return decision;
  }
  if (holding_) {
    decision.action = LeaseAction::kRenew;
    decision.at = std::max(next_try_, now);
    return decision;
  }
  const bool free = view_ && (!view_->exists || view_->holder.empty() || theirs_expired(now));
  if (free) {
    decision.action = LeaseAction::kAcquire;
    decision.at = std::max(next_try_, now);
    return decision;
  }
  decision.action = LeaseAction::kWait;
  decision.at = now + times_.look_every;
  if (view_) decision.at = std::min(decision.at, std::max(theirs_until_, now));
  return decision;
}

}  // namespace spillway::core
