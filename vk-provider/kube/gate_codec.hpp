// A virtual node as the gate reads and writes it: its taints, the gate's annotations and the gate's condition.
//
// Pure; reactor thread. Taints of others are kept as the bytes that the server sent: a list that is written back must
// not lose a field that we do not know. Who decides is control/gate_writer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::kube {

/// One of spec.taints; its identity is key and effect.
struct RawTaint {
  RawTaint() = default;
  std::string key;
  std::string effect;
  std::string json;  // the whole object
  bool operator==(const RawTaint&) const = default;
};
RawTaint make_taint(std::string_view key, std::string_view effect);

struct GateNode {
  GateNode() = default;
  std::string name;
  std::string uid;
  std::string resource_version;
  bool deleting = false;
  std::string installation;  // of the label spillway.dev/installation
  std::vector<RawTaint> taints;
  std::string order;  // of the annotation spillway.dev/gate
  std::string order_until;
  // Of the condition SpillwayGate; empty without one.
  std::string gate_status;
  std::string gate_reason;
  std::string gate_message;
  std::optional<base::WallTime> gate_since;

  bool has_taint(const RawTaint& taint) const;
};

base::Result<GateNode> decode_gate_node(std::string_view json);

/// The list with these taken out and those put in: everything else byte for byte, in its order.
std::vector<RawTaint> replace_taints(const std::vector<RawTaint>& taints, const std::vector<RawTaint>& without,
                                     const std::vector<RawTaint>& with);
/// Merge patch of the whole list, valid only at this version of this Node.
std::string encode_gate_taints(const GateNode& node, const std::vector<RawTaint>& taints);

struct GateCondition {
  GateCondition() = default;
  bool open = false;
  std::string reason;
  std::string message;
  base::WallTime since;
  base::WallTime now;
};
/// Server-side apply for nodes/status of this condition alone.
std::string encode_gate_condition(const GateNode& node, const GateCondition& condition);

}  // namespace spillway::kube
