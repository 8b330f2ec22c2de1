// What one capacity gate is told by the configuration. Plain values, made by daemon/config_gate.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/core/drain_rules.hpp"
#include "vk-provider/core/gate_policy.hpp"
#include "vk-provider/core/home_book.hpp"

namespace spillway::control {

/// How Prometheus is asked, by all gates.
struct GatePollSettings {
  GatePollSettings() = default;
  base::Duration interval{std::chrono::seconds(15)};
  base::Duration timeout{std::chrono::seconds(5)};
  base::Duration max_sample_age{std::chrono::seconds(90)};  // of the newest sample, by freshness_query
  bool operator==(const GatePollSettings&) const = default;
};

struct GateSettings {
  GateSettings() = default;
  std::string name;
  core::GateRules rules;
  core::HomeClass home;  // with the virtual nodes that the gate opens and closes
  bool soft_taint = true;
  // PromQL. An empty one is not asked.
  std::string free_query;       // free GPUs at home: one number
  std::string freshness_query;  // seconds since the newest sample: one number
  std::string unhealthy_query;  // sick GPUs: one element per node
  std::string unhealthy_label = "Hostname";
  GatePollSettings poll;
  core::DrainRules drain;
};

}  // namespace spillway::control
