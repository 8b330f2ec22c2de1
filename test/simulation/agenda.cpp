#include "test/simulation/agenda.hpp"

#include <algorithm>
#include <utility>

namespace spillway::simulation {

base::WallTime Agenda::wall() const {
  constexpr base::WallTime kEpoch{std::chrono::sys_days(std::chrono::year(2026) / 11 / 29)};
  return kEpoch + std::chrono::duration_cast<std::chrono::microseconds>(now_ - kStart);
}

Agenda::Key Agenda::at(base::TimePoint when, Work work) {
  const Key key{std::max(when, now_), sequence_++};
  entries_.emplace(key, std::move(work));
  return key;
}

bool Agenda::step(base::TimePoint limit) {
  if (entries_.empty() || entries_.begin()->first.when > limit) {
    now_ = std::max(now_, limit);
    return false;
  }
  auto entry = entries_.extract(entries_.begin());
  now_ = entry.key().when;
  entry.mapped()();
  return true;
}

}  // namespace spillway::simulation
