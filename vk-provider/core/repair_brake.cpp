#include "vk-provider/core/repair_brake.hpp"

namespace spillway::core {

bool RepairBrake::note_repair(base::TimePoint now) {
  while (!repairs_.empty() && now - repairs_.front() > kWindow) repairs_.pop_front();
  repairs_.push_back(now);
  const bool contested = repairs_.size() >= kMost;
  next_ = now + (contested ? kPause : kEvery);
  if (contested) repairs_.clear();
  return contested;
}

}  // namespace spillway::core
