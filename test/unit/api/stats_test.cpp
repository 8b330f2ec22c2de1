#include "vk-provider/api/stats.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "test/support/pod_shelf.hpp"
#include "vk-provider/api/configz.hpp"
#include "vk-provider/api/pods.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;
using Json = nlohmann::json;

namespace {

const base::WallTime kWall = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29);
const base::Now kNow{base::TimePoint(1h), kWall};

}  // namespace

TEST_CASE("the summary tells the node, its pods and their containers, and nothing that is not known") {
  test::PodShelf shelf;
  core::UsageBook usage;
  model::PodRecord record = test::a_running_pod("web-0", "u-1", {"main", "side"}, kWall - 1min);
  record.observed.status.start_time = kWall - 2min;
  shelf.add(std::move(record));
  for (const auto& [age, cpu] : {std::pair(10s, 1'000'000'000U), std::pair(0s, 2'000'000'000U)}) {
    core::UsageSample sample;
    sample.cpu_ns = cpu;
    sample.working_set = 4096;
    sample.at = kWall - age;
    sample.noted = kNow.steady - age;
    usage.note("burst", base::PodUid("u-1"), "main", sample);
  }
  const Json summary = Json::parse(to_stats_summary(measure_node(shelf.store, usage, "burst", kNow), kWall - 1h));
  CHECK(summary == Json::parse(R"({
    "node": {"nodeName": "burst", "startTime": "2026-11-28T23:00:00Z",
             "cpu": {"time": "2026-11-29T00:00:00Z", "usageNanoCores": 100000000, "usageCoreNanoSeconds": 2000000000},
             "memory": {"time": "2026-11-29T00:00:00Z", "workingSetBytes": 4096}},
    "pods": [{"podRef": {"name": "web-0", "namespace": "team-a", "uid": "u-1"}, "startTime": "2026-11-28T23:58:00Z",
      "containers": [
        {"name": "main", "startTime": "2026-11-28T23:59:00Z",
         "cpu": {"time": "2026-11-29T00:00:00Z", "usageNanoCores": 100000000, "usageCoreNanoSeconds": 2000000000},
         "memory": {"time": "2026-11-29T00:00:00Z", "workingSetBytes": 4096}},
        {"name": "side", "startTime": "2026-11-28T23:59:00Z"}]}]})"));
}

TEST_CASE("an empty node has a summary, too") {
  const test::PodShelf shelf;
  const core::UsageBook usage;
  const Json summary = Json::parse(to_stats_summary(measure_node(shelf.store, usage, "burst", kNow), kWall));
  CHECK(summary["pods"] == Json::array());
  CHECK(summary["node"]["cpu"]["usageCoreNanoSeconds"] == 0);
}

TEST_CASE("running pods are those of which something runs and that nobody ends") {
  test::PodShelf shelf;
  model::PodRecord& web = shelf.add(test::a_running_pod("web-0", "u-1", {"main", "init"}, kWall));
  web.containers[1].claim.state = model::ContainerState::kExited;
  model::PodRecord& deleted = shelf.add(test::a_running_pod("web-1", "u-2", {"main"}, kWall));
  deleted.deleting = true;
  model::PodRecord& ended = shelf.add(test::a_running_pod("web-2", "u-3", {"main"}, kWall));
  ended.stage = model::Finished();
  model::PodRecord& shown = shelf.add(test::a_running_pod("daemon-x", "u-4", {"main"}, kWall));
  shown.placeholder = true;
  CHECK(Json::parse(to_running_pods(shelf.store, "burst")) == Json::parse(R"({
    "kind": "PodList", "apiVersion": "v1", "metadata": {},
    "items": [{"metadata": {"name": "web-0", "namespace": "team-a", "uid": "u-1"},
               "spec": {"nodeName": "burst",
                        "containers": [{"name": "main", "image": "registry.example/main:1", "resources": {}}]},
               "status": {}}]})"));
  CHECK(Json::parse(to_running_pods(shelf.store, "other"))["items"] == Json::array());
}

TEST_CASE("configz tells what of a kubelet's configuration holds here") {
  KubeletApiConfig config;
  config.anonymous = true;
  config.tls_min_version = net::TlsVersion::k13;
  config.certificate.source = CertificateSource::kCsr;
  const Json shown = Json::parse(to_configz(config, 10251, "110"))["kubeletconfig"];
  CHECK(shown["kind"] == "KubeletConfiguration");
  CHECK(shown["port"] == 10251);
  CHECK(shown["maxPods"] == 110);
  CHECK(Json::parse(to_configz(config, 10251, "1k"))["kubeletconfig"]["maxPods"] == 1000);
  CHECK(shown["tlsMinVersion"] == "VersionTLS13");
  CHECK(shown["serverTLSBootstrap"] == true);
  CHECK(shown["authentication"]["anonymous"]["enabled"] == true);
  CHECK(shown["authorization"]["mode"] == "Webhook");
}
