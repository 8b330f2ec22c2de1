#include "vk-provider/daemon/config_gate.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "vk-provider/daemon/gate_runner.hpp"

using namespace std::chrono_literals;
namespace core = spillway::core;
namespace model = spillway::model;
namespace daemon_ns = spillway::daemon;
using daemon_ns::Config;

namespace {

std::expected<Config, std::vector<daemon_ns::Fault>> read(const std::string& gate) {
  static const spillway::provider::Registry registry = [] {
    spillway::provider::Registry out;
    out["cloud"].costs_money = false;
    out["cloud"].validate = [](const nlohmann::json&) { return std::vector<spillway::provider::ConfigFault>(); };
    return out;
  }();
  daemon_ns::ConfigSources sources;
  sources.providers = &registry;
  sources.environment = [](const std::string&) { return std::nullopt; };
  return daemon_ns::parse_config(
      "apiVersion: spillway.dev/v1\nnodes: [{name: burst, labels: {team: a}}, {name: open, providerTaint: false}]\n"
      "providers: [{name: c, type: cloud}]\ngate: " +
          gate + "\n",
      "c.yaml", sources);
}

Config good(const std::string& gate) {
  auto config = read(gate);
  if (!config) FAIL(config.error().front().to_string());
  return std::move(*config);
}

std::string fault(const std::string& gate) {
  const auto config = read(gate);
  if (config) return "no fault";
  return config.error().front().path + ": " + config.error().front().message;
}

}  // namespace

TEST_CASE("without the section there are no gates") {
  const Config config = good("{}");
  CHECK_FALSE(config.gate.enabled);
  CHECK(config.gate.gates.empty());
  CHECK_FALSE(daemon_ns::is_gated(config, "burst"));
}

TEST_CASE("a small gate has every default") {
  const Config config = good("{enabled: true, gates: [{name: gpu, nodes: [burst]}]}");
  CHECK(config.gate.in_daemon);
  REQUIRE(config.gate.gates.size() == 1);
  const auto& gate = config.gate.gates[0];
  CHECK(gate.rules == core::GateRules());
  CHECK(gate.soft_taint);
  CHECK(gate.free_query.empty());
  CHECK(gate.home.resource == model::GpuResource::kNvidia);
  REQUIRE(gate.home.tolerations.size() == 1);
  CHECK(gate.home.tolerations[0].key == "nvidia.com/gpu");
  CHECK(daemon_ns::is_gated(config, "burst"));
  CHECK_FALSE(daemon_ns::is_gated(config, "open"));
}

TEST_CASE("gates know the labels and the taint of their nodes") {
  const auto gates = daemon_ns::gates_of(
      good("{enabled: true, gates: [{name: a, nodes: [burst]}, {name: b, nodes: [open], resource: amd.com/gpu}]}"));
  REQUIRE(gates.size() == 2);
  CHECK(gates[0].home.virtual_nodes.at(0).labels.at("team") == "a");
  CHECK(gates[0].home.virtual_nodes.at(0).labels.at("kubernetes.io/hostname") == "burst");
  CHECK(gates[0].home.virtual_nodes.at(0).provider_taint);
  CHECK_FALSE(gates[1].home.virtual_nodes.at(0).provider_taint);
  CHECK(gates[1].home.tolerations.at(0).key == "amd.com/gpu");
}

TEST_CASE("with Prometheus its queries have defaults") {
  const Config config = good(
      "{enabled: true, prometheus: {url: 'http://p:9090', interval: 30s}, gates: [{name: gpu, nodes: [burst]}, {name: "
      "own, nodes: [open], homeSelector: {a: b}, freeQuery: sum(free), mode: Prometheus}]}");
  const auto& gates = config.gate.gates;
  CHECK(gates.at(0).rules.mode == core::GateMode::kPrometheusThenKubernetes);
  CHECK(gates.at(0).free_query == daemon_ns::default_free_query(model::GpuResource::kNvidia));
  CHECK(gates.at(0).free_query.find("nvidia_com_gpu") != std::string::npos);
  CHECK(gates.at(0).freshness_query == daemon_ns::default_freshness_query(model::GpuResource::kNvidia));
  CHECK(gates.at(0).poll.interval == 30s);
  CHECK(gates.at(1).rules.mode == core::GateMode::kPrometheus);
  CHECK(gates.at(1).free_query == "sum(free)");
  CHECK(gates.at(1).freshness_query.empty());
}

TEST_CASE("all rules can be set") {
  const auto rules =
      good(
          "{gates: [{name: gpu, nodes: [burst], openAfter: 1s, openLevelAfter: 2s, closeAfter: 20s, minOpen: "
          "30s, minClosed: 5s, openBelow: 2, reserve: 0, closeAt: 3, allowNoHome: true, onBlind: Open, holdFor: "
          "1m, crossCheck: false, softTaint: false, burstPriority: 7, stuckAfter: 1m}]}")
          .gate.gates.at(0);
  CHECK(rules.rules.close_at == 3);
  CHECK(rules.rules.open_below == 2);
  CHECK(rules.rules.on_blind == core::OnBlind::kOpen);
  CHECK(rules.rules.min_open == 30s);
  CHECK_FALSE(rules.rules.cross_check);
  CHECK_FALSE(rules.soft_taint);
  CHECK(rules.home.burst_priority == 7);
}

TEST_CASE("a drain is off unless told, and all of it can be set") {
  const auto drain_of = [](const std::string& drain) {
    return good("{gates: [{name: gpu, nodes: [burst], drain: " + drain + "}]}").gate.gates.at(0).drain;
  };
  CHECK(drain_of("{}") == core::DrainRules());
  CHECK(drain_of("{mode: off}").mode == core::DrainMode::kOff);
  CHECK(drain_of("{mode: evict}").mode == core::DrainMode::kEvict);
  const core::DrainRules all = drain_of(
      "{mode: surge, maxConcurrent: 5, interval: 1s, minAge: 0s, replacementTimeout: 3m, stallPause: 4m, "
      "allowWithoutPDB: true, jobs: true}");
  CHECK(all.mode == core::DrainMode::kSurge);
  CHECK(all.max_concurrent == 5);
  CHECK(all.interval == 1s);
  CHECK(all.min_age == 0s);
  CHECK(all.replacement_timeout == 3min);
  CHECK(all.stall_pause == 4min);
  CHECK(all.allow_without_pdb);
  CHECK(all.jobs);
}

TEST_CASE("faults of drains name their key") {
  const auto fault_of = [](const std::string& drain) {
    return fault("{gates: [{name: gpu, nodes: [burst], drain: " + drain + "}]}");
  };
  CHECK(fault_of("{mode: on}") == "gate.gates[0].drain.mode: found \"on\"; allowed: off, evict, surge");
  CHECK(fault_of("{maxConcurrent: 0}").starts_with("gate.gates[0].drain.maxConcurrent: "));
  CHECK(fault_of("{replacementTimeout: 31m}").starts_with("gate.gates[0].drain.replacementTimeout: "));
  CHECK(fault_of("{allowWithoutPdb: true}").starts_with("gate.gates[0].drain.allowWithoutPdb: "));
  CHECK(fault_of("yes").starts_with("gate.gates[0].drain: "));
}

TEST_CASE("faults of gates name their key") {
  CHECK(fault("{enabled: true}") ==
        "gate.gates: found no gate; allowed: at least one (it is required by gate.enabled)");
  CHECK(fault("{gates: [{name: gpu}]}").starts_with("gate.gates[0].nodes: "));
  CHECK(fault("{gates: [{name: gpu, nodes: [home]}]}") ==
        "gate.gates[0].nodes: found the name \"home\"; allowed: burst, open");
  CHECK(fault("{gates: [{name: a, nodes: [burst]}, {name: b, nodes: [burst]}]}") ==
        "gate.gates[1].nodes: found the node \"burst\" again; allowed: each node in one gate only");
  CHECK(fault("{gates: [{name: a, nodes: [burst]}, {name: a, nodes: [open]}]}")
            .starts_with("gate.gates[1]: found the name"));
  CHECK(fault("{gates: [{name: gpu, nodes: [burst], closeAt: 2}]}") ==
        "gate.gates[0].closeAt: found \"2\"; allowed: at least 3 (openBelow + reserve + 1)");
  CHECK(fault("{gates: [{name: gpu, nodes: [burst], mode: Prometheus}]}") ==
        "gate.gates[0].mode: found \"Prometheus\" without gate.prometheus.url; allowed: Kubernetes");
  CHECK(fault("{prometheus: {url: 'ftp://p'}, gates: []}").starts_with("gate.prometheus.url: "));
  CHECK(fault("{prometheus: {url: 'http://p'}, gates: [{name: gpu, nodes: [burst], homeSelector: {a: b}}]}")
            .starts_with("gate.gates[0].homeSelector: "));
  CHECK(fault("{gates: [{name: gpu, nodes: [burst], openSlowly: 3s}]}").starts_with("gate.gates[0].openSlowly: "));
}
