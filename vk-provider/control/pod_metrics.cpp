#include "vk-provider/control/pod_metrics.hpp"

#include <chrono>

namespace spillway::control {
namespace {

// Indices of model::Stage.
enum Index : size_t { kWaiting = 1, kCreating = 3, kBooting = 4, kRunning = 5, kStopping = 6, kFinished = 7 };

double seconds(base::Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

PodMetrics::PodMetrics(base::Metrics& metrics) : metrics_(metrics) {
  for (size_t i = 0; i < model::kStageCount; ++i) {
    gauges_.at(i) =
        &metrics.gauge("spillway_pods", "Pods by stage.", {{"stage", std::string(model::kStageNames.at(i))}});
  }
}

base::Histogram& PodMetrics::step(const std::string& step, const std::string& outcome, const std::string& reason) {
  auto*& histogram = steps_[{step, outcome, reason}];
  if (histogram == nullptr) {
    histogram =
        &metrics_.histogram("spillway_pod_step_seconds",
                            "Time from the step before: bound, chosen, created, booted, running, ready; and gone.",
                            {{"step", step}, {"outcome", outcome}, {"reason", reason}}, base::latency_bounds());
  }
  return *histogram;
}

void PodMetrics::moved(const PodEntry& entry, size_t from, base::TimePoint now) {
  const model::PodRecord& r = entry.record;
  const size_t to = r.stage.index();
  if (from == to) return;
  --in_stage_.at(from);
  ++in_stage_.at(to);
  show_stages();
  if (to == kCreating) step("chosen", "ok", "").observe(seconds(now - entry.bound_at));
  if (from == kCreating && (to == kBooting || to == kRunning)) {
    step("created", "ok", "").observe(seconds(now - r.entered.at(kCreating)));
  }
  if (to == kRunning && from == kBooting) step("booted", "ok", "").observe(seconds(now - r.entered.at(kBooting)));
  // An instance that is bought running has booted at once.
  if (to == kRunning && from == kCreating) step("booted", "ok", "").observe(0);
  if (to == kWaiting) {
    step("chosen", "waiting", std::string(to_string(std::get<model::Waiting>(r.stage).why)))
        .observe(seconds(now - entry.bound_at));
  }
  if (to == kStopping && from == kBooting) {
    step("booted", "failed", std::string(to_string(std::get<model::Stopping>(r.stage).why)))
        .observe(seconds(now - r.entered.at(kBooting)));
  }
}

void PodMetrics::added(const PodEntry& entry) {
  ++in_stage_.at(entry.record.stage.index());
  show_stages();
}

void PodMetrics::removed(const PodEntry& entry, base::TimePoint now) {
  --in_stage_.at(entry.record.stage.index());
  show_stages();
  const base::TimePoint begun = entry.record.entered.at(kStopping);
  if (begun != base::TimePoint{}) step("gone", "ok", "").observe(seconds(now - begun));
}

void PodMetrics::published(const PodEntry& entry, bool running, bool ready, base::TimePoint now) {
  const base::TimePoint booted = entry.record.entered.at(kRunning);
  if (booted == base::TimePoint{}) return;
  if (running) step("running", "ok", "").observe(seconds(now - booted));
  if (ready) step("ready", "ok", "").observe(seconds(now - booted));
}

void PodMetrics::status_written(const std::string& outcome) {
  auto*& counter = writes_[outcome];
  if (counter == nullptr) {
    counter = &metrics_.counter("spillway_status_writes_total", "PATCHes of pods/status.", {{"outcome", outcome}});
  }
  counter->add();
}

void PodMetrics::show_stages() {
  for (size_t i = 0; i < model::kStageCount; ++i) gauges_.at(i)->set(static_cast<double>(in_stage_.at(i)));
}

}  // namespace spillway::control
