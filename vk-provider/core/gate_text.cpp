// The words of core/gate_policy.hpp: names, overrides and the sentence that answers "why".
#include "vk-provider/base/duration_text.hpp"
#include "vk-provider/core/gate_policy.hpp"

namespace spillway::core {
namespace {

std::string count_of(std::int64_t n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); }

std::string because(const GateDecision& decision, const GateRules& rules) {
  switch (decision.reason) {
    case GateReason::kStarted: return "nothing was decided yet";
    case GateReason::kAdopted: return "it was open when this process started";
    case GateReason::kNeed: return "pods wait that home has no room for";
    case GateReason::kLevel: return "fewer than " + count_of(rules.open_below, "slot") + " were free at home";
    case GateReason::kSurplus: return "enough slots were free at home";
    case GateReason::kBlind: return "there was no data for " + base::format_duration(rules.hold_for) + " (onBlind)";
  }
  return "";
}

std::string blind_text(GateBlindness blindness) {
  switch (blindness) {
    case GateBlindness::kNone: return "";
    case GateBlindness::kHomeUnknown: return "the nodes and pods of the cluster are not known completely";
    case GateBlindness::kNoHome: return "there is no home node (gate.gates[].allowNoHome is false)";
    case GateBlindness::kNoPoll: return "waiting for data of Prometheus";
    case GateBlindness::kPrometheusLost: return "Prometheus has no data";
  }
  return "";
}

}  // namespace

std::string_view to_string(GateState state) { return state == GateState::kOpen ? "open" : "closed"; }

std::string_view to_string(GateReason reason) {
  switch (reason) {
    case GateReason::kStarted: return "Started";
    case GateReason::kAdopted: return "Adopted";
    case GateReason::kNeed: return "Need";
    case GateReason::kLevel: return "Level";
    case GateReason::kSurplus: return "Surplus";
    case GateReason::kBlind: return "Blind";
  }
  return "Started";
}

std::string_view to_string(GateBlindness blindness) {
  switch (blindness) {
    case GateBlindness::kNone: return "None";
    case GateBlindness::kHomeUnknown: return "HomeUnknown";
    case GateBlindness::kNoHome: return "NoHome";
    case GateBlindness::kNoPoll: return "NoPoll";
    case GateBlindness::kPrometheusLost: return "PrometheusLost";
  }
  return "None";
}

std::expected<std::optional<GateOverride>, std::string> read_override(std::string_view order, std::string_view until) {
  if (order.empty() || order == "auto") return std::optional<GateOverride>();
  GateOverride out;
  if (order == "open") {
    out.state = GateState::kOpen;
  } else if (order != "closed") {
    return std::unexpected("spillway.dev/gate is \"" + std::string(order) + "\"; allowed: open, closed, auto");
  }
  if (until.empty()) return out;
  out.until = base::from_rfc3339(until);
  // An order whose end nobody can read would have none.
  if (!out.until) {
    return std::unexpected("spillway.dev/gate-until is \"" + std::string(until) +
                           "\"; allowed: a time such as 2026-11-29T21:00:00Z");
  }
  return out;
}

bool in_force(const std::optional<GateOverride>& order, base::WallTime wall) {
  return order && (!order->until || wall < *order->until);
}

std::string explain_gate(const GateDecision& decision, const GateRules& rules) {
  std::string out = std::string(to_string(decision.state)) + ": " + because(decision, rules);
  if (decision.blindness != GateBlindness::kNone) {
    return out + "; nothing is decided now: " + blind_text(decision.blindness);
  }
  if (!decision.free_slots) return out;
  const HomeSight& home = decision.home;
  out += "; now " + count_of(*decision.free_slots, "slot") + " of " + count_of(home.slot_gpus, "GPU") +
         " free at home after a demand of " + count_of(home.demand_gpus, "GPU") + " ahead, " +
         count_of(home.pending, "burst pod") + " waiting of which " + std::to_string(home.fitting) +
         " fit home; opens below " + std::to_string(rules.open_below) + ", closes at " +
         std::to_string(decision.close_at);
  return out;
}

}  // namespace spillway::core
