#include "vk-provider/kube/drain_codec.hpp"

#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/kube/pod_codec.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::kube {
namespace {

using Operator = model::NodeRequirement::Operator;

constexpr std::int64_t kVersion = 1;

base::WallTime time_of(std::string_view value) {
  return base::from_rfc3339(json_string_or_empty(value)).value_or(base::WallTime());
}

std::optional<model::DetachNote> decode_note(std::string_view text, const std::string& uid) {
  if (json_int(json_member(text, "v")) != kVersion || json_string_or_empty(json_member(text, "uid")) != uid) {
    return std::nullopt;
  }
  model::DetachNote out;
  out.owner_name = json_string_or_empty(json_member(text, "owner"));
  out.owner_uid = json_string_or_empty(json_member(text, "ownerUid"));
  out.since = time_of(json_member(text, "since"));
  return out;
}

void take_owner(std::string_view owners, model::DrainFacts& out) {
  JsonArray list(owners);
  while (list.next()) {
    if (!json_is_true(json_member(list.value(), "controller"))) continue;
    out.owner_kind = json_string_or_empty(json_member(list.value(), "kind"));
    out.owner_name = json_string_or_empty(json_member(list.value(), "name"));
    out.owner_uid = json_string_or_empty(json_member(list.value(), "uid"));
    return;
  }
}

void take_annotations(std::string_view annotations, const std::string& uid, model::DrainFacts& out) {
  std::string note;
  JsonObject members(annotations);
  while (members.next()) {
    const std::string_view key = members.key();
    if (key == model::kAnnotationState) {
      const auto state = decode_state(json_string_or_empty(members.value()), base::PodUid(uid));
      if (state.kind == model::StateAnnotation::Kind::kRecord) out.price = state.record->placement.price_per_hour;
    } else if (key == model::kAnnotationDoNotDrain) {
      out.keep = json_string_or_empty(members.value()) != "false";
    } else if (key == model::kAnnotationEvict) {
      out.evict_anyway = true;
    } else if (key == model::kAnnotationPreferNoEviction) {
      out.rather_not = true;
    } else if (key == model::kAnnotationDraining) {
      out.draining = json_string_or_empty(members.value());
    } else if (key == model::kAnnotationDrain) {
      note = json_string_or_empty(members.value());
    }
  }
  if (out.draining.empty() || note.empty()) return;
  out.note = decode_note(note, uid);
  if (out.note) out.note->hash = out.draining;
}

Operator decode_operator(std::string_view word) {
  if (word == "In") return Operator::kIn;
  if (word == "NotIn") return Operator::kNotIn;
  if (word == "Exists") return Operator::kExists;
  if (word == "DoesNotExist") return Operator::kDoesNotExist;
  return Operator::kUnknown;
}

void take_selector(std::string_view selector, model::NodeTerm& out) {
  JsonObject labels(json_member(selector, "matchLabels"));
  while (labels.next()) {
    model::NodeRequirement& requirement = out.emplace_back();
    requirement.key = json_unescape(labels.key()).value_or(std::string());
    requirement.op = Operator::kIn;
    requirement.values.push_back(json_string_or_empty(labels.value()));
  }
  JsonArray list(json_member(selector, "matchExpressions"));
  while (list.next()) {
    model::NodeRequirement& requirement = out.emplace_back();
    requirement.key = json_string_or_empty(json_member(list.value(), "key"));
    requirement.op = decode_operator(json_string_or_empty(json_member(list.value(), "operator")));
    JsonArray values(json_member(list.value(), "values"));
    while (values.next()) requirement.values.push_back(json_string_or_empty(values.value()));
  }
}

/// {"metadata":{"uid":..,"resourceVersion":.. and what is written stays open.
JsonWriter begin_patch(const model::HomePod& pod) {
  JsonWriter out;
  out.open_object().key("metadata").open_object();
  out.field("uid", pod.uid).field("resourceVersion", pod.drain.resource_version);
  return out;
}

std::string encode_note(const model::HomePod& pod, const model::DetachNote& note) {
  JsonWriter out;
  out.open_object().field_number("v", kVersion).field("uid", pod.uid).field("since", base::to_rfc3339(note.since));
  out.field("owner", note.owner_name).field("ownerUid", note.owner_uid).close_object();
  return out.take();
}

}  // namespace

void decode_drain_facts(std::string_view metadata, std::string_view status, model::HomePod& out) {
  model::DrainFacts& facts = out.drain;
  JsonObject members(metadata);
  while (members.next()) {
    const std::string_view key = members.key();
    if (key == "namespace") facts.ns = json_string_or_empty(members.value());
    if (key == "name") facts.name = json_string_or_empty(members.value());
    if (key == "resourceVersion") facts.resource_version = json_string_or_empty(members.value());
    if (key == "creationTimestamp") facts.created = time_of(members.value());
    if (key == "ownerReferences") take_owner(members.value(), facts);
    if (key == "annotations") take_annotations(members.value(), out.uid, facts);
  }
  facts.pending = json_member(status, "phase") == "\"Pending\"";
  JsonArray conditions(json_member(status, "conditions"));
  while (conditions.next()) {
    if (json_member(conditions.value(), "type") != "\"Ready\"") continue;
    facts.ready = json_member(conditions.value(), "status") == "\"True\"";
    facts.ready_since = time_of(json_member(conditions.value(), "lastTransitionTime"));
  }
}

base::Result<model::DisruptionBudget> decode_budget(std::string_view json) {
  const std::string_view metadata = json_member(json, "metadata");
  model::DisruptionBudget out;
  out.ns = json_string_or_empty(json_member(metadata, "namespace"));
  out.name = json_string_or_empty(json_member(metadata, "name"));
  if (out.ns.empty() || out.name.empty()) {
    return base::fail(base::ErrorKind::kInvalid, "the API server sent a PodDisruptionBudget that cannot be read");
  }
  const std::string_view selector = json_member(json_member(json, "spec"), "selector");
  out.selects_none = json_is_null(selector);
  take_selector(selector, out.selector);
  return out;
}

std::int64_t decode_disruptions_allowed(std::string_view json) {
  return json_int(json_member(json_member(json, "status"), "disruptionsAllowed")).value_or(0);
}

std::string encode_eviction(const model::HomePod& pod) {
  JsonWriter out;
  out.open_object().field("apiVersion", "policy/v1").field("kind", "Eviction");
  out.key("metadata").open_object().field("namespace", pod.drain.ns).field("name", pod.drain.name).close_object();
  out.key("deleteOptions").open_object().key("preconditions").open_object().field("uid", pod.uid);
  return out.close_object().close_object().close_object().take();
}

std::string encode_detach(const model::HomePod& pod, const model::DetachNote& note) {
  JsonWriter out = begin_patch(pod);
  out.key("labels").open_object().field_null(model::kLabelTemplateHash).close_object();
  out.key("annotations").open_object();
  out.field(model::kAnnotationDraining, note.hash).field(model::kAnnotationDrain, encode_note(pod, note));
  return out.close_object().close_object().close_object().take();
}

std::string encode_return(const model::HomePod& pod) {
  JsonWriter out = begin_patch(pod);
  out.key("labels").open_object().field(model::kLabelTemplateHash, pod.drain.draining).close_object();
  out.key("annotations").open_object();
  out.field_null(model::kAnnotationDraining).field_null(model::kAnnotationDrain);
  return out.close_object().close_object().close_object().take();
}

}  // namespace spillway::kube
