// What happens when, in virtual time: the one queue of the simulated world.
//
// Owned by the World; used on one thread. Time moves only in step(). Entries of the same time happen in the order in
// which they were added, so that nothing depends on addresses.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

#include "vk-provider/base/clock.hpp"

namespace spillway::simulation {

class Agenda {
 public:
  using Work = std::move_only_function<void()>;
  struct Key {
    base::TimePoint when;
    std::uint64_t sequence = 0;
    auto operator<=>(const Key&) const = default;
  };

  base::TimePoint now() const { return now_; }
  /// The world's true wall clock, which never jumps.
  base::WallTime wall() const;

  /// A time that has passed means now.
  Key at(base::TimePoint when, Work work);
  Key after(base::Duration d, Work work) { return at(now_ + d, std::move(work)); }
  /// Does nothing if it has happened.
  void cancel(const Key& key) { entries_.erase(key); }

  /// Moves to the next entry that is due at or before `limit` and does it; false, at `limit`, if there is none.
  bool step(base::TimePoint limit);

 private:
  static constexpr base::TimePoint kStart{std::chrono::hours(1)};
  base::TimePoint now_ = kStart;
  std::uint64_t sequence_ = 0;
  std::map<Key, Work> entries_;
};

}  // namespace spillway::simulation
