// Ends a fight with somebody who keeps undoing what we write.
//
// Pure; owned by control/gate_writer, one per node. A repair may be made each ten seconds; after three in five minutes
// none is made for ten minutes. docs/gate.md has the numbers.
#pragma once

#include <deque>

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

class RepairBrake {
 public:
  static constexpr base::Duration kEvery = std::chrono::seconds(10);
  static constexpr base::Duration kWindow = std::chrono::minutes(5);
  static constexpr size_t kMost = 3;
  static constexpr base::Duration kPause = std::chrono::minutes(10);

  /// When the next repair may be made; `now` or earlier: at once.
  base::TimePoint may_repair_at() const { return next_; }
  /// A repair is made now. True if it is the one after which we give up for a while.
  bool note_repair(base::TimePoint now);
  void forget() { *this = RepairBrake(); }

 private:
  std::deque<base::TimePoint> repairs_;
  base::TimePoint next_{};
};

}  // namespace spillway::core
