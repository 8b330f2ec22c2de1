#include "vk-provider/core/owner_brake.hpp"

#include <algorithm>

namespace spillway::core {

void OwnerBrake::decay(Level& level, base::TimePoint now) {
  while (level.failures > 0 && now - level.last_failure >= kQuiet) {
    --level.failures;
    level.last_failure += kQuiet;
  }
  if (level.refusals > 0 && now - level.hold_until >= kQuiet) level.refusals = 0;
}

base::TimePoint OwnerBrake::hold_refused(const std::string& owner, base::TimePoint now) {
  Level& level = owners_[owner];
  decay(level, now);
  if (now < level.hold_until) return level.hold_until;
  ++level.refusals;
  level.hold_until = now + base::backoff_delay(kHold, level.refusals);
  return level.hold_until;
}

void OwnerBrake::note_failure(const std::string& owner, base::TimePoint launched, base::TimePoint now) {
  Level& level = owners_[owner];
  decay(level, now);
  level.last_failure = now;
  // Of a generation that was launched together one failure counts. A later launch that fails counts also if it fails
  // before the next one is due: otherwise who fails fast would never be slowed down further.
  if (level.failures > 0 && launched <= level.raised) return;
  ++level.failures;
  level.raised = now;
  level.next_launch = now + base::backoff_delay(kLaunch, level.failures);
}

base::TimePoint OwnerBrake::may_launch_at(const std::string& owner, base::TimePoint now) {
  const auto it = owners_.find(owner);
  if (it == owners_.end()) return now;
  decay(it->second, now);
  return it->second.failures == 0 ? now : it->second.next_launch;
}

void OwnerBrake::note_launch(const std::string& owner, base::TimePoint now) {
  const auto it = owners_.find(owner);
  if (it == owners_.end() || it->second.failures == 0) return;
  it->second.next_launch = now + base::backoff_delay(kLaunch, it->second.failures);
}

void OwnerBrake::forget_quiet(base::TimePoint now) {
  for (auto it = owners_.begin(); it != owners_.end();) {
    decay(it->second, now);
    it = it->second.failures == 0 && it->second.refusals == 0 ? owners_.erase(it) : std::next(it);
  }
}

}  // namespace spillway::core
