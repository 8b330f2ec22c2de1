// Slows down a failing owner: neither Failed pods nor launches can loop.
//
// A ReplicaSet replaces a Failed pod at once. So a pod that nobody can run is held Pending before it is Failed, and
// after a pod that failed the next launch of the same controller waits. Per controller UID; a bare pod is its own
// owner. Pure; owned by pod_controller. Its state survives restarts: brake_keeper writes it down.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::core {

class OwnerBrake {
 public:
  /// How long a refused pod stays Pending: 60 s, doubled to 10 min.
  static constexpr base::BackoffPolicy kHold{std::chrono::seconds(60), std::chrono::minutes(10)};
  /// How long the launch after a failed one waits: 10 s, doubled to 10 min.
  static constexpr base::BackoffPolicy kLaunch{std::chrono::seconds(10), std::chrono::minutes(10)};
  /// A level falls by one for each such time without a failure.
  static constexpr base::Duration kQuiet = std::chrono::minutes(10);
  /// Behind that: once so many launches failed within an hour, a failing owner launches once in ten minutes, and one
  /// that fails beside others that do waits until that is over, or until it counts as quiet. All others are never held.
  static constexpr size_t kFailuresOfOwner = 12;
  static constexpr size_t kFailuresOfNamespace = 30;
  static constexpr size_t kFailuresInAll = 60;

  /// When a pod that was refused now may be Failed. Pods that are refused while a hold runs share its end.
  base::TimePoint hold_refused(const std::string& owner, base::TimePoint now);
  /// A launch that was made at `launched` failed; TimePoint(): by an earlier process, nobody knows when. `ns`: the
  /// owner's namespace.
  void note_failure(const std::string& owner, const std::string& ns, base::TimePoint launched, base::TimePoint now);
  /// When the next launch may be made; `now` or earlier: at once.
  base::TimePoint may_launch_at(const std::string& owner, base::TimePoint now);
  /// A launch is made now: others of a failing owner wait for its result.
  void note_launch(const std::string& owner, base::TimePoint now);

  /// One owner, in times that mean the same to another process.
  struct Kept {
    std::string owner;
    int failures = 0;
    base::WallTime raised;
    base::WallTime last_failure;
    base::WallTime next_launch;
    int refusals = 0;
    base::WallTime hold_until;
    std::string ns;
    std::vector<base::WallTime> failed;
    bool operator==(const Kept&) const = default;
  };
  /// In the order of their names.
  std::vector<Kept> state(base::Now now) const;
  /// Goes on where another one stopped; owners that are known already stay as they are. A clock that was set in between
  /// makes nobody wait for longer than a failure now would.
  void resume(const std::vector<Kept>& state, base::Now now);
  /// Rises with everything that state() would say anew.
  std::uint64_t changes() const { return changes_; }

  size_t size() const { return owners_.size(); }
  /// Forgets owners that have been quiet long enough to be at level 0.
  void forget_quiet(base::TimePoint now);

 private:
  struct Level {
    int failures = 0;
    base::TimePoint raised{};        // when a failure counted last
    base::TimePoint last_failure{};  // or the end of a hold, if that is later
    base::TimePoint next_launch{};
    int refusals = 0;
    base::TimePoint hold_until{};
    std::string ns;
    std::deque<base::TimePoint> failed;  // launches, within the last hour; the newest kFailuresOfOwner
  };
  base::TimePoint held_until(Level& level) const;
  static void decay(Level& level, base::TimePoint now);

  std::unordered_map<std::string, Level> owners_;
  std::uint64_t changes_ = 0;
};

}  // namespace spillway::core
