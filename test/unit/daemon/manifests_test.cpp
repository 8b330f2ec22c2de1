// What people really ask of GPU pods, as manifests of ours (test/data/pods/*.yaml), each with the verdict for a simple
// cloud that runs one container per instance, and for the docker provider. A verdict is the fields that
// stand in the way.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "providers/docker/docker_provider.hpp"
#include "test/unit/daemon/manifest_verdicts.hpp"
#include "vk-provider/daemon/cli_explain.hpp"

namespace daemon_ns = spillway::daemon;
using daemon_ns::ExplainedPod;
using spillway::model::Capability;
using spillway::model::CapabilitySet;

namespace {

const CapabilitySet kSimple = {Capability::kExitCode, Capability::kRestartContainer, Capability::kEntrypoint,
                               Capability::kPortsTcp, Capability::kPortsHttp,        Capability::kRegistryAuth};

using Paths = std::set<std::string>;
using spillway::test::manifest_verdicts;

std::vector<ExplainedPod> judged(const CapabilitySet& capabilities) {
  daemon_ns::ExplainBasis basis;
  basis.providers.resize(1);
  basis.providers[0].capabilities = capabilities;
  std::vector<daemon_ns::ManifestText> texts;
  for (const char* name : {"servers.yaml", "jobs.yaml", "machines.yaml", "volumes.yaml", "words.yaml"}) {
    std::ifstream file(std::string(SPILLWAY_SOURCE_DIR) + "/test/data/pods/" + name);
    REQUIRE(file.good());
    texts.push_back({name, {std::istreambuf_iterator<char>(file), {}}});
  }
  auto report = daemon_ns::explain(texts, basis);
  for (const auto& fault : report.faults) UNSCOPED_INFO(fault.to_string());
  REQUIRE(report.faults.empty());
  return std::move(report.pods);
}

Paths obstacles(const ExplainedPod& pod) {
  Paths out;
  for (const auto& fault : pod.verdict.faults) out.insert(fault.path);
  for (const auto& lack : pod.verdict.providers.at(0).lacks) out.insert(lack.paths.begin(), lack.paths.end());
  CHECK(out.empty() == pod.reason.empty());
  return out;
}

const ExplainedPod& find(const std::vector<ExplainedPod>& pods, const std::string& name) {
  const auto found = std::ranges::find_if(pods, [&](const ExplainedPod& pod) { return pod.object.name == name; });
  REQUIRE(found != pods.end());
  return *found;
}

}  // namespace

TEST_CASE("every manifest has its verdict on a simple cloud") {
  const auto pods = judged(kSimple);
  CHECK(pods.size() == manifest_verdicts().size());
  for (const ExplainedPod& pod : pods) {
    CAPTURE(pod.object.name);
    REQUIRE(manifest_verdicts().contains(pod.object.name));
    CHECK(obstacles(pod) == manifest_verdicts().at(pod.object.name).simple);
  }
}

TEST_CASE("every manifest has its verdict on machines with an engine") {
  for (const ExplainedPod& pod : judged(spillway::providers::docker::capabilities())) {
    CAPTURE(pod.object.name);
    REQUIRE(manifest_verdicts().contains(pod.object.name));
    CHECK(obstacles(pod) == manifest_verdicts().at(pod.object.name).engine);
  }
}

TEST_CASE("what the manifests ask of an offer") {
  const auto pods = judged(spillway::providers::docker::capabilities());
  const auto& quantities = find(pods, "every-quantity").needs;
  CHECK(quantities.cpu_milli == 1500);
  CHECK(quantities.memory == (1LL << 29) + 12'000'000'000);
  CHECK(quantities.gpu_count == 2);
  CHECK(find(pods, "whole-pod").needs.cpu_milli == 8000);
  CHECK(find(pods, "whole-pod").needs.memory == 32LL << 30);
  CHECK(find(pods, "gpus-of-the-init").needs.gpu_count == 2);
  CHECK(find(pods, "gpus-of-the-init").needs.cpu_milli == 9000);
  CHECK(find(pods, "eight-gpus").needs.gpu_count == 8);
  CHECK(find(pods, "driver-directories").needs.cpu_milli == 220'000);
  CHECK(find(pods, "three-ports-as-a-user").needs.public_ports == std::vector{8000, 8001});
  CHECK(find(pods, "image-with-a-scheme").reason == "InvalidImageName");
}
