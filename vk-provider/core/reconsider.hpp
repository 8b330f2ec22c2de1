// Whether a pod that runs should move to a cheaper offer. Pure; only for pods that allow it.
//
// Asked every quarter of an hour, and when prices fall. Without it a pod that found only dear capacity would stay there
// for its life.
#pragma once

#include <optional>

#include "vk-provider/core/selector.hpp"

namespace spillway::core {

inline constexpr base::Duration kReconsiderEvery = std::chrono::minutes(15);

struct MoveRules {
  double gain_over_cost = 2;                             // so many times what the move costs must be saved
  base::Duration least_stay = std::chrono::minutes(30);  // since it runs there
  base::Duration between_moves = std::chrono::hours(4);
};

struct MoveQuestion {
  base::Money price;  // per hour, of where it runs
  const Traits* here = nullptr;
  base::Duration ran{};                   // since it runs there
  std::optional<base::Duration> moved{};  // since it was moved last
  const Candidate* there = nullptr;       // the best offer that can be bought now
  Worth worth;
  base::Duration unsaved{};  // work that would be lost; 0 if it moves at a checkpoint, or has nothing to lose
  bool overlaps = false;     // the new one starts before the old one ends: paid twice, but not waited for
  base::Money disruption;    // what its owner says a move is worth avoiding
};

/// What the move is expected to save less what it costs, if it is to be made.
std::optional<base::Money> worth_moving(const MoveQuestion& question, const MoveRules& rules = {});

}  // namespace spillway::core
