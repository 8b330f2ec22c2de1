#include "vk-provider/kube/home_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

namespace kube = spillway::kube;
namespace model = spillway::model;
using nlohmann::json;

namespace {

json container(int gpus) {
  json out = {{"name", "main"}, {"image", "x"}};
  if (gpus > 0) out["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  return out;
}

json sidecar(int gpus) {
  json out = container(gpus);
  out["restartPolicy"] = "Always";
  return out;
}

json pod_with(const std::vector<json>& containers, const std::vector<json>& init = {}) {
  return {{"metadata", {{"uid", "u"}, {"name", "n"}, {"namespace", "ns"}, {"resourceVersion", "7"}}},
          {"spec", {{"containers", containers}, {"initContainers", init}}},
          {"status", {{"phase", "Pending"}}}};
}

model::HomePod decode(const json& pod) {
  auto decoded = kube::decode_home_pod(pod.dump());
  REQUIRE(decoded);
  return *decoded;
}

}  // namespace

TEST_CASE("the GPUs of a pod are those that the scheduler counts") {
  CHECK(decode(pod_with({container(0)})).gpus.none());
  CHECK(decode(pod_with({container(2), container(1)})).gpus.nvidia == 3);
  CHECK(decode(pod_with({container(1)}, {container(4), container(2)})).gpus.nvidia == 4);
  CHECK(decode(pod_with({container(1)}, {sidecar(1), container(4), sidecar(1)})).gpus.nvidia == 5);
  CHECK(decode(pod_with({container(4)}, {sidecar(1), container(2)})).gpus.nvidia == 5);
  json amd = pod_with({container(0)});
  amd["spec"]["containers"][0]["resources"]["requests"]["amd.com/gpu"] = 2;
  CHECK(decode(amd).gpus.amd == 2);
}

TEST_CASE("a pod that waits tells what it may stand on") {
  json pod = pod_with({container(1)});
  pod["metadata"]["labels"] = {{"app", "a"}};
  pod["spec"]["priority"] = 1000;
  pod["spec"]["nodeSelector"] = {{"gpu", "h100"}};
  pod["spec"]["tolerations"] = {{{"key", "a"}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
                                {{"key", "b"}, {"value", "c"}}};
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = {
      {{"matchExpressions", {{{"key", "zone"}, {"operator", "In"}, {"values", {"x", "y"}}}}},
       {"matchFields", {{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"n1"}}}}}}};
  pod["status"]["conditions"] = {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  pod["status"]["nominatedNodeName"] = "home1";
  const model::HomePod out = decode(pod);
  CHECK(out.uid == "u");
  CHECK(out.priority == 1000);
  CHECK(out.labels.at("app") == "a");
  CHECK(out.node_selector.at("gpu") == "h100");
  REQUIRE(out.tolerations.size() == 2);
  CHECK(out.tolerations[0].op == model::Toleration::Operator::kExists);
  CHECK(out.tolerations[0].effect == "NoSchedule");
  CHECK(out.tolerations[1].op == model::Toleration::Operator::kEqual);
  CHECK(out.tolerations[1].value == "c");
  CHECK(out.has_node_terms);
  REQUIRE(out.node_terms.size() == 1);
  REQUIRE(out.node_terms[0].size() == 2);
  CHECK(out.node_terms[0][0].values == std::vector<std::string>{"x", "y"});
  CHECK(out.node_terms[0][1].of_field);
  CHECK(out.node_terms[0][1].op == model::NodeRequirement::Operator::kNotIn);
  CHECK(out.unschedulable);
  CHECK(out.nominated_node == "home1");
  CHECK_FALSE(out.terminal);
  CHECK_FALSE(out.gated);
  CHECK_FALSE(out.deleting);
}

TEST_CASE("a pod's state") {
  json pod = pod_with({container(1)});
  pod["spec"]["nodeName"] = "home1";
  CHECK(decode(pod).node_name == "home1");
  pod["status"]["phase"] = "Succeeded";
  CHECK(decode(pod).terminal);
  pod["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z";
  CHECK(decode(pod).deleting);
  pod["spec"]["schedulingGates"] = {{{"name", "kueue.x-k8s.io/admission"}}};
  CHECK(decode(pod).gated);
  // A scheduling gate is no finding of the scheduler.
  pod["status"]["conditions"] = {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "SchedulingGated"}}};
  CHECK_FALSE(decode(pod).unschedulable);
}

TEST_CASE("a node of home") {
  const json node = {
      {"metadata",
       {{"name", "home1"}, {"labels", {{"gpu", "h100"}}}, {"annotations", {{"spillway.dev/unhealthy-gpus", "2"}}}}},
      {"spec", {{"taints", {{{"key", "k"}, {"effect", "NoSchedule"}}}}}},
      {"status",
       {{"capacity", {{"cpu", "8"}, {"nvidia.com/gpu", "8"}}},
        {"allocatable", {{"nvidia.com/gpu", 7}}},
        {"conditions", {{{"type", "DiskPressure"}, {"status", "False"}}, {{"type", "Ready"}, {"status", "True"}}}}}}};
  const auto out = kube::decode_home_node(node.dump());
  REQUIRE(out);
  CHECK(out->name == "home1");
  CHECK(out->labels.at("gpu") == "h100");
  CHECK(out->taints == std::vector{model::Taint("k", "", "NoSchedule")});
  CHECK(out->allocatable.nvidia == 7);
  CHECK(out->has_nvidia);
  CHECK_FALSE(out->has_amd);
  CHECK(out->ready);
  CHECK_FALSE(out->unschedulable);
  CHECK(out->unhealthy_gpus == 2);
}

TEST_CASE("a node that says little is not ready") {
  const auto out = kube::decode_home_node(
      R"({"metadata":{"name":"n","deletionTimestamp":"2026-11-29T00:00:00Z","annotations":{"spillway.dev/unhealthy-gpus":"many"}},"spec":{"unschedulable":true}})");
  REQUIRE(out);
  CHECK_FALSE(out->ready);
  CHECK(out->unschedulable);
  CHECK(out->deleting);
  CHECK(out->unhealthy_gpus == 0);
  CHECK_FALSE(out->has_nvidia);
}

TEST_CASE("what is broken is told") {
  CHECK_FALSE(kube::decode_home_node("{").has_value());
  CHECK_FALSE(kube::decode_home_node("[]").has_value());
  CHECK_FALSE(kube::decode_home_pod("{}").has_value());
  CHECK_FALSE(kube::decode_home_pod(R"({"metadata":{"uid":"u"},"spec":{"containers":[{"nvidia.com/gpu")").has_value());
}
