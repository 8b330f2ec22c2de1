#include "vk-provider/api/resource_metrics.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "test/support/pod_shelf.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;

namespace {

const base::WallTime kWall = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29);
const base::Now kNow{base::TimePoint(1h), kWall};

struct Ward {
  void use(const std::string& uid, const std::string& container, std::optional<std::uint64_t> cpu_ns,
           std::optional<std::uint64_t> working_set, base::Duration age = 0s, std::int32_t run = 0) {
    core::UsageSample sample;
    sample.run = run;
    sample.cpu_ns = cpu_ns;
    sample.working_set = working_set;
    sample.at = kWall - std::chrono::duration_cast<std::chrono::microseconds>(age);
    sample.noted = kNow.steady - age;
    usage.note("burst", base::PodUid(uid), container, sample);
  }
  NodeMeasure measure(const std::string& node = "burst") const { return measure_node(shelf.store, usage, node, kNow); }
  std::string text() const { return to_resource_metrics(measure(), false); }

  test::PodShelf shelf;
  core::UsageBook usage;
};

/// The lines of samples, without those about metrics.
std::string samples(const std::string& text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    if (text[begin] != '#') out += text.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

}  // namespace

TEST_CASE("resource metrics are those that metrics-server reads, with the pod as second label") {
  Ward ward;
  ward.shelf.add(test::a_running_pod("web-0", "u-1", {"main"}, kWall - 90s));
  ward.use("u-1", "main", 1'500'000'000, 4096, 2s);
  CHECK(samples(ward.text()) ==
        "container_cpu_usage_seconds_total{container=\"main\",pod=\"web-0\",namespace=\"team-a\"} 1.5 1795910398000\n"
        "container_memory_working_set_bytes{container=\"main\",pod=\"web-0\",namespace=\"team-a\"} 4096 "
        "1795910398000\n"
        "container_start_time_seconds{container=\"main\",pod=\"web-0\",namespace=\"team-a\"} 1795910310\n"
        "node_cpu_usage_seconds_total 1.5 1795910398000\n"
        "node_memory_working_set_bytes 4096 1795910398000\n"
        "pod_cpu_usage_seconds_total{namespace=\"team-a\",pod=\"web-0\"} 1.5 1795910398000\n"
        "pod_memory_working_set_bytes{namespace=\"team-a\",pod=\"web-0\"} 4096 1795910398000\n"
        "resource_scrape_error 0\n");
  CHECK(to_resource_metrics(ward.measure(), true).ends_with("resource_scrape_error 1\n"));
}

TEST_CASE("seconds are exact to the nanosecond, and without zeros at the end") {
  Ward ward;
  ward.shelf.add(test::a_running_pod("web-0", "u-1", {"main"}, kWall));
  const std::pair<std::uint64_t, std::string> rows[] = {
      {1, "0.000000001"},
      {1'000'000'000, "1"},
      {12'345'678'900, "12.3456789"},
      {3'600'000'000'010, "3600.00000001"},
  };
  base::Duration age = 100s;
  for (const auto& [ns, wanted] : rows) {
    ward.use("u-1", "main", ns, 1, age);
    age -= 1s;
    CHECK(ward.text().find("node_cpu_usage_seconds_total " + wanted + " ") != std::string::npos);
  }
}

TEST_CASE("a pod of which something is not known is left out, and the node is the sum of what is") {
  Ward ward;
  ward.shelf.add(test::a_running_pod("web-0", "u-1", {"main", "side"}, kWall));
  ward.shelf.add(test::a_running_pod("web-1", "u-2", {"main"}, kWall));
  ward.use("u-1", "main", 1'000'000'000, 100);
  ward.use("u-2", "main", 2'000'000'000, 200);
  SECTION("not measured yet") {}
  SECTION("without memory") { ward.use("u-1", "side", 1'000'000'000, {}); }
  SECTION("not of late") { ward.use("u-1", "side", 0, 50, 121s); }
  const std::string text = ward.text();
  CHECK(text.find("web-0") == std::string::npos);
  CHECK(text.find("pod_cpu_usage_seconds_total{namespace=\"team-a\",pod=\"web-1\"} 2 ") != std::string::npos);
  CHECK(text.find("node_memory_working_set_bytes 300 ") != std::string::npos);
}

TEST_CASE("a container that was started again is unknown until its new run was measured") {
  Ward ward;
  model::PodRecord& record = ward.shelf.add(test::a_running_pod("web-0", "u-1", {"main"}, kWall));
  ward.use("u-1", "main", 5'000'000'000, 100, 10s);
  record.containers[0].restarts = 1;
  CHECK(ward.text().find("web-0") == std::string::npos);
  ward.use("u-1", "main", 1'000'000'000, 100, 0s, 1);
  const std::string text = ward.text();
  CHECK(text.find("container_cpu_usage_seconds_total{container=\"main\",pod=\"web-0\",namespace=\"team-a\"} 1 ") !=
        std::string::npos);
  CHECK(text.find("pod_cpu_usage_seconds_total{namespace=\"team-a\",pod=\"web-0\"} 6 ") != std::string::npos);
}

TEST_CASE("containers that have ended, pods that only boot and pods of other nodes are not there") {
  Ward ward;
  model::PodRecord& half = ward.shelf.add(test::a_running_pod("web-0", "u-1", {"main", "init"}, kWall));
  half.containers[1].claim.state = model::ContainerState::kExited;
  ward.use("u-1", "main", 1'000'000'000, 100);
  ward.use("u-1", "init", 3'000'000'000, 900);
  model::PodRecord booting = test::a_running_pod("web-1", "u-2", {"main"}, kWall);
  booting.stage = model::Booting();
  ward.shelf.add(std::move(booting));
  model::PodRecord shown = test::a_running_pod("daemon-x", "u-3", {"main"}, kWall);
  shown.placeholder = true;
  ward.shelf.add(std::move(shown));
  const NodeMeasure measured = ward.measure();
  REQUIRE(measured.pods.size() == 1);
  CHECK(measured.pods[0].containers.size() == 1);
  CHECK(measured.pods[0].use.cpu_ns == 4'000'000'000);
  CHECK(measured.pods[0].use.working_set == 100);
  CHECK(measured.use.cpu_ns == 4'000'000'000);
  CHECK(measured.use.working_set == 100);
  CHECK(ward.measure("other").pods.empty());
}

TEST_CASE("an empty node uses nothing, and that is known; a node of which nothing was measured is not") {
  Ward ward;
  CHECK(samples(ward.text()) ==
        "node_cpu_usage_seconds_total 0 1795910400000\n"
        "node_memory_working_set_bytes 0 1795910400000\n"
        "resource_scrape_error 0\n");
  ward.shelf.add(test::a_running_pod("web-0", "u-1", {"main"}, kWall));
  CHECK(samples(ward.text()) == "resource_scrape_error 0\n");
}

TEST_CASE("cAdvisor's metrics tell what is known of each container") {
  Ward ward;
  model::PodRecord record = test::a_running_pod("web-0", "u-1", {"main", "side"}, kWall - 1min);
  ward.shelf.add(std::move(record));
  ward.use("u-1", "main", 1'500'000'000, {});
  CHECK(samples(to_cadvisor_metrics(ward.measure())) ==
        "container_cpu_usage_seconds_total{container=\"main\",image=\"registry.example/main:1\",name=\"id-main\","
        "namespace=\"team-a\",pod=\"web-0\",cpu=\"total\"} 1.5 1795910400000\n"
        "container_start_time_seconds{container=\"main\",image=\"registry.example/main:1\",name=\"id-main\","
        "namespace=\"team-a\",pod=\"web-0\"} 1795910340\n"
        "container_start_time_seconds{container=\"side\",image=\"registry.example/side:1\",name=\"id-side\","
        "namespace=\"team-a\",pod=\"web-0\"} 1795910340\n");
}

TEST_CASE("metrics of five thousand pods take less than 50 ms") {
  Ward ward;
  for (int i = 0; i < 5000; ++i) {
    const std::string uid = "uid-" + std::to_string(i);
    ward.shelf.add(test::a_running_pod("web-" + std::to_string(i), uid, {"main"}, kWall));
    ward.use(uid, "main", static_cast<std::uint64_t>(i) * 1'234'567, 4096);
  }
  // The time of this process, and the best of some: the machine may be busy with something else.
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t begun = std::clock();
    const std::string text = ward.text();
    best = std::min(best, static_cast<double>(std::clock() - begun) * 1000 / CLOCKS_PER_SEC);
    CHECK(text.size() > 2'000'000);
  }
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
  CHECK(best < 50);
#endif
}
