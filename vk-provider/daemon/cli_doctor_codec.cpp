#include "vk-provider/daemon/cli_doctor_codec.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "vk-provider/kube/home_codec.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::daemon {
namespace {

using kube::json_member;
using kube::json_string_or_empty;
using kube::JsonArray;
using kube::JsonObject;

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
/// Labels and annotations by which schedulers know that pods belong together.
constexpr std::array<std::string_view, 4> kGroupKeys{"scheduling.x-k8s.io/pod-group",
                                                     "pod-group.scheduling.sigs.k8s.io",
                                                     "kueue.x-k8s.io/pod-group-name", "scheduling.k8s.io/group-name"};

/// A value that may be a text or a bare number.
std::string word_of(std::string_view json) {
  return kube::json_string(json).value_or(kube::json_is_null(json) ? std::string() : std::string(json));
}

std::int64_t milli_of(std::string_view json) { return model::quantity_milli(word_of(json)).value_or(0); }

core::LabelSelector decode_selector(std::string_view json) {
  core::LabelSelector out;
  out.nothing = !kube::json_is_object(json);
  out.labels = kube::decode_labels(json_member(json, "matchLabels"));
  out.expressions = kube::decode_requirements(json_member(json, "matchExpressions"));
  return out;
}

void take_owner(std::string_view metadata, core::SeenPod& out) {
  JsonArray owners(json_member(metadata, "ownerReferences"));
  while (owners.next()) {
    if (!kube::json_is_true(json_member(owners.value(), "controller"))) continue;
    out.owner_kind = json_string_or_empty(json_member(owners.value(), "kind"));
    out.owner_name = json_string_or_empty(json_member(owners.value(), "name"));
  }
  const auto hash = out.pod.labels.find("pod-template-hash");
  if (out.owner_kind != "ReplicaSet" || hash == out.pod.labels.end()) return;
  if (!out.owner_name.ends_with("-" + hash->second)) return;
  out.owner_kind = "Deployment";
  out.owner_name.resize(out.owner_name.size() - hash->second.size() - 1);
}

void take_gang(std::string_view spec, const std::map<std::string, std::string>& annotations, core::SeenPod& out) {
  out.gang = json_string_or_empty(json_member(spec, "schedulingGroup", "podGroupName"));
  if (out.gang.empty()) out.gang = json_string_or_empty(json_member(spec, "workloadRef", "name"));
  for (const std::string_view key : kGroupKeys) {
    for (const auto& map : {std::cref(out.pod.labels), std::cref(annotations)}) {
      const auto it = map.get().find(std::string(key));
      if (out.gang.empty() && it != map.get().end()) out.gang = it->second;
    }
  }
}

/// What a ResourceQuota would count of it, init containers left out.
void take_needs(std::string_view spec, core::SeenPod& out) {
  constexpr std::int64_t kOne = 1000;
  out.needs = {{"pods", kOne}, {"count/pods", kOne}};
  JsonArray containers(json_member(spec, "containers"));
  while (containers.next()) {
    const std::string_view resources = json_member(containers.value(), "resources");
    for (const char* const part : {"requests", "limits"}) {
      JsonObject amounts(json_member(resources, part));
      while (amounts.next()) {
        const std::string name(amounts.key());
        const std::int64_t amount = milli_of(amounts.value());
        out.needs[std::string(part) + "." + name] += amount;
        if (std::string_view(part) == "requests") out.needs[name] += amount;
      }
    }
  }
}

std::map<std::string, std::int64_t> decode_amounts(std::string_view json) {
  std::map<std::string, std::int64_t> out;
  JsonObject members(json);
  while (members.next()) out[kube::json_unescape(members.key()).value_or("")] = milli_of(members.value());
  return out;
}

}  // namespace

ObjectName decode_name(std::string_view json) {
  const std::string_view metadata = json_member(json, "metadata");
  ObjectName out;
  out.ns = json_string_or_empty(json_member(metadata, "namespace"));
  out.name = json_string_or_empty(json_member(metadata, "name"));
  return out;
}

std::optional<core::SeenPod> decode_seen_pod(std::string_view json, const std::set<std::string>& own) {
  const std::string_view metadata = json_member(json, "metadata");
  const std::string_view spec = json_member(json, "spec");
  auto pod = kube::decode_any_pod(json);
  if (!pod) return std::nullopt;
  const auto annotations = kube::decode_labels(json_member(metadata, "annotations"));
  const model::Taint provider(std::string(model::kTaintProviderKey), std::string(model::kTaintProviderValue),
                              "NoSchedule");
  if (!own.contains(pod->node_name) && !core::tolerates(pod->tolerations, provider)) return std::nullopt;
  if (annotations.contains(std::string(kMirror))) return std::nullopt;
  core::SeenPod out;
  ObjectName name = decode_name(json);
  out.ns = std::move(name.ns);
  out.name = std::move(name.name);
  out.pod = std::move(*pod);
  take_owner(metadata, out);
  JsonArray tolerations(json_member(spec, "tolerations"));
  while (tolerations.next()) {
    out.toleration_seconds.push_back(kube::json_int(json_member(tolerations.value(), "tolerationSeconds")));
  }
  JsonArray volumes(json_member(spec, "volumes"));
  while (volumes.next()) {
    const bool local =
        !json_member(volumes.value(), "emptyDir").empty() || !json_member(volumes.value(), "hostPath").empty();
    out.local_storage = out.local_storage || local;
  }
  take_gang(spec, annotations, out);
  take_needs(spec, out);
  return out;
}

bool is_state_metrics(std::string_view pod) {
  JsonArray containers(json_member(json_member(pod, "spec"), "containers"));
  while (containers.next()) {
    if (json_member(containers.value(), "image").find("kube-state-metrics") != std::string_view::npos) return true;
  }
  return false;
}

core::SeenBudget decode_budget(std::string_view json) {
  core::SeenBudget out;
  ObjectName name = decode_name(json);
  out.ns = std::move(name.ns);
  out.name = std::move(name.name);
  const std::string_view spec = json_member(json, "spec");
  out.selector = decode_selector(json_member(spec, "selector"));
  out.min_available = word_of(json_member(spec, "minAvailable"));
  out.max_unavailable = word_of(json_member(spec, "maxUnavailable"));
  out.expected_pods = kube::json_int(json_member(json_member(json, "status"), "expectedPods")).value_or(0);
  return out;
}

core::SeenDaemonSet decode_daemon_set(std::string_view json) {
  core::SeenDaemonSet out;
  ObjectName name = decode_name(json);
  out.ns = std::move(name.ns);
  out.name = std::move(name.name);
  out.pod = kube::decode_pod_template(json_member(json_member(json, "spec"), "template"));
  return out;
}

std::optional<core::SeenQuota> decode_quota(std::string_view json) {
  const std::string_view spec = json_member(json, "spec");
  if (JsonArray(json_member(spec, "scopes")).next() || !json_member(spec, "scopeSelector").empty()) return std::nullopt;
  core::SeenQuota out;
  ObjectName name = decode_name(json);
  out.ns = std::move(name.ns);
  out.name = std::move(name.name);
  const std::string_view status = json_member(json, "status");
  out.hard = decode_amounts(json_member(status, "hard"));
  out.used = decode_amounts(json_member(status, "used"));
  return out;
}

core::SeenFlavor decode_flavor(std::string_view json) {
  core::SeenFlavor out;
  out.name = decode_name(json).name;
  const std::string_view spec = json_member(json, "spec");
  out.labels = kube::decode_labels(json_member(spec, "nodeLabels"));
  out.topology = !json_string_or_empty(json_member(spec, "topologyName")).empty();
  return out;
}

core::SeenSigning decode_signing(std::string_view json) {
  core::SeenSigning out;
  out.name = decode_name(json).name;
  out.created = base::from_rfc3339(json_string_or_empty(json_member(json, "metadata", "creationTimestamp")));
  const std::string_view status = json_member(json, "status");
  out.issued = !json_string_or_empty(json_member(status, "certificate")).empty();
  JsonArray conditions(json_member(status, "conditions"));
  while (conditions.next()) {
    const std::string type = json_string_or_empty(json_member(conditions.value(), "type"));
    if (type == "Approved") out.approved = true;
    if (type != "Denied" && type != "Failed") continue;
    const std::string message = json_string_or_empty(json_member(conditions.value(), "message"));
    out.refused = type + (message.empty() ? "" : ": " + message);
  }
  return out;
}

}  // namespace spillway::daemon
