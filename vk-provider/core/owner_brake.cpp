#include "vk-provider/core/owner_brake.hpp"

#include <algorithm>

namespace spillway::core {
namespace {

constexpr base::Duration kHour = std::chrono::hours(1);

/// When fewer than `most` of these times will lie within an hour; TimePoint(): at once.
base::TimePoint fewer_at(std::vector<base::TimePoint> times, size_t most) {
  if (times.size() < most) return {};
  const auto kth = times.begin() + static_cast<std::ptrdiff_t>(times.size() - most);
  std::ranges::nth_element(times, kth);
  return *kth + kHour;
}

}  // namespace

void OwnerBrake::decay(Level& level, base::TimePoint now) {
  while (level.failures > 0 && now - level.last_failure >= kQuiet) {
    --level.failures;
    level.last_failure += kQuiet;
  }
  while (!level.failed.empty() && now - level.failed.front() >= kHour) level.failed.pop_front();
  if (level.refusals > 0 && now - level.hold_until >= kQuiet) level.refusals = 0;
}

base::TimePoint OwnerBrake::hold_refused(const std::string& owner, base::TimePoint now) {
  Level& level = owners_[owner];
  decay(level, now);
  if (now < level.hold_until) return level.hold_until;
  ++changes_;
  ++level.refusals;
  level.hold_until = now + base::backoff_delay(kHold, level.refusals);
  return level.hold_until;
}

base::TimePoint OwnerBrake::held_until(Level& level) const {
  std::vector<base::TimePoint> all;
  std::vector<base::TimePoint> of_namespace;
  for (const auto& [owner, other] : owners_) {
    all.insert(all.end(), other.failed.begin(), other.failed.end());
    if (other.ns == level.ns) of_namespace.insert(of_namespace.end(), other.failed.begin(), other.failed.end());
  }
  // What others do holds it only as long as it counts as failing itself.
  const base::TimePoint others = std::min(
      std::max(fewer_at(std::move(of_namespace), kFailuresOfNamespace), fewer_at(std::move(all), kFailuresInAll)),
      level.last_failure + level.failures * kQuiet);
  // Of its own failures one launch in ten minutes shows whether they are over.
  const base::TimePoint last_launch = level.next_launch - base::backoff_delay(kLaunch, level.failures);
  const base::TimePoint own =
      std::min(fewer_at(std::vector<base::TimePoint>(level.failed.begin(), level.failed.end()), kFailuresOfOwner),
               last_launch + kLaunch.cap);
  // While it may not launch nothing can fail: that is no quiet.
  if (own > level.next_launch) level.last_failure = std::max(level.last_failure, own);
  return std::max({level.next_launch, own, others});
}

void OwnerBrake::note_failure(const std::string& owner, const std::string& ns, base::TimePoint launched,
                              base::TimePoint now) {
  Level& level = owners_[owner];
  decay(level, now);
  level.ns = ns;
  level.failed.push_back(now);
  if (level.failed.size() > kFailuresOfOwner) level.failed.pop_front();
  level.last_failure = now;
  ++changes_;
  // Of a generation that was launched together one failure counts. A later launch that fails counts also if it fails
  // before the next one is due: otherwise who fails fast would never be slowed down further.
  if (level.failures > 0) {
    // By an earlier process: with the owner's last launch, as far as anybody knows. A launch that was due by now was
    // made, though nobody came to write it down.
    if (launched == base::TimePoint()) {
      const bool was_due = now >= level.next_launch;
      launched = was_due ? now : level.next_launch - base::backoff_delay(kLaunch, level.failures);
    }
    if (launched <= level.raised) return;
  }
  ++level.failures;
  level.raised = now;
  level.next_launch = now + base::backoff_delay(kLaunch, level.failures);
}

base::TimePoint OwnerBrake::may_launch_at(const std::string& owner, base::TimePoint now) {
  const auto it = owners_.find(owner);
  if (it == owners_.end()) return now;
  decay(it->second, now);
  if (it->second.failures == 0) return now;
  return held_until(it->second);
}

void OwnerBrake::note_launch(const std::string& owner, base::TimePoint now) {
  const auto it = owners_.find(owner);
  if (it == owners_.end() || it->second.failures == 0) return;
  ++changes_;
  it->second.next_launch = now + base::backoff_delay(kLaunch, it->second.failures);
}

void OwnerBrake::forget_quiet(base::TimePoint now) {
  for (auto it = owners_.begin(); it != owners_.end();) {
    decay(it->second, now);
    const bool quiet = it->second.failures == 0 && it->second.refusals == 0;
    changes_ += quiet ? 1 : 0;
    it = quiet ? owners_.erase(it) : std::next(it);
  }
}

std::vector<OwnerBrake::Kept> OwnerBrake::state(base::Now now) const {
  const auto wall = [&](base::TimePoint t) {
    return now.wall + std::chrono::floor<std::chrono::microseconds>(t - now.steady);
  };
  std::vector<Kept> out;
  for (const auto& [owner, level] : owners_) {
    Kept& kept = out.emplace_back();
    kept.owner = owner;
    kept.failures = level.failures;
    kept.raised = wall(level.raised);
    kept.last_failure = wall(level.last_failure);
    kept.next_launch = wall(level.next_launch);
    kept.refusals = level.refusals;
    kept.hold_until = wall(level.hold_until);
    kept.ns = level.ns;
    std::ranges::transform(level.failed, std::back_inserter(kept.failed), wall);
  }
  std::ranges::sort(out, {}, &Kept::owner);
  return out;
}

void OwnerBrake::resume(const std::vector<Kept>& state, base::Now now) {
  // `most`: how far ahead it can lie.
  const auto steady = [&](base::WallTime t, base::Duration most) {
    return std::min(now.steady + base::Duration(t - now.wall), now.steady + most);
  };
  for (const Kept& kept : state) {
    const auto [it, added] = owners_.try_emplace(kept.owner);
    if (!added) continue;
    Level& level = it->second;
    level.failures = kept.failures;
    level.raised = steady(kept.raised, base::Duration(0));
    level.last_failure = steady(kept.last_failure, base::Duration(0));
    level.next_launch = steady(kept.next_launch, kLaunch.cap);
    level.refusals = kept.refusals;
    level.hold_until = steady(kept.hold_until, kHold.cap);
    level.ns = kept.ns;
    for (const base::WallTime t : kept.failed) level.failed.push_back(steady(t, base::Duration(0)));
  }
}

}  // namespace spillway::core
