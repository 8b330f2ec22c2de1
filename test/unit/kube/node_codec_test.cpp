#include "vk-provider/kube/node_codec.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace std::chrono_literals;
using namespace spillway::kube;
using nlohmann::json;
using spillway::base::ErrorKind;
using spillway::base::WallTime;

namespace {

const WallTime kNow{std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + 12h};

constexpr const char* kNode = R"({
  "kind": "Node", "apiVersion": "v1",
  "metadata": {
    "name": "burst", "uid": "u1", "resourceVersion": "42",
    "labels": {"type": "virtual-kubelet", "team": "ml"}, "annotations": {"note": "x"},
    "managedFields": [
      {"manager": "spillway", "operation": "Update",
       "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:type": {}, "f:spillway.dev/old": {}}}, "f:spec": {}}},
      {"manager": "spillway", "operation": "Apply",
       "fieldsV1": {"f:metadata": {"f:annotations": {"f:note": {}}, "f:labels": {"f:type": {}}}}},
      {"manager": "kubectl-label", "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}}}]},
  "spec": {
    "providerID": "spillway://i/burst",
    "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"},
               {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-11-29T11:00:00Z"}]},
  "status": {
    "capacity": {"cpu": "8", "pods": 10}, "allocatable": {"cpu": "8"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "up",
                    "lastHeartbeatTime": "2026-11-29T11:59:00Z", "lastTransitionTime": "2026-11-28T00:00:00Z"}],
    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
    "nodeInfo": {"machineID": "m", "kernelVersion": "k", "osImage": "o", "containerRuntimeVersion": "c://1",
                 "kubeletVersion": "v1.36.3", "architecture": "amd64", "operatingSystem": "linux"}}})";

}  // namespace

TEST_CASE("a Node is read with what is ours and what is not") {
  const auto node = decode_node(kNode);
  REQUIRE(node);
  CHECK(node->name == "burst");
  CHECK(node->uid == "u1");
  CHECK(node->resource_version == "42");
  CHECK_FALSE(node->deleting);
  CHECK(node->labels == NodeMap{{"type", "virtual-kubelet"}, {"team", "ml"}});
  CHECK(node->owned_labels == std::set<std::string>{"type", "spillway.dev/old"});
  CHECK(node->owned_annotations == std::set<std::string>{"note"});
  REQUIRE(node->taints.size() == 2);
  CHECK(node->taints[0] == NodeTaint("a", "b", "NoSchedule"));
  CHECK(node->taints[1].time_added == "2026-11-29T11:00:00Z");
  CHECK(node->capacity == NodeMap{{"cpu", "8"}, {"pods", "10"}});
  REQUIRE(node->conditions.size() == 1);
  CHECK(node->conditions[0].last_transition == spillway::base::from_rfc3339("2026-11-28T00:00:00Z"));
  CHECK(node->addresses == std::vector<NodeAddress>{{"InternalIP", "10.0.0.1"}});
  CHECK(node->kubelet_port == 10250);
  CHECK(node->info.kubelet_version == "v1.36.3");
}

TEST_CASE("what is absent, null or mistyped in a Node is not set") {
  for (const char* text : {R"({"metadata": {"name": "n", "uid": "u"}})",
                           R"({"metadata": {"name": "n", "uid": "u", "labels": null, "managedFields": {}},
                               "spec": {"taints": "none", "providerID": 7}, "status": []})",
                           R"({"metadata": {"name": "n", "uid": "u", "labels": {"a": 1.5, "b": [], "c": null},
                               "managedFields": [null, 3, {"manager": "spillway", "fieldsV1": "x"}]},
                               "spec": null, "status": {"conditions": [null, {}], "addresses": {"a": 1},
                               "daemonEndpoints": {"kubeletEndpoint": {"Port": "x"}}, "nodeInfo": 1}})"}) {
    INFO(text);
    const auto node = decode_node(text);
    REQUIRE(node);
    CHECK(node->taints.empty());
    CHECK(node->provider_id.empty());
    CHECK(node->kubelet_port == 0);
    CHECK(node->owned_labels.empty());
  }
}

TEST_CASE("what is no Node is refused") {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"metadata": {"name": "n"}})", R"({"metadata": 1})"}) {
    INFO(text);
    const auto node = decode_node(text);
    REQUIRE_FALSE(node);
    CHECK(node.error().kind == ErrorKind::kInvalid);
  }
}

TEST_CASE("a torn Node is refused and never crashes") {
  const std::string whole = kNode;
  for (size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(decode_node(whole.substr(0, length)));
}

TEST_CASE("the first write of a Node carries labels, annotations, taints and provider id, and no status") {
  NodeMetadata metadata;
  metadata.name = "burst";
  metadata.labels = {{"l", "1"}};
  metadata.annotations = {{"a", "2"}};
  const json node = json::parse(encode_node_create(metadata, {{"k", "v", "NoSchedule"}}, "spillway://i/burst"));
  CHECK(node == json::parse(R"({"apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "burst", "labels": {"l": "1"}, "annotations": {"a": "2"}},
    "spec": {"providerID": "spillway://i/burst", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}})"));
}

TEST_CASE("an applied status says capacity twice, and each condition with its times") {
  NodeStatus status;
  status.capacity = {{"cpu", "8"}, {"nvidia.com/gpu", "4"}};
  NodeCondition kept("Ready", "True", "KubeletReady", "up");
  kept.last_transition = kNow - 1h;
  status.conditions = {kept, NodeCondition("DiskPressure", "False", "KubeletHasNoDiskPressure", "fine")};
  status.info.kubelet_version = "v1.36.3-spillway.0.1.0";
  status.kubelet_port = 10250;
  const json node = json::parse(encode_status_apply("burst", "u1", status, kNow));
  CHECK(node["metadata"] == json{{"name", "burst"}, {"uid", "u1"}});
  CHECK(node["status"]["capacity"] == json{{"cpu", "8"}, {"nvidia.com/gpu", "4"}});
  CHECK(node["status"]["allocatable"] == node["status"]["capacity"]);
  CHECK(node["status"]["conditions"][0]["lastHeartbeatTime"] == "2026-11-29T12:00:00Z");
  CHECK(node["status"]["conditions"][0]["lastTransitionTime"] == "2026-11-29T11:00:00Z");
  CHECK(node["status"]["conditions"][1]["lastTransitionTime"] == "2026-11-29T12:00:00Z");
  CHECK(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10250);
  for (const char* required : {"machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion",
                               "containerRuntimeVersion", "kubeletVersion", "operatingSystem", "architecture"}) {
    INFO(required);
    CHECK(node["status"]["nodeInfo"].contains(required));
  }
  CHECK_FALSE(node["status"].contains("declaredFeatures"));
  status.declared_features = {"ExtendWebSocketsToKubelet"};
  CHECK(json::parse(encode_status_apply("burst", "u1", status, kNow))["status"]["declaredFeatures"] ==
        json{"ExtendWebSocketsToKubelet"});
  status.kubelet_port = 0;
  CHECK_FALSE(json::parse(encode_status_apply("burst", "u1", status, kNow))["status"].contains("daemonEndpoints"));
}

TEST_CASE("addresses replace the list, taints carry the version and everybody's entries, removals are null") {
  CHECK(json::parse(encode_addresses_patch("u1", {{"InternalIP", "10.0.0.1"}, {"InternalIP", "fd00::1"}})) ==
        json::parse(R"({"metadata": {"uid": "u1"}, "status": {"addresses": [
          {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00::1"},
          {"$patch": "replace"}]}})"));
  NodeTaint foreign("f", "", "NoExecute");
  foreign.time_added = "2026-11-29T11:00:00Z";
  CHECK(json::parse(encode_taints_patch("42", {foreign})) ==
        json::parse(R"({"metadata": {"resourceVersion": "42"}, "spec": {"taints": [
          {"key": "f", "effect": "NoExecute", "timeAdded": "2026-11-29T11:00:00Z"}]}})"));
  CHECK(json::parse(encode_taints_patch("42", {}))["spec"]["taints"] == json::array());
  CHECK(json::parse(encode_metadata_removal("u1", {"a"}, {"b"})) ==
        json::parse(R"({"metadata": {"uid": "u1", "labels": {"a": null}, "annotations": {"b": null}}})"));
}

TEST_CASE("a provider's message that is no UTF-8 does not break the status") {
  NodeStatus status;
  status.conditions = {NodeCondition("X", "False", "Y", "bad \xff\xfe byte")};
  CHECK_FALSE(json::parse(encode_status_apply("n", "u", status, kNow), nullptr, false).is_discarded());
}

TEST_CASE("the server's version is read, or its absence is told") {
  CHECK(decode_server_version(R"({"major": "1", "gitVersion": "v1.36.3"})") == "v1.36.3");
  for (const char* text : {"", "{}", "[]", R"({"gitVersion": 7})"}) CHECK_FALSE(decode_server_version(text));
}
