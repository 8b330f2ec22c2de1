#include "vk-provider/kube/gate_codec.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::kube {
namespace {

bool same(const RawTaint& a, const RawTaint& b) { return a.key == b.key && a.effect == b.effect; }

bool holds(const std::vector<RawTaint>& list, const RawTaint& taint) {
  return std::ranges::any_of(list, [&](const RawTaint& entry) { return same(entry, taint); });
}

void take_metadata(std::string_view metadata, GateNode& out) {
  out.name = json_string_or_empty(json_member(metadata, "name"));
  out.uid = json_string_or_empty(json_member(metadata, "uid"));
  out.resource_version = json_string_or_empty(json_member(metadata, "resourceVersion"));
  out.deleting = !json_is_null(json_member(metadata, "deletionTimestamp"));
  out.installation = json_string_or_empty(json_member(json_member(metadata, "labels"), model::kLabelInstallation));
  const std::string_view annotations = json_member(metadata, "annotations");
  out.order = json_string_or_empty(json_member(annotations, model::kAnnotationGate));
  out.order_until = json_string_or_empty(json_member(annotations, model::kAnnotationGateUntil));
}

void take_condition(std::string_view status, GateNode& out) {
  JsonArray list(json_member(status, "conditions"));
  while (list.next()) {
    if (json_string_or_empty(json_member(list.value(), "type")) != model::kConditionGate) continue;
    out.gate_status = json_string_or_empty(json_member(list.value(), "status"));
    out.gate_reason = json_string_or_empty(json_member(list.value(), "reason"));
    out.gate_message = json_string_or_empty(json_member(list.value(), "message"));
    out.gate_since = base::from_rfc3339(json_string_or_empty(json_member(list.value(), "lastTransitionTime")));
  }
}

}  // namespace

RawTaint make_taint(std::string_view key, std::string_view effect) {
  RawTaint out;
  out.key = key;
  out.effect = effect;
  JsonWriter w;
  out.json = w.open_object().field("key", key).field("effect", effect).close_object().take();
  return out;
}

bool GateNode::has_taint(const RawTaint& taint) const { return holds(taints, taint); }

base::Result<GateNode> decode_gate_node(std::string_view json) {
  std::string_view metadata, spec, status;
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "metadata") metadata = members.value();
    if (members.key() == "spec") spec = members.value();
    if (members.key() == "status") status = members.value();
  }
  GateNode out;
  take_metadata(metadata, out);
  // What would be written back must be whole.
  JsonArray taints(json_member(spec, "taints"));
  while (taints.next()) {
    RawTaint& taint = out.taints.emplace_back();
    taint.key = json_string_or_empty(json_member(taints.value(), "key"));
    taint.effect = json_string_or_empty(json_member(taints.value(), "effect"));
    taint.json = taints.value();
  }
  if (members.failed() || taints.failed() || out.name.empty() || out.uid.empty()) {
    return base::fail(base::ErrorKind::kInvalid, "the API server sent a Node that cannot be read");
  }
  take_condition(status, out);
  return out;
}

std::vector<RawTaint> replace_taints(const std::vector<RawTaint>& taints, const std::vector<RawTaint>& without,
                                     const std::vector<RawTaint>& with) {
  std::vector<RawTaint> out;
  for (const RawTaint& taint : taints) {
    if (!holds(without, taint)) out.push_back(taint);
  }
  for (const RawTaint& taint : with) {
    if (!holds(out, taint)) out.push_back(taint);
  }
  return out;
}

std::string encode_gate_taints(const GateNode& node, const std::vector<RawTaint>& taints) {
  JsonWriter w;
  w.open_object().key("metadata").open_object();
  // Another Node of the same name has another UID: 409.
  w.field("uid", node.uid).field("resourceVersion", node.resource_version).close_object();
  std::string out = w.take() + R"(,"spec":{"taints":[)";
  for (size_t i = 0; i < taints.size(); ++i) out += (i == 0 ? "" : ",") + taints[i].json;
  return out + "]}}";
}

std::string encode_gate_condition(const GateNode& node, const GateCondition& condition) {
  JsonWriter w;
  w.open_object().field("apiVersion", "v1").field("kind", "Node");
  w.key("metadata").open_object().field("name", node.name).field("uid", node.uid).close_object();
  w.key("status").open_object().key("conditions").open_array().open_object();
  w.field("type", model::kConditionGate).field("status", condition.open ? "True" : "False");
  w.field("reason", condition.reason).field("message", condition.message);
  w.field("lastHeartbeatTime", base::to_rfc3339(condition.now));
  w.field("lastTransitionTime", base::to_rfc3339(condition.since));
  return w.close_object().close_array().close_object().close_object().take();
}

}  // namespace spillway::kube
