#include "vk-provider/daemon/cli_explain.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "providers/builtin.hpp"

namespace daemon_ns = spillway::daemon;
using daemon_ns::ExplainBasis;
using daemon_ns::ExplainReport;
using daemon_ns::Output;
using spillway::model::Capability;

namespace {

constexpr const char* kDeployment = R"(kind: Deployment
metadata: {name: web, namespace: team-a}
spec:
  template:
    spec:
      containers:
      - name: main
        image: app:1
        resources: {limits: {nvidia.com/gpu: 2, cpu: 1500m, memory: 8Gi}}
        volumeMounts: [{name: conf, mountPath: /etc/app}]
      volumes:
      - name: conf
        configMap: {name: app}
)";
constexpr const char* kHost = R"(---
kind: Pod
metadata: {name: agent}
spec:
  hostPID: true
  containers: [{name: main, image: app:1}]
)";
constexpr const char* kService = "---\nkind: Service\nmetadata: {name: web}\n";

ExplainBasis basis() {
  ExplainBasis out;
  out.providers.resize(2);
  out.providers[0].name = "big";
  out.providers[0].capabilities = {Capability::kExitCode, Capability::kRestartContainer, Capability::kFiles,
                                   Capability::kPortsTcp};
  out.providers[1].name = "small";
  out.providers[1].capabilities = {Capability::kExitCode, Capability::kRestartContainer};
  return out;
}

ExplainReport explain(const std::string& text, const ExplainBasis& by = basis()) {
  return daemon_ns::explain({{"m.yaml", text}}, by);
}

}  // namespace

TEST_CASE("explain shows per provider what it cannot do, and that the pod runs") {
  const ExplainReport report = explain(kDeployment);
  CHECK(report.exit_code == 0);
  CHECK(to_text(report, Output::kTable) ==
        "m.yaml:1: Deployment team-a/web (spec.template): runs\n"
        "  asks for 2 nvidia.com/gpu, 1500m CPU, 8Gi\n"
        "  provider big: can\n"
        "  provider small: cannot\n"
        "    spec.containers[0].volumeMounts[0], spec.volumes[0].configMap: the provider has to place files into the "
        "container\n"
        "\n"
        "1 of 1 can run\n");
}

TEST_CASE("one refused pod among several makes the exit code 3") {
  const ExplainReport report = explain(std::string(kDeployment) + kHost + kService);
  CHECK(report.exit_code == 3);
  REQUIRE(report.pods.size() == 2);
  CHECK(report.pods[0].reason.empty());
  CHECK(report.pods[1].reason == "UnsupportedPodSpec");
  const std::string text = to_text(report, Output::kTable);
  CHECK_THAT(text, Catch::Contains("m.yaml:15: Pod agent: refused, UnsupportedPodSpec\n"
                                   "  spec.hostPID: the namespaces of a rented machine's host are not ours to give\n"
                                   "  provider big: can do the rest\n"));
  CHECK_THAT(text, Catch::EndsWith("m.yaml:21: Service web: has no pod\n\n1 of 2 can run\n"));
}

TEST_CASE("explain's JSON holds the daemon's own message") {
  const auto json = nlohmann::json::parse(to_text(explain(std::string(kDeployment) + kHost + kService), Output::kJson));
  REQUIRE(json["pods"].size() == 2);
  const auto& web = json["pods"][0];
  CHECK(web["runs"] == true);
  CHECK(web["namespace"] == "team-a");
  CHECK(web["template"] == "spec.template");
  CHECK(web["gpus"] == 2);
  CHECK(web["cpuMilli"] == 1500);
  CHECK(web["providers"][0]["able"] == true);
  CHECK(web["providers"][1]["lacks"][0]["capability"] == "files");
  CHECK(web["providers"][1]["lacks"][0]["paths"].size() == 2);
  CHECK_FALSE(web.contains("message"));
  const auto& agent = json["pods"][1];
  CHECK(agent["runs"] == false);
  CHECK(agent["reason"] == "UnsupportedPodSpec");
  CHECK(agent["faults"][0]["path"] == "spec.hostPID");
  CHECK(agent["message"].get<std::string>().starts_with("Pod was rejected: spec.hostPID: "));
  CHECK(json["others"][0]["kind"] == "Service");
}

TEST_CASE("bad input is 2 and nothing else, however good the rest is") {
  const ExplainReport broken = daemon_ns::explain({{"good.yaml", kDeployment}, {"bad.yaml", "kind: [\n"}}, basis());
  CHECK(broken.exit_code == 2);
  CHECK(broken.pods.empty());
  REQUIRE(broken.faults.size() == 1);
  CHECK(broken.faults[0].file == "bad.yaml");
  CHECK(explain("").faults.at(0).to_string() == "m.yaml: is empty");
  CHECK(explain(kService).faults.at(0).to_string() == "m.yaml: holds no pod and no workload");
}

TEST_CASE("an image that nobody can ask for has a reason of its own") {
  const ExplainReport report = explain("kind: Pod\nspec: {containers: [{name: a, image: 'docker://a'}]}\n");
  CHECK(report.exit_code == 3);
  CHECK(report.pods.at(0).reason == "InvalidImageName");
}

TEST_CASE("ports that the node publishes are part of the verdict") {
  ExplainBasis by = basis();
  by.providers.erase(by.providers.begin());
  by.nodes.resize(2);
  by.nodes[0].name = "open";
  by.nodes[0].public_ports = {80};
  by.nodes[1].name = "closed";
  const auto on_node = [&](const std::string& node) {
    return explain("kind: Pod\nspec: {" + node + "containers: [{name: a, image: a, ports: [{containerPort: 80}]}]}\n",
                   by);
  };
  CHECK(on_node("nodeName: open, ").exit_code == 3);
  CHECK(on_node("nodeName: closed, ").exit_code == 0);
  CHECK(on_node("").exit_code == 0);
}

TEST_CASE("without a configuration the built-in types of providers are asked") {
  const ExplainBasis by = daemon_ns::explain_basis(spillway::providers::builtin_providers());
  REQUIRE(by.providers.size() == 2);
  CHECK(by.providers[0].name == "docker");
  CHECK(by.providers[0].capabilities.has(Capability::kExitCode));
  CHECK(by.providers[1].name == "fake");
}
