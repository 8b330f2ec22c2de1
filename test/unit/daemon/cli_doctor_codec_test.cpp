#include "vk-provider/daemon/cli_doctor_codec.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "vk-provider/daemon/cli_manifest.hpp"

using nlohmann::json;
namespace core = spillway::core;
namespace daemon_ns = spillway::daemon;

namespace {

json a_pod() {
  return json::parse(R"({
    "metadata": {"name": "api-7c9f-x", "namespace": "team", "uid": "u",
      "labels": {"app": "api", "pod-template-hash": "7c9f"},
      "ownerReferences": [{"kind": "ReplicaSet", "name": "api-7c9f", "controller": true}]},
    "spec": {"priority": 100, "nodeSelector": {"gpu": "yes"},
      "tolerations": [{"key": "virtual-kubelet.io/provider", "operator": "Exists"},
                      {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                       "tolerationSeconds": 300}],
      "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
      "containers": [{"name": "main", "image": "app",
        "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": 1}}},
        {"name": "side", "image": "app", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"phase": "Running"}})");
}

std::optional<core::SeenPod> decoded(const json& pod) { return daemon_ns::decode_seen_pod(pod.dump(), {"burst"}); }

std::vector<core::SeenPolicy> policies_of(const std::string& yaml) {
  const json map = {{"metadata", {{"name", "descheduler"}, {"namespace", "kube-system"}}},
                    {"data", {{"policy.yaml", yaml}, {"notes", "nothing"}}}};
  return daemon_ns::decode_policies(map.dump());
}

}  // namespace

TEST_CASE("the doctor reads of a pod what it judges") {
  const auto pod = decoded(a_pod());
  REQUIRE(pod.has_value());
  CHECK(pod->ns == "team");
  CHECK(pod->name == "api-7c9f-x");
  CHECK(pod->owner_kind == "Deployment");
  CHECK(pod->owner_name == "api");
  CHECK(pod->pod.priority == 100);
  CHECK(pod->pod.node_selector == std::map<std::string, std::string>{{"gpu", "yes"}});
  CHECK(pod->toleration_seconds == std::vector<std::optional<std::int64_t>>{std::nullopt, 300});
  CHECK(pod->local_storage);
  CHECK(pod->gang.empty());
  CHECK(pod->needs.at("requests.cpu") == 1500);
  CHECK(pod->needs.at("cpu") == 1500);
  CHECK(pod->needs.at("requests.nvidia.com/gpu") == 1000);
  CHECK(pod->needs.at("limits.nvidia.com/gpu") == 1000);
  CHECK(pod->needs.at("pods") == 1000);
}

TEST_CASE("the doctor leaves pods alone that neither are on our nodes nor may come to them") {
  json pod = a_pod();
  pod["spec"].erase("tolerations");
  CHECK_FALSE(decoded(pod).has_value());
  pod["spec"]["nodeName"] = "burst";
  CHECK(decoded(pod).has_value());
  pod["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "x"}};
  CHECK_FALSE(decoded(pod).has_value());
  CHECK_FALSE(daemon_ns::decode_seen_pod("{\"metadata\":", {}).has_value());
}

TEST_CASE("the doctor knows a gang by field, label and annotation") {
  json pod = a_pod();
  SECTION("the scheduling group") { pod["spec"]["schedulingGroup"] = {{"podGroupName", "llm"}}; }
  SECTION("the workload before it") { pod["spec"]["workloadRef"] = {{"name", "llm"}}; }
  SECTION("coscheduling") { pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "llm"; }
  SECTION("Kueue") { pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "llm"; }
  SECTION("Volcano") { pod["metadata"]["annotations"] = {{"scheduling.k8s.io/group-name", "llm"}}; }
  CHECK(decoded(pod)->gang == "llm");
}

TEST_CASE("the doctor knows kube-state-metrics by its image") {
  json pod = a_pod();
  CHECK_FALSE(daemon_ns::is_state_metrics(pod.dump()));
  pod["spec"]["containers"][1]["image"] = "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.15.0";
  CHECK(daemon_ns::is_state_metrics(pod.dump()));
}

TEST_CASE("the doctor reads budgets, DaemonSets, quotas, flavors and signing requests") {
  const auto budget = daemon_ns::decode_budget(R"({"metadata":{"name":"b","namespace":"team"},
    "spec":{"minAvailable":2,"maxUnavailable":"10%","selector":{"matchLabels":{"app":"api"},
      "matchExpressions":[{"key":"tier","operator":"In","values":["gold"]}]}},"status":{"expectedPods":3}})");
  CHECK(budget.min_available == "2");
  CHECK(budget.max_unavailable == "10%");
  CHECK(budget.expected_pods == 3);
  CHECK(core::matches(budget.selector, {{"app", "api"}, {"tier", "gold"}}));
  CHECK_FALSE(core::matches(budget.selector, {{"app", "api"}}));
  CHECK(daemon_ns::decode_budget(R"({"metadata":{"name":"b"},"spec":{}})").selector.nothing);
  CHECK_FALSE(daemon_ns::decode_budget(R"({"metadata":{"name":"b"},"spec":{"selector":{}}})").selector.nothing);

  const auto set = daemon_ns::decode_daemon_set(R"({"metadata":{"name":"d","namespace":"kube-system"},
    "spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}],"nodeSelector":{"a":"b"}}}}})");
  CHECK(set.ns == "kube-system");
  REQUIRE(set.pod.tolerations.size() == 1);
  CHECK(set.pod.tolerations[0].key.empty());
  CHECK(set.pod.node_selector.at("a") == "b");

  const auto quota = daemon_ns::decode_quota(R"({"metadata":{"name":"q","namespace":"team"},"spec":{},
    "status":{"hard":{"pods":"10","requests.cpu":"1500m"},"used":{"pods":"3","requests.cpu":"1"}}})");
  REQUIRE(quota.has_value());
  CHECK(quota->hard == std::map<std::string, std::int64_t>{{"pods", 10'000}, {"requests.cpu", 1500}});
  CHECK(quota->used.at("requests.cpu") == 1000);
  CHECK_FALSE(daemon_ns::decode_quota(R"({"spec":{"scopes":["BestEffort"]}})").has_value());
  CHECK_FALSE(daemon_ns::decode_quota(R"({"spec":{"scopeSelector":{"matchExpressions":[]}}})").has_value());

  const auto flavor = daemon_ns::decode_flavor(
      R"({"metadata":{"name":"f"},"spec":{"nodeLabels":{"type":"virtual-kubelet"},"topologyName":"t"}})");
  CHECK(flavor.labels.at("type") == "virtual-kubelet");
  CHECK(flavor.topology);

  const auto waiting =
      daemon_ns::decode_signing(R"({"metadata":{"name":"c","creationTimestamp":"2026-12-01T09:00:00Z"},"status":{}})");
  CHECK(waiting.created.has_value());
  CHECK_FALSE(waiting.approved);
  CHECK_FALSE(waiting.issued);
  const auto denied = daemon_ns::decode_signing(
      R"({"metadata":{"name":"c"},"status":{"conditions":[{"type":"Denied","message":"no"}]}})");
  CHECK(denied.refused == "Denied: no");
  const auto issued = daemon_ns::decode_signing(
      R"({"metadata":{"name":"c"},"status":{"conditions":[{"type":"Approved"}],"certificate":"eA=="}})");
  CHECK(issued.approved);
  CHECK(issued.issued);
}

TEST_CASE("the doctor reads a policy of today") {
  const auto policies = policies_of(R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: "type!=virtual-kubelet"
maxNoOfPodsToEvictPerNode: 1
profiles:
- name: home
  pluginConfig:
  - name: DefaultEvictor
    args:
      podProtections:
        defaultDisabled: [PodsWithLocalStorage]
  - name: RemovePodsViolatingNodeTaints
    args: {includePreferNoSchedule: true}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
- name: balance
  plugins:
    balance: {enabled: [RemoveDuplicates]}
)");
  REQUIRE(policies.size() == 2);
  CHECK(policies[0].object == "ConfigMap kube-system/descheduler, policy.yaml, profile home");
  CHECK(policies[0].problem.empty());
  CHECK(policies[0].plugins == std::vector<std::string>{"RemovePodsViolatingNodeTaints"});
  CHECK(policies[0].bounded);
  CHECK(policies[0].soft_taints);
  CHECK_FALSE(policies[0].protects_local_storage);
  CHECK_FALSE(core::matches(policies[0].nodes, {{"type", "virtual-kubelet"}}));
  CHECK(policies[1].plugins == std::vector<std::string>{"RemoveDuplicates"});
  CHECK(policies[1].protects_local_storage);
  CHECK_FALSE(policies[1].soft_taints);
}

TEST_CASE("the doctor knows both ways to say that pods with an emptyDir may be moved") {
  const auto protects = [](const std::string& args) {
    const auto policies = policies_of(
        "kind: DeschedulerPolicy\nprofiles:\n- name: p\n  pluginConfig:\n"
        "  - name: DefaultEvictor\n    args: " +
        args + "\n");
    REQUIRE(policies.size() == 1);
    CHECK_FALSE(policies[0].bounded);
    return policies[0].protects_local_storage;
  };
  CHECK(protects("{}"));
  CHECK_FALSE(protects("{evictLocalStoragePods: true}"));
  CHECK_FALSE(protects("{podProtections: {defaultDisabled: [PodsWithLocalStorage]}}"));
  // The old switch is ignored beside the new ones.
  CHECK(protects("{evictLocalStoragePods: true, podProtections: {extraEnabled: [PodsWithPVC]}}"));
}

TEST_CASE("the doctor reads a policy of the past") {
  const auto policies = policies_of(R"(
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
evictLocalStoragePods: true
strategies:
  RemoveDuplicates: {enabled: true}
  LowNodeUtilization: {enabled: false}
)");
  REQUIRE(policies.size() == 1);
  CHECK(policies[0].plugins == std::vector<std::string>{"RemoveDuplicates"});
  CHECK_FALSE(policies[0].protects_local_storage);
}

TEST_CASE("the doctor says what of a policy it cannot read, and takes nothing else for one") {
  const auto broken = policies_of("kind: DeschedulerPolicy\nprofiles: [\n");
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].problem.starts_with("cannot be read: line "));
  const auto selector = policies_of("kind: DeschedulerPolicy\nnodeSelector: a b\nprofiles: [{name: p}]\n");
  REQUIRE(selector.size() == 1);
  CHECK(selector[0].problem == "its nodeSelector cannot be read: a b");
  CHECK(policies_of("# about a DeschedulerPolicy\nkind: Something\n").empty());
  CHECK(policies_of("nothing").empty());
}

TEST_CASE("YAML becomes JSON by the rules of kubectl") {
  CHECK(daemon_ns::yaml_to_json("a: 1\nb: [yes, \"1\", null]\n").value() == R"({"a":1,"b":[true,"1",null]})");
  CHECK(daemon_ns::yaml_to_json("a: [").error().message.starts_with("line "));
  CHECK_FALSE(daemon_ns::yaml_to_json("a: &a [*a]").has_value());
}
