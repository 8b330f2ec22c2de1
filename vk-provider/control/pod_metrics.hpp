// What pod_controller counts. Built once; labels from closed sets.
#pragma once

#include <array>
#include <map>
#include <string>

#include "vk-provider/base/metrics.hpp"
#include "vk-provider/control/pod_store.hpp"

namespace spillway::control {

class PodMetrics {
 public:
  explicit PodMetrics(base::Metrics& metrics);

  /// The record went from stage `from` to the one it is in.
  void moved(const PodEntry& entry, size_t from, base::TimePoint now);
  void added(const PodEntry& entry);
  void removed(const PodEntry& entry, base::TimePoint now);
  /// A status PATCH that made the pod Running, or Ready, was acknowledged.
  void published(const PodEntry& entry, bool running, bool ready, base::TimePoint now);
  void status_written(const std::string& outcome);

 private:
  base::Histogram& step(const std::string& step, const std::string& outcome, const std::string& reason);
  void show_stages();

  base::Metrics& metrics_;
  std::array<long, model::kStageCount> in_stage_{};
  std::array<base::Gauge*, model::kStageCount> gauges_{};
  std::map<std::array<std::string, 3>, base::Histogram*> steps_;
  std::map<std::string, base::Counter*> writes_;
};

}  // namespace spillway::control
