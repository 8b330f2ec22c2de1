#include "vk-provider/kube/node_codec.hpp"

#include <nlohmann/json.hpp>

#include "vk-provider/model/labels.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;
using nlohmann::json;

// Readers that take what is absent, null or of another type for "not set".

const json& child(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

std::string text(const json& object, const char* key) {
  const json& value = child(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

int number(const json& object, const char* key) {
  const json& value = child(object, key);
  return value.is_number_integer() ? value.get<int>() : 0;
}

std::optional<base::WallTime> time_at(const json& object, const char* key) {
  const std::string value = text(object, key);
  return value.empty() ? std::nullopt : base::from_rfc3339(value);
}

NodeMap map_at(const json& object, const char* key) {
  NodeMap map;
  const json& value = child(object, key);
  if (!value.is_object()) return map;
  for (const auto& [name, entry] : value.items()) {
    if (entry.is_string()) map.emplace(name, entry.get<std::string>());
    if (entry.is_number()) map.emplace(name, entry.dump());  // a quantity may be a bare number
  }
  return map;
}

std::vector<NodeTaint> taints_at(const json& spec) {
  std::vector<NodeTaint> taints;
  const json& list = child(spec, "taints");
  if (!list.is_array()) return taints;
  for (const json& entry : list) {
    NodeTaint taint(text(entry, "key"), text(entry, "value"), text(entry, "effect"));
    taint.time_added = text(entry, "timeAdded");
    if (!taint.key.empty()) taints.push_back(std::move(taint));
  }
  return taints;
}

std::vector<NodeCondition> conditions_at(const json& status) {
  std::vector<NodeCondition> conditions;
  const json& list = child(status, "conditions");
  if (!list.is_array()) return conditions;
  for (const json& entry : list) {
    NodeCondition condition(text(entry, "type"), text(entry, "status"), text(entry, "reason"), text(entry, "message"));
    condition.last_heartbeat = time_at(entry, "lastHeartbeatTime");
    condition.last_transition = time_at(entry, "lastTransitionTime");
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

std::vector<NodeAddress> addresses_at(const json& status) {
  std::vector<NodeAddress> addresses;
  const json& list = child(status, "addresses");
  if (!list.is_array()) return addresses;
  for (const json& entry : list) addresses.emplace_back(text(entry, "type"), text(entry, "address"));
  return addresses;
}

NodeSystemInfo info_at(const json& status) {
  const json& from = child(status, "nodeInfo");
  NodeSystemInfo info;
  info.machine_id = text(from, "machineID");
  info.kernel_version = text(from, "kernelVersion");
  info.os_image = text(from, "osImage");
  info.container_runtime_version = text(from, "containerRuntimeVersion");
  info.kubelet_version = text(from, "kubeletVersion");
  info.architecture = text(from, "architecture");
  info.operating_system = text(from, "operatingSystem");
  return info;
}

/// Adds what one entry of managedFields says that we own: `f:metadata: {f:labels: {f:name: {}}}`.
void add_owned(const json& entry, const char* field, std::set<std::string>& owned) {
  constexpr std::string_view kFieldPrefix = "f:";
  const json& fields = child(child(child(entry, "fieldsV1"), "f:metadata"), field);
  if (!fields.is_object()) return;
  for (const auto& [key, unused] : fields.items()) {
    if (key.starts_with(kFieldPrefix)) owned.insert(key.substr(kFieldPrefix.size()));
  }
}

json to_json(const std::vector<NodeTaint>& taints) {
  json list = json::array();
  for (const NodeTaint& taint : taints) {
    json entry = {{"key", taint.key}, {"effect", taint.effect}};
    if (!taint.value.empty()) entry["value"] = taint.value;
    if (!taint.time_added.empty()) entry["timeAdded"] = taint.time_added;
    list.push_back(std::move(entry));
  }
  return list;
}

json to_json(const NodeCondition& condition, base::WallTime now) {
  return {{"type", condition.type},
          {"status", condition.status},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastHeartbeatTime", base::to_rfc3339(now)},
          {"lastTransitionTime", base::to_rfc3339(condition.last_transition.value_or(now))}};
}

json to_json(const NodeSystemInfo& info) {
  return {{"machineID", info.machine_id},
          {"systemUUID", info.machine_id},
          {"bootID", info.machine_id},
          {"kernelVersion", info.kernel_version},
          {"osImage", info.os_image},
          {"containerRuntimeVersion", info.container_runtime_version},
          {"kubeletVersion", info.kubelet_version},
          {"kubeProxyVersion", ""},
          {"architecture", info.architecture},
          {"operatingSystem", info.operating_system}};
}

json node_object(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
}

/// Foreign text (a message of a provider) may hold bytes that are no UTF-8; they are replaced, not thrown about.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

base::Result<ObservedNode> decode_node(std::string_view text_of_node) {
  const json object = json::parse(text_of_node, nullptr, false);
  if (object.is_discarded() || !object.is_object()) {
    return base::fail(ErrorKind::kInvalid, "the API server's answer for a Node is no JSON object");
  }
  const json& metadata = child(object, "metadata");
  ObservedNode node;
  node.name = text(metadata, "name");
  node.uid = text(metadata, "uid");
  if (node.name.empty() || node.uid.empty()) {
    return base::fail(ErrorKind::kInvalid, "a Node without metadata.name or metadata.uid");
  }
  node.resource_version = text(metadata, "resourceVersion");
  node.deleting = !text(metadata, "deletionTimestamp").empty();
  node.labels = map_at(metadata, "labels");
  node.annotations = map_at(metadata, "annotations");
  const json& managed = child(metadata, "managedFields");
  if (managed.is_array()) {
    for (const json& entry : managed) {
      if (text(entry, "manager") != model::kFieldManager) continue;
      add_owned(entry, "f:labels", node.owned_labels);
      add_owned(entry, "f:annotations", node.owned_annotations);
    }
  }
  const json& spec = child(object, "spec");
  node.taints = taints_at(spec);
  node.provider_id = text(spec, "providerID");
  const json& status = child(object, "status");
  node.capacity = map_at(status, "capacity");
  node.allocatable = map_at(status, "allocatable");
  node.conditions = conditions_at(status);
  node.addresses = addresses_at(status);
  node.info = info_at(status);
  node.kubelet_port = number(child(child(status, "daemonEndpoints"), "kubeletEndpoint"), "Port");
  return node;
}

std::string encode_node_create(const NodeMetadata& metadata, const std::vector<NodeTaint>& taints,
                               const std::string& provider_id) {
  json object = node_object(metadata.name);
  object["metadata"]["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) object["metadata"]["annotations"] = metadata.annotations;
  object["spec"]["providerID"] = provider_id;
  if (!taints.empty()) object["spec"]["taints"] = to_json(taints);
  return dump(object);
}

std::string encode_metadata_apply(const NodeMetadata& metadata) {
  json object = node_object(metadata.name);
  object["metadata"]["uid"] = metadata.uid;
  object["metadata"]["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) object["metadata"]["annotations"] = metadata.annotations;
  return dump(object);
}

std::string encode_metadata_removal(const std::string& uid, const std::set<std::string>& labels,
                                    const std::set<std::string>& annotations) {
  json object = {{"metadata", {{"uid", uid}}}};
  for (const std::string& key : labels) object["metadata"]["labels"][key] = nullptr;
  for (const std::string& key : annotations) object["metadata"]["annotations"][key] = nullptr;
  return dump(object);
}

std::string encode_status_apply(const std::string& name, const std::string& uid, const NodeStatus& status,
                                base::WallTime now) {
  json object = node_object(name);
  object["metadata"]["uid"] = uid;
  json& out = object["status"];
  out["capacity"] = status.capacity;
  out["allocatable"] = status.capacity;
  json conditions = json::array();
  for (const NodeCondition& condition : status.conditions) conditions.push_back(to_json(condition, now));
  out["conditions"] = std::move(conditions);
  out["nodeInfo"] = to_json(status.info);
  if (status.kubelet_port != 0) out["daemonEndpoints"] = {{"kubeletEndpoint", {{"Port", status.kubelet_port}}}};
  if (!status.declared_features.empty()) out["declaredFeatures"] = status.declared_features;
  return dump(object);
}

std::string encode_addresses_patch(const std::string& uid, const std::vector<NodeAddress>& addresses) {
  json list = json::array();
  for (const NodeAddress& address : addresses) {
    list.push_back({{"type", address.type}, {"address", address.address}});
  }
  list.push_back({{"$patch", "replace"}});
  const json object = {{"metadata", {{"uid", uid}}}, {"status", {{"addresses", std::move(list)}}}};
  return dump(object);
}

std::string encode_taints_patch(const std::string& resource_version, const std::vector<NodeTaint>& taints) {
  const json object = {{"metadata", {{"resourceVersion", resource_version}}}, {"spec", {{"taints", to_json(taints)}}}};
  return dump(object);
}

std::string encode_provider_id_patch(const std::string& uid, const std::string& provider_id) {
  const json object = {{"metadata", {{"uid", uid}}}, {"spec", {{"providerID", provider_id}}}};
  return dump(object);
}

base::Result<std::string> decode_server_version(std::string_view text_of_version) {
  const json object = json::parse(text_of_version, nullptr, false);
  std::string version = text(object, "gitVersion");
  if (version.empty()) return base::fail(ErrorKind::kInvalid, "GET /version has no gitVersion");
  return version;
}

}  // namespace spillway::kube
