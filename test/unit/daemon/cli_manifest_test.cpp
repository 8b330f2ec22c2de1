#include "vk-provider/daemon/cli_manifest.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using spillway::daemon::Manifest;
using spillway::daemon::read_manifest;
using Json = nlohmann::json;

namespace {

Manifest read(const std::string& text) {
  auto manifest = read_manifest(text, "m.yaml");
  if (!manifest) UNSCOPED_INFO(manifest.error()[0].to_string());
  REQUIRE(manifest.has_value());
  return std::move(*manifest);
}

std::vector<std::string> faults(const std::string& text) {
  std::vector<std::string> out;
  const auto manifest = read_manifest(text, "m.yaml");
  if (manifest) return out;
  for (const auto& fault : manifest.error()) out.push_back(fault.to_string());
  return out;
}

Json spec_of(const std::string& text) { return Json::parse(read(text).pods.at(0).json)["spec"]; }

}  // namespace

TEST_CASE("a Pod is found with its place, name and annotations") {
  const Manifest manifest = read(R"(
apiVersion: v1
kind: Pod
metadata:
  name: solo
  namespace: team-a
  annotations: {spillway.dev/public-ports: "8080"}
spec:
  containers: [{name: main, image: app:1}]
)");
  REQUIRE(manifest.pods.size() == 1);
  CHECK(manifest.pods[0].object.file == "m.yaml");
  CHECK(manifest.pods[0].object.line == 2);
  CHECK(manifest.pods[0].object.kind == "Pod");
  CHECK(manifest.pods[0].object.name == "solo");
  CHECK(manifest.pods[0].object.ns == "team-a");
  CHECK(manifest.pods[0].path.empty());
  const Json pod = Json::parse(manifest.pods[0].json);
  CHECK(pod["metadata"]["name"] == "solo");
  CHECK(pod["metadata"]["namespace"] == "team-a");
  CHECK(pod["metadata"]["annotations"] == Json{{"spillway.dev/public-ports", "8080"}});
  CHECK(pod["spec"]["containers"] == Json::parse(R"([{"name":"main","image":"app:1"}])"));
}

TEST_CASE("pods are found in every workload, in lists and in several documents") {
  const Manifest manifest = read(R"(
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: a, image: a}]}}}
---
kind: CronJob
metadata: {name: nightly}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: a}]}}}}}
---
---
kind: List
items:
- kind: Service
  metadata: {name: web}
  spec: {ports: []}
- kind: Job
  metadata: {generateName: train-}
  spec: {template: {spec: {containers: [{name: a, image: a}]}}}
---
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: a, image: a}]}}}
  workerGroupSpecs: [{template: {spec: {containers: [{name: a, image: a}]}}}]
)");
  std::vector<std::string> found;
  for (const auto& pod : manifest.pods) found.push_back(pod.object.kind + " " + pod.object.name + " " + pod.path);
  CHECK(found == std::vector<std::string>{"Deployment web spec.template",
                                          "CronJob nightly spec.jobTemplate.spec.template", "Job train- spec.template",
                                          "RayCluster ray spec.headGroupSpec.template",
                                          "RayCluster ray spec.workerGroupSpecs[0].template"});
  REQUIRE(manifest.others.size() == 1);
  CHECK(manifest.others[0].kind == "Service");
  CHECK(manifest.others[0].line == 13);
}

TEST_CASE("scalars are read as kubectl reads them") {
  const Json spec = spec_of(R"(
kind: Pod
metadata: {name: a}
spec:
  hostNetwork: yes
  hostPID: "true"
  hostIPC: False
  activeDeadlineSeconds: null
  terminationGracePeriodSeconds: ~
  priority: -5
  containers:
  - name: !!str 8
    image: '1.0'
    args: [0x10, 0b11, 0o17, 017, "017", 1_0, +3, .5, 1e3, on, plain text, ""]
  volumes:
  - secret: {secretName: s, defaultMode: 0400}
)");
  CHECK(spec["hostNetwork"] == true);
  CHECK(spec["hostPID"] == "true");
  CHECK(spec["hostIPC"] == false);
  CHECK(spec["activeDeadlineSeconds"] == nullptr);
  CHECK(spec["terminationGracePeriodSeconds"] == nullptr);
  CHECK(spec["priority"] == -5);
  CHECK(spec["containers"][0]["name"] == "8");
  CHECK(spec["containers"][0]["image"] == "1.0");
  CHECK(spec["containers"][0]["args"] ==
        Json::parse(R"([16, 3, 15, 15, "017", "1_0", 3, ".5", "1e3", true, "plain text", ""])"));
  CHECK(spec["volumes"][0]["secret"]["defaultMode"] == 0400);
}

TEST_CASE("anchors and merges are followed, and a key's own value wins") {
  const Json spec = spec_of(R"(
kind: Pod
metadata: {name: a}
common: &common {image: app:1, tty: true}
spec:
  containers:
  - <<: *common
    name: main
    tty: false
)");
  CHECK(spec["containers"][0] == Json::parse(R"({"name":"main","tty":false,"image":"app:1"})"));
}

TEST_CASE("what a StatefulSet adds to its pods is there") {
  const Json spec = spec_of(R"(
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  volumeClaimTemplates: [{metadata: {name: data}}]
  template: {spec: {containers: [{name: a, image: a}]}}
)");
  CHECK(spec["hostname"] == "db-0");
  CHECK(spec["subdomain"] == "db");
  CHECK(spec["volumes"] == Json::parse(R"([{"name":"data","persistentVolumeClaim":{"claimName":"data-db-0"}}])"));
  CHECK(spec_of(R"(
kind: Job
metadata: {name: shards}
spec: {completionMode: Indexed, template: {spec: {containers: [{name: a, image: a}]}}}
)")["hostname"] == "shards-0");
}

TEST_CASE("bad input is told with its line") {
  CHECK(faults("kind: Pod\nmetadata: {name: a\n").at(0).starts_with("m.yaml:3: is not valid YAML: "));
  CHECK(faults("[a]\n") == std::vector<std::string>{"m.yaml:1: is no Kubernetes object"});
  CHECK(faults("\nmetadata: {name: a}\n") == std::vector<std::string>{"m.yaml:2: kind: is missing"});
  CHECK(faults("kind: Pod\nspec: {containers: x}\n") ==
        std::vector<std::string>{"m.yaml:1: spec.containers: is missing"});
  CHECK(faults(R"(kind: Job
metadata: {name: a}
spec:
  template:
    metadata:
      labels: {version: 2}
    spec:
      containers:
      - name: a
        env:
        - {name: A, value: "1"}
        - {name: B, value: true}
)") == std::vector<std::string>{
           "m.yaml:6: spec.template.metadata.labels[version]: must be a text; put it in quotes",
           "m.yaml:12: spec.template.spec.containers[0].env[1].value: must be a text; put it in quotes"});
  CHECK(faults("kind: Pod\nspec: &s {containers: [{x: *s}]}\n").at(0).starts_with("m.yaml"));
}

TEST_CASE("what only begins like a number is a text") {
  const auto of_value = [](const std::string& value) {
    return faults("kind: Pod\nspec: {containers: [{name: a, env: [{name: A, value: " + value + "}]}]}\n").size();
  };
  for (const char* text : {"127.0.0.1", "1.2.3", "8Gi", "2e-4x", "-", ".", "e5", "inf", "1-2", "''", "~"}) {
    CAPTURE(text);
    CHECK(of_value(text) == 0);
  }
  for (const char* number : {"1.5", "2e-4", "-.5", "+3", "0x1F", "7"}) {
    CAPTURE(number);
    CHECK(of_value(number) == 1);
  }
}

TEST_CASE("JSON is a manifest, too") {
  CHECK(spec_of(R"({"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","stdin":true,
      "args":["a\nb","\u00fc","true"]}]}})")["containers"][0] ==
        Json::parse(R"({"name":"a","stdin":true,"args":["a\nb","\u00fc","true"]})"));
}
