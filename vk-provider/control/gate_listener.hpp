// What the gates see and decide, for whoever acts on it beside them (control/drain_controller).
#pragma once

#include <set>
#include <string>

#include "vk-provider/core/gate_policy.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::control {

/// Called on the reactor's thread, from within the gates' own work: an implementation takes note, and does nothing.
class GateListener {
 public:
  virtual ~GateListener() = default;
  // As a ReflectorSink's, of pods with GPUs alone.
  virtual void on_pods_begin() = 0;
  virtual void on_pods_end() = 0;
  virtual void on_pod(const model::HomePod& pod) = 0;
  virtual void on_pod_deleted(const std::string& uid) = 0;
  /// Of the gate with this index; `closed_nodes` are its nodes on which the taint stands and is meant to.
  virtual void on_decision(size_t gate, const core::GateDecision& decision, std::set<std::string> closed_nodes) = 0;
};

}  // namespace spillway::control
