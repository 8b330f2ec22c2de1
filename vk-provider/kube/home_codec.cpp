#include "vk-provider/kube/home_codec.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "vk-provider/kube/drain_codec.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/pod_codec.hpp"
#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::kube {
namespace {

using model::GpuAmounts;
using Labels = std::map<std::string, std::string>;
using Operator = model::NodeRequirement::Operator;

std::unexpected<base::Error> broken(const char* kind) {
  return base::fail(base::ErrorKind::kInvalid, std::string("the API server sent a ") + kind + " that cannot be read");
}

std::int64_t amount(std::string_view value) {
  // A quantity may be a bare number.
  return std::max<std::int64_t>(0, model::quantity_value(json_string(value).value_or(std::string(value))).value_or(0));
}

/// GPUs of a list of resources; those that it names stand in `has_*`.
void take_gpus(std::string_view resources, GpuAmounts& out, bool* has_nvidia = nullptr, bool* has_amd = nullptr) {
  JsonObject members(resources);
  while (members.next()) {
    if (members.key() == model::kResourceNvidiaGpu) {
      out.nvidia = std::max(out.nvidia, amount(members.value()));
      if (has_nvidia != nullptr) *has_nvidia = true;
    } else if (members.key() == model::kResourceAmdGpu) {
      out.amd = std::max(out.amd, amount(members.value()));
      if (has_amd != nullptr) *has_amd = true;
    }
  }
}

GpuAmounts plus(const GpuAmounts& a, const GpuAmounts& b) {
  GpuAmounts out;
  out.nvidia = a.nvidia + b.nvidia;
  out.amd = a.amd + b.amd;
  return out;
}

GpuAmounts larger(const GpuAmounts& a, const GpuAmounts& b) {
  GpuAmounts out;
  out.nvidia = std::max(a.nvidia, b.nvidia);
  out.amd = std::max(a.amd, b.amd);
  return out;
}

GpuAmounts container_gpus(std::string_view container) {
  GpuAmounts out;
  const std::string_view resources = json_member(container, "resources");
  take_gpus(json_member(resources, "requests"), out);
  // The API server copies the limits of extended resources to the requests; a mirror pod may lack them.
  take_gpus(json_member(resources, "limits"), out);
  return out;
}

/// What the scheduler counts (model/pod_resources.hpp has the rule). spec.resources can hold no GPUs.
GpuAmounts pod_gpus(std::string_view init, std::string_view containers, std::string_view overhead) {
  GpuAmounts sidecars;
  GpuAmounts peak;
  JsonArray before(init);
  while (before.next()) {
    const GpuAmounts together = plus(sidecars, container_gpus(before.value()));
    if (json_string_or_empty(json_member(before.value(), "restartPolicy")) == "Always") sidecars = together;
    peak = larger(peak, together);
  }
  GpuAmounts running = sidecars;
  JsonArray list(containers);
  while (list.next()) running = plus(running, container_gpus(list.value()));
  GpuAmounts extra;
  take_gpus(overhead, extra);
  return plus(larger(peak, running), extra);
}

std::vector<model::Taint> decode_taints(std::string_view json) {
  std::vector<model::Taint> out;
  JsonArray list(json);
  while (list.next()) {
    out.emplace_back(json_string_or_empty(json_member(list.value(), "key")),
                     json_string_or_empty(json_member(list.value(), "value")),
                     json_string_or_empty(json_member(list.value(), "effect")));
  }
  return out;
}

std::vector<model::Toleration> decode_tolerations(std::string_view json) {
  std::vector<model::Toleration> out;
  JsonArray list(json);
  while (list.next()) {
    model::Toleration& toleration = out.emplace_back();
    toleration.key = json_string_or_empty(json_member(list.value(), "key"));
    toleration.value = json_string_or_empty(json_member(list.value(), "value"));
    toleration.effect = json_string_or_empty(json_member(list.value(), "effect"));
    if (json_string_or_empty(json_member(list.value(), "operator")) == "Exists") {
      toleration.op = model::Toleration::Operator::kExists;
    }
  }
  return out;
}

Operator decode_operator(std::string_view json) {
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kWords{{{"\"In\"", Operator::kIn},
                                                                         {"\"NotIn\"", Operator::kNotIn},
                                                                         {"\"Exists\"", Operator::kExists},
                                                                         {"\"DoesNotExist\"", Operator::kDoesNotExist},
                                                                         {"\"Gt\"", Operator::kGt},
                                                                         {"\"Lt\"", Operator::kLt}}};
  for (const auto& [word, op] : kWords) {
    if (json == word) return op;
  }
  return Operator::kUnknown;
}

void take_requirements(std::string_view json, bool of_field, model::NodeTerm& out) {
  JsonArray list(json);
  while (list.next()) {
    model::NodeRequirement& requirement = out.emplace_back();
    requirement.key = json_string_or_empty(json_member(list.value(), "key"));
    requirement.of_field = of_field;
    requirement.op = decode_operator(json_member(list.value(), "operator"));
    JsonArray values(json_member(list.value(), "values"));
    while (values.next()) requirement.values.push_back(json_string_or_empty(values.value()));
  }
}

void decode_affinity(std::string_view affinity, model::HomePod& out) {
  const std::string_view required =
      json_member(json_member(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution");
  if (!json_is_object(required)) return;
  out.has_node_terms = true;
  JsonArray terms(json_member(required, "nodeSelectorTerms"));
  while (terms.next()) {
    model::NodeTerm& term = out.node_terms.emplace_back();
    take_requirements(json_member(terms.value(), "matchExpressions"), false, term);
    take_requirements(json_member(terms.value(), "matchFields"), true, term);
  }
}

/// status.conditions[type].status; and its reason.
std::pair<std::string, std::string> condition(std::string_view conditions, std::string_view type) {
  JsonArray list(conditions);
  while (list.next()) {
    if (json_string_or_empty(json_member(list.value(), "type")) != type) continue;
    return {json_string_or_empty(json_member(list.value(), "status")),
            json_string_or_empty(json_member(list.value(), "reason"))};
  }
  return {};
}

struct SpecParts {
  std::string_view containers, init, overhead, node_name, priority, gates, tolerations, node_selector, affinity;
};

bool split(std::string_view spec, SpecParts& out) {
  const std::array<std::pair<std::string_view, std::string_view SpecParts::*>, 9> parts{
      {{"containers", &SpecParts::containers},
       {"initContainers", &SpecParts::init},
       {"overhead", &SpecParts::overhead},
       {"nodeName", &SpecParts::node_name},
       {"priority", &SpecParts::priority},
       {"schedulingGates", &SpecParts::gates},
       {"tolerations", &SpecParts::tolerations},
       {"nodeSelector", &SpecParts::node_selector},
       {"affinity", &SpecParts::affinity}}};
  JsonObject members(spec);
  while (members.next()) {
    for (const auto& [name, part] : parts) {
      if (members.key() == name) out.*part = members.value();
    }
  }
  return !members.failed();
}

bool is_empty_list(std::string_view json) { return !JsonArray(json).next(); }

void take_status(std::string_view status, model::HomePod& out) {
  const std::string phase = json_string_or_empty(json_member(status, "phase"));
  out.terminal = phase == "Succeeded" || phase == "Failed";
  out.nominated_node = json_string_or_empty(json_member(status, "nominatedNodeName"));
  const auto [scheduled, reason] = condition(json_member(status, "conditions"), "PodScheduled");
  out.unschedulable = scheduled == "False" && reason == "Unschedulable";
}

void take_wishes(const SpecParts& parts, model::HomePod& out) {
  out.node_name = json_string_or_empty(parts.node_name);
  out.priority = decode_int(parts.priority);
  out.gated = !is_empty_list(parts.gates);
  out.tolerations = decode_tolerations(parts.tolerations);
  out.node_selector = decode_labels(parts.node_selector);
  decode_affinity(parts.affinity, out);
}

base::Result<model::HomePod> decode_whole(std::string_view json, bool without_gpus, model::HomePod out) {
  std::string_view metadata, spec, status;
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "metadata") metadata = members.value();
    if (members.key() == "spec") spec = members.value();
    if (members.key() == "status") status = members.value();
  }
  SpecParts parts;
  if (members.failed() || !split(spec, parts)) return broken("Pod");
  out.gpus = pod_gpus(parts.init, parts.containers, parts.overhead);
  if (out.gpus.none() && !without_gpus) return out;
  out.deleting = !json_is_null(json_member(metadata, "deletionTimestamp"));
  out.labels = decode_labels(json_member(metadata, "labels"));
  take_wishes(parts, out);
  take_status(status, out);
  decode_drain_facts(metadata, status, out);
  return out;
}

}  // namespace

base::Result<model::HomeNode> decode_home_node(std::string_view json) {
  std::string_view metadata, spec, status;
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "metadata") metadata = members.value();
    if (members.key() == "spec") spec = members.value();
    if (members.key() == "status") status = members.value();
  }
  model::HomeNode out;
  out.name = json_string_or_empty(json_member(metadata, "name"));
  if (members.failed() || out.name.empty()) return broken("Node");
  out.labels = decode_labels(json_member(metadata, "labels"));
  out.deleting = !json_is_null(json_member(metadata, "deletionTimestamp"));
  const Labels annotations = decode_labels(json_member(metadata, "annotations"));
  const auto sick = annotations.find(std::string(model::kAnnotationUnhealthyGpus));
  if (sick != annotations.end()) out.unhealthy_gpus = model::quantity_value(sick->second).value_or(0);
  out.taints = decode_taints(json_member(spec, "taints"));
  out.unschedulable = json_is_true(json_member(spec, "unschedulable"));
  GpuAmounts capacity;
  take_gpus(json_member(status, "capacity"), capacity, &out.has_nvidia, &out.has_amd);
  take_gpus(json_member(status, "allocatable"), out.allocatable, &out.has_nvidia, &out.has_amd);
  out.ready = condition(json_member(status, "conditions"), "Ready").first == "True";
  return out;
}

base::Result<model::HomePod> decode_home_pod(std::string_view json) {
  model::HomePod out;
  out.uid = peek_pod(json).uid;
  if (out.uid.empty()) return broken("Pod");
  if (json.find(model::kResourceNvidiaGpu) == std::string_view::npos &&
      json.find(model::kResourceAmdGpu) == std::string_view::npos) {
    return out;
  }
  return decode_whole(json, false, std::move(out));
}

base::Result<model::HomePod> decode_any_pod(std::string_view json) {
  model::HomePod out;
  out.uid = peek_pod(json).uid;
  if (out.uid.empty()) return broken("Pod");
  return decode_whole(json, true, std::move(out));
}

model::HomePod decode_pod_template(std::string_view json) {
  model::HomePod out;
  out.labels = decode_labels(json_member(json_member(json, "metadata"), "labels"));
  SpecParts parts;
  if (split(json_member(json, "spec"), parts)) take_wishes(parts, out);
  return out;
}

std::map<std::string, std::string> decode_labels(std::string_view json) {
  Labels out;
  JsonObject members(json);
  while (members.next()) {
    auto key = json_unescape(members.key());
    auto value = json_string(members.value());
    if (key && value) out.insert_or_assign(std::move(*key), std::move(*value));
  }
  return out;
}

model::NodeTerm decode_requirements(std::string_view json) {
  model::NodeTerm out;
  take_requirements(json, false, out);
  return out;
}

}  // namespace spillway::kube
