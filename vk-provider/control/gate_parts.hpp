// The inner parts of gate_controller, shared by its two files; nobody else includes this.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vk-provider/control/gate_controller.hpp"

namespace spillway::control {

struct GateController::Gate {
  Gate(GateSettings s, const GateDeps& deps);

  GateWriter* writer_of(const std::string& node);

  GateSettings settings;
  core::HomeBook book;
  core::GatePolicy policy;
  std::vector<std::unique_ptr<GateWriter>> writers;
  bool adopted = false;
  bool told_sick_missing = false;
  std::optional<base::TimePoint> polled_at;  // the last answer that was data
  base::TimePoint rule_since{};              // of the last change
  core::GateState shown = core::GateState::kClosed;

  base::Metrics& metrics;
  base::Gauge& open;
  base::Gauge& slots_kubernetes;
  base::Gauge& slots_prometheus;
  base::Gauge& free_gpus;
  base::Gauge& demand;
  base::Gauge& pending;
  base::Gauge& open_below;
  base::Gauge& close_at;
  base::Gauge& blind;
  base::Gauge& age_kubernetes;
  base::Gauge& age_prometheus;
  base::TimePoint known_at;  // when home was known last
};

/// Feeds the books and the writers with Nodes.
class GateController::NodeSink final : public kube::ReflectorSink {
 public:
  explicit NodeSink(GateController& owner) : owner_(owner) {}
  void on_list_begin() override;
  void on_list_end() override;
  void on_object(std::string_view json) override;
  void on_deleted(std::string_view json) override;

 private:
  GateController& owner_;
  std::map<std::string, bool> ours_seen_;  // virtual nodes of the list under way
};

/// Feeds the books with Pods.
class GateController::PodSink final : public kube::ReflectorSink {
 public:
  explicit PodSink(GateController& owner) : owner_(owner) {}
  void on_list_begin() override;
  void on_list_end() override;
  void on_object(std::string_view json) override;
  void on_deleted(std::string_view json) override;

 private:
  GateController& owner_;
};

}  // namespace spillway::control
