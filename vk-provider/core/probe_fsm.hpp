// One probe of one run of a container: when it is due, and what its results mean.
//
// Pure. control/probe_controller runs it; only changes of the verdict leave it. As a kubelet's worker, but that the
// first run is not jittered: a failure is what it is from the first second.
#pragma once

#include <cstdint>
#include <optional>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/events.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::core {

class ProbeFsm {
 public:
  /// `started` is when the container was; `now` when its probing may begin (its startup probe has passed). Until a
  /// threshold is reached a readiness or startup probe has not passed, and a liveness probe has; `passes` says what is
  /// known from before.
  ProbeFsm(const model::Probe& probe, ProbeKind kind, base::TimePoint started, base::TimePoint now,
           bool passes = false);

  /// When it is to be run next. It is not due while a run is under way.
  base::TimePoint due() const { return due_; }
  bool under_way() const { return under_way_; }
  /// How many results like the last one there were.
  int in_a_row() const { return in_a_row_; }

  void begin(base::TimePoint now);
  /// The verdict, if this result changes it. A failed startup or liveness probe says so once: the container is then
  /// stopped, and its next run has probes of its own.
  std::optional<bool> end(const model::Probe& probe, bool success, base::TimePoint now);
  /// The run came to nothing that speaks of the container.
  void skip(const model::Probe& probe, base::TimePoint now);

 private:
  ProbeKind kind_;
  bool passes_;
  bool last_ = false;
  bool under_way_ = false;
  bool over_ = false;
  int in_a_row_ = 0;
  base::TimePoint began_;
  base::TimePoint due_;
};

}  // namespace spillway::core
