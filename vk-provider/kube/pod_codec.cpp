#include "vk-provider/kube/pod_codec.hpp"

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/kube/pod_spec_codec.hpp"
#include "vk-provider/kube/pod_status_codec.hpp"
#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::kube {
namespace {

constexpr std::string_view kWithheldToken = "service-account-token";

/// metadata, with the parts that only a new pod needs still as text.
struct Metadata {
  model::PodKey key;
  base::WallTime created_at;
  std::string_view annotations;
  std::string_view owners;
};

std::optional<base::WallTime> decode_time(std::string_view value) {
  const auto text = json_string(value);
  return text ? base::from_rfc3339(*text) : std::nullopt;
}

bool decode_metadata(std::string_view json, Metadata& out, model::ObservedPod& observed) {
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "name") {
      out.key.name = json_string_or_empty(value);
    } else if (key == "namespace") {
      out.key.ns = json_string_or_empty(value);
    } else if (key == "uid") {
      out.key.uid = base::PodUid(json_string_or_empty(value));
    } else if (key == "resourceVersion") {
      observed.resource_version = json_string_or_empty(value);
    } else if (key == "creationTimestamp") {
      out.created_at = decode_time(value).value_or(base::WallTime());
    } else if (key == "deletionTimestamp") {
      observed.deletion_timestamp = decode_time(value);
    } else if (key == "deletionGracePeriodSeconds") {
      observed.deletion_grace = std::chrono::seconds(json_int(value).value_or(0));
    } else if (key == "annotations") {
      out.annotations = value;
    } else if (key == "ownerReferences") {
      out.owners = value;
    }
  }
  return !members.failed();
}

bool decode_state_annotations(const Metadata& metadata, model::ObservedPod& out) {
  JsonObject members(metadata.annotations);
  while (members.next()) {
    const std::string_view key = members.key();
    if (key == model::kAnnotationDeletionCost) out.deletion_cost = true;
    if (!key.starts_with(model::kStatePrefix)) continue;
    if (key == model::kAnnotationState) {
      out.state = decode_state(json_string_or_empty(members.value()), metadata.key.uid);
    } else if (key == model::kAnnotationAddresses) {
      out.addresses = json_string_or_empty(members.value());
    } else if (key == model::kAnnotationWithheld) {
      out.withheld_note = true;
    }
  }
  return !members.failed();
}

void decode_user_annotations(std::string_view annotations, model::PodSpec& out) {
  JsonObject members(annotations);
  while (members.next()) {
    auto key = json_unescape(members.key());
    if (!key || !(key->starts_with(model::kUserPrefix) || key->starts_with(model::kFakePrefix))) continue;
    auto value = json_string(members.value());
    if (value) out.annotations.insert_or_assign(std::move(*key), std::move(*value));
  }
}

/// A static pod, or the object that mirrors one.
bool is_static_pod(std::string_view annotations) {
  JsonObject members(annotations);
  while (members.next()) {
    if (members.key() == "kubernetes.io/config.mirror") return true;
    if (members.key() == "kubernetes.io/config.source") return json_string_or_empty(members.value()) != "api";
  }
  return false;
}

void decode_owner(std::string_view owners, model::OwnerRef& out) {
  JsonArray list(owners);
  while (list.next()) {
    if (!json_is_true(json_member(list.value(), "controller"))) continue;
    out.kind = json_string_or_empty(json_member(list.value(), "kind"));
    out.name = json_string_or_empty(json_member(list.value(), "name"));
    out.uid = json_string_or_empty(json_member(list.value(), "uid"));
    return;
  }
}

bool readiness_gates_true(std::string_view spec, std::string_view status) {
  // Hardly a pod has gates, and this runs for every event: look for the word before walking the spec.
  if (spec.find("\"readinessGates\"") == std::string_view::npos) return true;
  JsonArray gates(json_member(spec, "readinessGates"));
  while (gates.next()) {
    const auto type = json_string(json_member(gates.value(), "conditionType"));
    if (type && !has_true_condition(status, *type)) return false;
  }
  return true;
}

std::optional<std::chrono::seconds> active_deadline(std::string_view spec) {
  constexpr std::string_view kField = "activeDeadlineSeconds";
  // As rare, and as often looked for.
  if (spec.find(kField) == std::string_view::npos) return std::nullopt;
  return decode_seconds(json_member(spec, kField));
}

base::SharedText debug_containers(std::string_view spec) {
  constexpr std::string_view kField = "ephemeralContainers";
  // As rare again.
  if (spec.find(kField) == std::string_view::npos) return {};
  return decode_names(json_member(spec, kField));
}

std::unexpected<base::Error> broken(std::string_view what, const model::PodKey& key) {
  return base::fail(base::ErrorKind::kInvalid,
                    "the API server sent a Pod whose " + std::string(what) + " cannot be read: " + key.to_string());
}

void write_annotations(JsonWriter& out, const PodStatusPatch& patch) {
  const bool any = patch.state || patch.addresses || !patch.why.empty() || patch.deletion_cost;
  if (!any && !patch.note_withheld_token) return;
  out.key("annotations").open_object();
  if (patch.state) out.field(model::kAnnotationState, encode_state(*patch.state));
  if (patch.addresses && patch.addresses->empty()) {
    out.field_null(model::kAnnotationAddresses);
  } else if (patch.addresses) {
    out.field(model::kAnnotationAddresses, *patch.addresses);
  }
  out.field_if(model::kAnnotationWhy, patch.why);
  if (patch.deletion_cost) out.field(model::kAnnotationDeletionCost, std::to_string(*patch.deletion_cost));
  if (patch.note_withheld_token) out.field(model::kAnnotationWithheld, kWithheldToken);
  out.close_object();
}

}  // namespace

PodPeek peek_pod(std::string_view json) {
  PodPeek peek;
  JsonObject members(JsonObject::from_member(json, "metadata"));
  // Both are plain ASCII without escapes, so that what stands between the quotes is the value.
  const auto unquoted = [](std::string_view value) {
    return value.size() >= 2 ? value.substr(1, value.size() - 2) : std::string_view();
  };
  while ((peek.uid.empty() || peek.resource_version.empty()) && members.next()) {
    if (members.key() == "uid") peek.uid = unquoted(members.value());
    if (members.key() == "resourceVersion") peek.resource_version = unquoted(members.value());
  }
  return peek;
}

base::Result<DecodedPod> decode_pod(std::string_view json, const std::function<bool(const base::PodUid&)>& known,
                                    model::SpecPool* pool) {
  DecodedPod out;
  Metadata metadata;
  std::string_view spec;
  std::string_view status;
  JsonObject members(json);
  bool metadata_ok = true;
  while (members.next()) {
    if (members.key() == "metadata") {
      metadata_ok = decode_metadata(members.value(), metadata, out.observed);
    } else if (members.key() == "spec") {
      spec = members.value();
    } else if (members.key() == "status") {
      status = members.value();
    }
  }
  if (members.failed()) return broken("JSON", metadata.key);
  if (!metadata_ok || metadata.key.uid.empty() || metadata.key.name.empty() || metadata.key.ns.empty()) {
    return broken("metadata (uid, name, namespace)", metadata.key);
  }
  if (!decode_state_annotations(metadata, out.observed)) return broken("annotations", metadata.key);
  if (!decode_pod_status(status, out.observed.status)) return broken("status", metadata.key);
  out.observed.readiness_gates_true = readiness_gates_true(spec, status);
  out.observed.active_deadline = active_deadline(spec);
  out.observed.debug_containers = debug_containers(spec);
  out.key = metadata.key;
  if (known && known(out.key.uid)) return out;
  out.is_static = is_static_pod(metadata.annotations);

  const auto decoded = std::make_shared<model::PodSpec>();
  decoded->key = std::move(metadata.key);
  decoded->created_at = metadata.created_at;
  decode_owner(metadata.owners, decoded->owner);
  decode_user_annotations(metadata.annotations, *decoded);
  if (!decode_pod_spec(spec, *decoded)) return broken("spec", out.key);
  if (pool != nullptr) pool->share(*decoded);
  out.spec = decoded;
  return out;
}

std::string encode_status_patch(const PodStatusPatch& patch) {
  JsonWriter out;
  out.open_object().key("metadata").open_object();
  out.field("uid", patch.key.uid.str());
  out.field_if("resourceVersion", patch.resource_version);
  write_annotations(out, patch);
  out.close_object().key("status");
  write_status_patch(out, patch.status, patch.previous);
  out.close_object();
  return out.take();
}

}  // namespace spillway::kube
