#include "vk-provider/core/probe_fsm.hpp"

#include <algorithm>

namespace spillway::core {

ProbeFsm::ProbeFsm(const model::Probe& probe, ProbeKind kind, base::TimePoint started, base::TimePoint now, bool passes)
    : kind_(kind),
      passes_(passes || kind == ProbeKind::kLiveness),
      began_(now),
      due_(std::max(started + probe.initial_delay, now)) {}

void ProbeFsm::begin(base::TimePoint now) {
  under_way_ = true;
  began_ = now;
}

void ProbeFsm::skip(const model::Probe& probe, base::TimePoint now) {
  under_way_ = false;
  due_ = std::max(began_ + probe.period, now);
}

std::optional<bool> ProbeFsm::end(const model::Probe& probe, bool success, base::TimePoint now) {
  skip(probe, now);
  in_a_row_ = success == last_ ? in_a_row_ + 1 : 1;
  last_ = success;
  const int threshold = success ? probe.success_threshold : probe.failure_threshold;
  if (over_ || in_a_row_ < threshold) return std::nullopt;
  const bool passed = passes_;
  passes_ = success;
  // What fails from the start never passed: for a startup probe that is news, for a readiness probe it is not.
  over_ = kind_ != ProbeKind::kReadiness && (!success || kind_ == ProbeKind::kStartup);
  if (passed == success && !(kind_ == ProbeKind::kStartup && !success)) return std::nullopt;
  if (over_) due_ = base::TimePoint::max();
  return success;
}

}  // namespace spillway::core
