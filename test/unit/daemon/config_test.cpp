#include "vk-provider/daemon/config.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "providers/fake/fake_provider.hpp"
#include "vk-provider/daemon/config_values.hpp"
#include "vk-provider/daemon/version.hpp"

using namespace std::chrono_literals;
using nlohmann::json;
using spillway::base::ErrorKind;
using spillway::base::Money;
using spillway::base::ProviderName;
using spillway::daemon::Config;
using spillway::daemon::ConfigSources;
using spillway::daemon::Fault;
using spillway::model::CapacityType;

namespace daemon_ns = spillway::daemon;
namespace provider = spillway::provider;

namespace {

/// A type that knows `token` (a secret), `hosts[].price` (a number) and `hosts[].name`.
provider::ProviderType cloud_type() {
  provider::ProviderType type;
  type.costs_money = false;  // caps: config_spend_test.cpp
  type.secret_keys = {"token", "hosts[].password"};
  type.validate = [](const json& config) {
    std::vector<provider::ConfigFault> faults;
    for (const auto& [key, value] : config.items()) {
      if (key != "token" && key != "hosts") faults.emplace_back(key, "found an unknown key; allowed: token, hosts");
    }
    if (config.contains("token") && config["token"] == "bad-secret") {
      faults.emplace_back("token", "found bad-secret; allowed: a good one");
    }
    const json hosts = config.value("hosts", json::array());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].contains("price") && !hosts[i]["price"].is_number()) {
        faults.emplace_back("hosts[" + std::to_string(i) + "].price", "found no number; allowed: a number");
      }
      if (!hosts[i].contains("name")) {
        faults.emplace_back("hosts[" + std::to_string(i) + "].name", "found nothing; allowed: a name");
      }
    }
    return faults;
  };
  return type;
}

struct Loader {
  Loader() {
    registry["cloud"] = cloud_type();
    sources.providers = &registry;
    sources.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt : std::optional(found->second);
    };
  }

  Config good(const std::string& yaml) {
    auto config = daemon_ns::parse_config(yaml, file, sources);
    if (!config) {
      for (const Fault& fault : config.error()) UNSCOPED_INFO(fault.to_string());
      FAIL("the document has faults");
    }
    return std::move(*config);
  }
  std::vector<std::string> bad(const std::string& yaml) {
    const auto config = daemon_ns::parse_config(yaml, file, sources);
    REQUIRE_FALSE(config.has_value());
    std::vector<std::string> out;
    for (const Fault& fault : config.error()) out.push_back(fault.to_string());
    return out;
  }

  std::string file = "spillway.yaml";
  provider::Registry registry;
  std::map<std::string, std::string> environment;
  ConfigSources sources;
};

const std::string kHead =
    "apiVersion: spillway.dev/v1\n"
    "providers: [{name: c, type: cloud}]\n";
const std::string kSmall = kHead + "nodes: [{name: burst}]\n";

using Lines = std::vector<std::string>;

std::string example_file() { return SPILLWAY_SOURCE_DIR "/config/example.yaml"; }

/// Every key path of a document, indices left out: `nodes[].offers.regions`.
void collect_keys(const YAML::Node& node, const std::string& path, std::set<std::string>& out) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      const std::string below = path.empty() ? entry.first.Scalar() : path + "." + entry.first.Scalar();
      out.insert(below);
      collect_keys(entry.second, below, out);
    }
  }
  if (node.IsSequence()) {
    for (const YAML::Node& entry : node) collect_keys(entry, path + "[]", out);
  }
}

}  // namespace

TEST_CASE("a small document gets every default") {
  Loader loader;
  const Config config = loader.good(kSmall);
  CHECK(config.installation.name == "spillway");
  CHECK(config.installation.ns == "spillway-system");
  CHECK(config.installation.cluster_id.empty());
  REQUIRE(config.nodes.size() == 1);
  const auto& node = config.nodes[0];
  CHECK(node.name == "burst");
  CHECK(node.labels.empty());
  CHECK(node.capacity == std::map<std::string, std::string>{
                             {"cpu", "1000"}, {"memory", "4Ti"}, {"pods", "110"}, {"ephemeral-storage", "4Ti"}});
  CHECK(node.provider_taint);
  CHECK(node.internal_ip == "127.0.0.1");
  CHECK_FALSE(node.max_price_per_hour);
  CHECK(node.offers.providers.empty());
  CHECK(node.offers.capacity_types == std::vector{CapacityType::kOnDemand, CapacityType::kReserved});
  REQUIRE(config.providers.size() == 1);
  CHECK(config.providers[0].name == ProviderName("c"));
  CHECK(config.providers[0].type == "cloud");
  CHECK(*config.providers[0].config == json::object());
  CHECK(config.placement.start_deadline == 20min);
  CHECK(config.placement.max_start_attempts == 3);
  CHECK(config.placement.create_deadline == 20s);
  CHECK(config.admin.address == "127.0.0.1");
  CHECK(config.admin.debug);
  CHECK(config.log.format == spillway::base::log::Format::kText);
}

TEST_CASE("every value is read") {
  Loader loader;
  const Config config = loader.good(R"(
apiVersion: spillway.dev/v1
installation: {name: team-a, namespace: gpu, clusterId: home}
nodes:
  - name: burst-h100
    labels:
      team: a
      spillway.dev/gpu-model: H100
      nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      nvidia.com/gpu.memory: 81559
      nvidia.com/gpu.present: "true"
      topology.kubernetes.io/region: eu-1
      spillway.dev/capacity-type: spot
    annotations: {example.com/owner: "ops, all of them"}
    capacity: {cpu: 64, memory: 256Gi, pods: 8, ephemeral-storage: 1Ti, nvidia.com/gpu: 8}
    providerTaint: false
    internalIP: "fd00::1"
    maxPricePerHour: 2.390001
    offers:
      providers: [c]
      regions: [eu-1]
      gpuModels: [H100]
      minGpuMemory: 81559Mi
      capacityTypes: [spot]
    publicPorts: [80, 8443]
providers:
  - {name: c, type: cloud, config: {hosts: [{name: a, price: 1.10}]}}
placement: {startDeadline: 1h30m, maxStartAttempts: 5, createDeadline: 2500ms}
admin: {address: 0.0.0.0, port: 0, debug: false}
log: {level: debug, format: json}
)");
  CHECK(config.installation.name == "team-a");
  CHECK(config.installation.ns == "gpu");
  CHECK(config.installation.cluster_id == "home");
  const auto& node = config.nodes.at(0);
  CHECK(node.labels.at("nvidia.com/gpu.memory") == "81559");
  CHECK(node.labels.size() == 7);
  CHECK(node.annotations.at("example.com/owner") == "ops, all of them");
  CHECK(node.capacity.at("nvidia.com/gpu") == "8");
  CHECK(node.capacity.at("cpu") == "64");
  CHECK_FALSE(node.provider_taint);
  CHECK(node.internal_ip == "fd00::1");
  CHECK(node.max_price_per_hour == Money::from_micros(2'390'001));
  CHECK(node.offers.providers == std::vector{ProviderName("c")});
  CHECK(node.offers.regions == Lines{"eu-1"});
  CHECK(node.offers.gpu_models == Lines{"H100"});
  CHECK(node.offers.min_gpu_memory == 81559LL * 1024 * 1024);
  CHECK(node.offers.capacity_types == std::vector{CapacityType::kSpot});
  CHECK(node.public_ports == std::vector{80, 8443});
  CHECK((*config.providers.at(0).config)["hosts"][0]["price"].dump() == "1.1");
  CHECK(config.placement.start_deadline == 90min);
  CHECK(config.placement.max_start_attempts == 5);
  CHECK(config.placement.create_deadline == 2500ms);
  CHECK(config.admin.address == "0.0.0.0");
  CHECK(config.admin.port == 0);
  CHECK_FALSE(config.admin.debug);
  CHECK(config.log.level == spillway::base::log::Level::kDebug);
  CHECK(config.log.format == spillway::base::log::Format::kJson);
}

TEST_CASE("the example has every key, and each has its default") {
  Loader loader;
  loader.registry = {{"fake", spillway::providers::fake::provider_type()}};
  std::set<std::string> known;
  loader.sources.known_keys = &known;
  const auto example = daemon_ns::load_config(example_file(), loader.sources);
  if (!example) FAIL(example.error().front().to_string());
  const Config defaults =
      loader.good("apiVersion: spillway.dev/v1\nnodes: [{name: spillway}]\nproviders: [{name: fake, type: fake}]\n");

  CHECK(example->installation.name == defaults.installation.name);
  CHECK(example->installation.ns == defaults.installation.ns);
  CHECK(example->installation.cluster_id == defaults.installation.cluster_id);
  REQUIRE(example->nodes.size() == 1);
  const auto& shown = example->nodes[0];
  const auto& node = defaults.nodes[0];
  CHECK(shown.labels == node.labels);
  CHECK(shown.annotations == node.annotations);
  CHECK(shown.capacity == node.capacity);
  CHECK(shown.provider_taint == node.provider_taint);
  CHECK(shown.internal_ip == node.internal_ip);
  CHECK(shown.max_price_per_hour == node.max_price_per_hour);
  CHECK(shown.offers == node.offers);
  CHECK(shown.public_ports == node.public_ports);
  CHECK(shown == node);
  CHECK(*example->providers.at(0).config == *defaults.providers.at(0).config);
  CHECK(example->placement == defaults.placement);
  CHECK(example->placement == spillway::daemon::PlacementConfig());
  CHECK(example->spend == spillway::core::SpendPolicy());
  CHECK_FALSE(example->gate.enabled);
  CHECK(example->gate.in_daemon);
  CHECK(example->gate.prometheus == spillway::daemon::PrometheusConfig());
  CHECK(example->gate.gates.at(0).rules == spillway::core::GateRules());
  const Config gated = loader.good(
      "apiVersion: spillway.dev/v1\nnodes: [{name: spillway}]\nproviders: [{name: fake, type: fake}]\n"
      "gate: {gates: [{name: gpu, nodes: [spillway]}]}\n");
  CHECK(example->gate.gates.at(0).home.tolerations == gated.gate.gates.at(0).home.tolerations);
  CHECK(example->gate.gates.at(0).home.stuck_after == gated.gate.gates.at(0).home.stuck_after);
  CHECK(example->gate.gates.at(0).soft_taint == gated.gate.gates.at(0).soft_taint);
  CHECK(example->gate.gates.at(0).unhealthy_label == gated.gate.gates.at(0).unhealthy_label);
  CHECK(example->kubelet_api == spillway::api::KubeletApiConfig());
  CHECK(example->admin == spillway::daemon::AdminConfig());
  CHECK(example->log == spillway::daemon::LogConfig());

  std::set<std::string> written;
  collect_keys(YAML::LoadFile(example_file()), "", written);
  CHECK(known.size() > 30);
  for (const std::string& key : known) {
    CAPTURE(key);
    CHECK(written.contains(key));
  }
}

TEST_CASE("the minimal configuration needs nothing") {
  Loader loader;
  loader.registry = {{"fake", spillway::providers::fake::provider_type()}};
  const auto config = daemon_ns::load_config(SPILLWAY_SOURCE_DIR "/config/minimal.yaml", loader.sources);
  if (!config) FAIL(config.error().front().to_string());
  CHECK(config->nodes.at(0).capacity.at("nvidia.com/gpu") == "8");
  CHECK(config->providers.at(0).type == "fake");
}

TEST_CASE("the configuration of config/deploy is valid") {
  Loader loader;
  loader.registry = {{"fake", spillway::providers::fake::provider_type()}};
  const auto config = daemon_ns::load_config(SPILLWAY_SOURCE_DIR "/config/deploy/spillway.yaml", loader.sources);
  if (!config) FAIL(config.error().front().to_string());
  CHECK(config->admin.address == "0.0.0.0");
}

TEST_CASE("the version is that of the build") {
  std::ifstream file(SPILLWAY_SOURCE_DIR "/CMakeLists.txt");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  CHECK(text.find("project(spillway VERSION " + std::string(daemon_ns::kVersion) + " ") != std::string::npos);
}

TEST_CASE("all faults come at once, each with its line, path, what was found and what is allowed") {
  Loader loader;
  const Lines faults = loader.bad(R"(apiVersion: spillway.dev/v2
installation:
  name: Team A
nodes:
  - name: burst
    capcity: {cpu: 1}
    capacity:
      cpu: lots
      nvidia.com/gpu: 1.5
    providerTaint: "yes"
    maxPricePerHour: -1
    offers:
      providers: [d]
      gpuModels: [NVIDIA H100]
      capacityTypes: [cheap]
    publicPorts: [0]
  - name: burst
providers:
  - name: c
    type: clod
placement:
  startDeadline: 20
  createDeadline: 25s
admin:
  port: 70000
log: loud
weather: {}
)");
  std::string text;
  for (const std::string& fault : faults) text += fault + "\n";
  CHECK(text == R"(spillway.yaml:1: apiVersion: found "spillway.dev/v2"; allowed: spillway.dev/v1
spillway.yaml:3: installation.name: found "Team A"; allowed: at most 63 of a-z, 0-9 and '-', a letter or digit at both ends
spillway.yaml:6: nodes[0].capcity: found an unknown key; allowed: capacity (the nearest of name, labels, annotations, capacity, providerTaint, internalIP, maxPricePerHour, offers, publicPorts)
spillway.yaml:8: nodes[0].capacity.cpu: found "lots"; allowed: a quantity such as 64 or 500m or 256Gi
spillway.yaml:9: nodes[0].capacity["nvidia.com/gpu"]: found "1.5"; allowed: a whole number
spillway.yaml:10: nodes[0].providerTaint: found "yes"; allowed: true, false
spillway.yaml:11: nodes[0].maxPricePerHour: found "-1"; allowed: dollars per hour such as 2.50, of at most 6 decimals
spillway.yaml:13: nodes[0].offers.providers: found the provider "d"; allowed: c
spillway.yaml:14: nodes[0].offers.gpuModels: found "NVIDIA H100"; allowed: H100
spillway.yaml:15: nodes[0].offers.capacityTypes[0]: found "cheap"; allowed: on-demand, spot, reserved
spillway.yaml:16: nodes[0].publicPorts: found "0"; allowed: a list of port numbers from 1 to 65535
spillway.yaml:17: nodes[1]: found the name "burst" a second time; allowed: a name of its own for each node
spillway.yaml:20: providers[0].type: found "clod"; allowed: cloud (the nearest is cloud)
spillway.yaml:22: placement.startDeadline: found "20"; allowed: a duration such as 20s, 5m or 1h30m, from 1m to 24h
spillway.yaml:23: placement.createDeadline: found "25s"; allowed: a duration such as 20s, 5m or 1h30m, from 1s to 20s
spillway.yaml:25: admin.port: found "70000"; allowed: a whole number from 0 to 65535
spillway.yaml:26: log: found "loud"; allowed: a mapping
spillway.yaml:27: weather: found an unknown key; allowed: apiVersion, installation, nodes, providers, placement, spend, gate, endpoints, kubeletApi, admin, log
)");
}

TEST_CASE("documents that are no configuration are refused with a place") {
  Loader loader;
  CHECK(loader.bad("") == Lines{"spillway.yaml:1: found an empty document; allowed: one that begins with "
                                "apiVersion: spillway.dev/v1"});
  CHECK(loader.bad("[a]") == Lines{"spillway.yaml:1: found a list; allowed: a mapping"});
  CHECK(loader.bad("apiVersion: spillway.dev/v1\nnodes: [\n")
            .front()
            .starts_with("spillway.yaml:3: found invalid YAML ("));
  CHECK(loader.bad(kSmall + "---\n" + kSmall) ==
        Lines{"spillway.yaml:4: found more after the end of the document; allowed: one document"});
  CHECK(loader.bad(",") == Lines{"spillway.yaml:1: found an empty document; allowed: one that begins with "
                                 "apiVersion: spillway.dev/v1"});
  CHECK(loader.bad("apiVersion: spillway.dev/v1\nnodes: []\n") ==
        Lines{"spillway.yaml:1: providers: found nothing; allowed: a list of at least one provider (it is required)",
              "spillway.yaml:2: nodes: found an empty list; allowed: at least one entry"});
  CHECK(loader.bad(kSmall + "log: {level: info}\nlog: {level: warn}\n") ==
        Lines{"spillway.yaml:5: log: found a second time; allowed: once (the first is on line 4)"});
  CHECK(loader.bad(kHead + "nodes:\n  - name: x\n    labels: {a: b, a: c}\n") ==
        Lines{"spillway.yaml:5: nodes[0].labels.a: found a second time; allowed: once (the first is on line 5)"});
  CHECK(loader.bad(kHead + "nodes: [{name: [x]}]\n") ==
        Lines{"spillway.yaml:3: nodes[0].name: found a list; allowed: text"});
}

TEST_CASE("GPU models have one name each, and unknown ones are taken as they are") {
  Loader loader;
  const auto with = [](const std::string& model) {
    return kHead + "nodes: [{name: n, offers: {gpuModels: [" + model + "]}}]\n";
  };
  CHECK(loader.good(with("A100-80GB")).nodes[0].offers.gpu_models == Lines{"A100-80GB"});
  CHECK(loader.good(with("Quadro-P400")).nodes[0].offers.gpu_models == Lines{"Quadro-P400"});
  CHECK(loader.bad(with("A100")) ==
        Lines{"spillway.yaml:3: nodes[0].offers.gpuModels: found \"A100\"; allowed: A100-80GB, A100-40GB"});
}

TEST_CASE("a null is the default") {
  Loader loader;
  const Config config = loader.good(kHead + "nodes: [{name: burst, labels: , maxPricePerHour: null}]\nlog:\n");
  CHECK(config.nodes[0].labels.empty());
  CHECK_FALSE(config.nodes[0].max_price_per_hour);
}

TEST_CASE("a label that promises a machine needs the filter that enforces it") {
  struct Row {
    std::string label;
    std::string offers;
    std::string fault;  // empty: kept
  };
  const std::string unkept = "which the offer filter does not enforce; allowed: ";
  const std::vector<Row> rows = {
      {"spillway.dev/gpu-model: H100", "{gpuModels: [H100]}", ""},
      {"spillway.dev/gpu-model: H100", "{}", "found \"H100\", " + unkept + "only with offers.gpuModels: [\"H100\"]"},
      {"spillway.dev/gpu-model: H100", "{gpuModels: [H100, H200]}",
       "found \"H100\", " + unkept + "only with offers.gpuModels: [\"H100\"]"},
      {"nvidia.com/gpu.product: Tesla-T4", "{gpuModels: [T4]}", ""},
      {"nvidia.com/gpu.product: Tesla-T4", "{gpuModels: [L4]}",
       "found \"Tesla-T4\", " + unkept + "only with offers.gpuModels: [\"T4\"]"},
      {"nvidia.com/gpu.product: T4", "{gpuModels: [T4]}",
       "found \"T4\", " + unkept + "\"Tesla-T4\", only with offers.gpuModels: [\"T4\"]"},
      {"nvidia.com/gpu.memory: 24576", "{minGpuMemory: 24Gi}", ""},
      {"nvidia.com/gpu.memory: 24576", "{minGpuMemory: 16Gi}",
       "found \"24576\", " + unkept + "a number of MiB, only with the same offers.minGpuMemory (24576Mi)"},
      {"topology.kubernetes.io/region: eu", "{regions: [eu]}", ""},
      {"topology.kubernetes.io/region: eu", "{regions: [eu, us]}",
       "found \"eu\", " + unkept + "only with offers.regions: [\"eu\"]"},
      {"spillway.dev/capacity-type: on-demand", "{capacityTypes: [on-demand]}", ""},
      {"spillway.dev/capacity-type: on-demand", "{}",
       "found \"on-demand\", " + unkept + "only with offers.capacityTypes: [\"on-demand\"]"},
      {"spillway.dev/profile: x", "{}", "found \"x\"; allowed: nothing, the daemon sets this label itself"},
      {"team: a", "{}", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.label, row.offers);
    Loader loader;
    const std::string document =
        kHead + "nodes:\n  - name: n\n    offers: " + row.offers + "\n    labels:\n      " + row.label + "\n";
    if (row.fault.empty()) {
      CHECK(loader.good(document).nodes[0].labels.size() == 1);
    } else {
      const Lines faults = loader.bad(document);
      REQUIRE(faults.size() == 1);
      CHECK(faults[0].starts_with("spillway.yaml:7: nodes[0].labels"));
      CHECK(faults[0].ends_with(": " + row.fault));
    }
  }
  Loader loader;
  const Lines faults = loader.bad(kHead + "nodes: [{name: n, labels: {nvidia.com/gpu.count: \"4\"}}]\n");
  CHECK(faults[0].find("found a label that no offer filter can enforce") != std::string::npos);
  CHECK(loader.bad(kHead + "nodes: [{name: n, labels: {spillway.dev/gpumodel: L4}}]\n")[0].find(
            "allowed: spillway.dev/gpu-model (the nearest") != std::string::npos);
}

TEST_CASE("an unknown key is answered with the one that was meant") {
  const std::vector<std::string> known = {"maxPricePerHour", "labels", "name", "publicPorts"};
  CHECK(daemon_ns::nearest("maxPrice", known) == "maxPricePerHour");
  CHECK(daemon_ns::nearest("lables", known) == "labels");
  CHECK(daemon_ns::nearest("Name", known) == "name");
  CHECK(daemon_ns::nearest("publicport", known) == "publicPorts");
  CHECK(daemon_ns::nearest("spend", known).empty());
  CHECK(daemon_ns::nearest("x", known).empty());
}

TEST_CASE("durations are whole numbers with units") {
  CHECK(daemon_ns::parse_duration("1h30m") == 90min);
  CHECK(daemon_ns::parse_duration("250ms") == 250ms);
  CHECK(daemon_ns::parse_duration("0s") == 0s);
  for (const char* bad : {"", "5", "s", "1.5s", "-1s", "+1s", "5 s", "1d", "99999999999999999999s", "8761h", "5m5"}) {
    CAPTURE(bad);
    CHECK_FALSE(daemon_ns::parse_duration(bad));
  }
  CHECK(daemon_ns::format_duration(90min) == "1h30m");
  CHECK(daemon_ns::format_duration(1500ms) == "1s500ms");
  CHECK(daemon_ns::format_duration(0s) == "0s");
}

TEST_CASE("the internal address comes from the file, then from the environment") {
  Loader loader;
  loader.environment["POD_IP"] = "10.0.0.7";
  CHECK(loader.good(kSmall).nodes[0].internal_ip == "10.0.0.7");
  loader.environment["SPILLWAY_NODE_IP"] = "10.0.0.8";
  CHECK(loader.good(kSmall).nodes[0].internal_ip == "10.0.0.8");
  CHECK(loader.good(kHead + "nodes: [{name: n, internalIP: 10.0.0.9}]\n").nodes[0].internal_ip == "10.0.0.9");
  loader.environment["SPILLWAY_NODE_IP"] = "here";
  CHECK(loader.bad(kSmall) == Lines{"spillway.yaml:3: nodes[0].internalIP: found \"here\" in the environment variable "
                                    "SPILLWAY_NODE_IP; allowed: an IPv4 or IPv6 address"});
}

TEST_CASE("a secret comes from a file or the environment, and is never shown") {
  const auto folder = std::filesystem::temp_directory_path() / ("spillway-config-test-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "token") << "from-a-file\n";
  Loader loader;
  loader.file = (folder / "spillway.yaml").string();
  loader.environment["TOKEN"] = "from-env";
  loader.environment["BAD"] = "bad-secret";
  const auto with = [](const std::string& config) {
    return "apiVersion: spillway.dev/v1\nnodes: [{name: n}]\nproviders:\n  - name: c\n    type: cloud\n    config:\n" +
           config;
  };
  const auto faults_of = [&](const std::string& config) {
    Lines out;
    for (const std::string& line : loader.bad(with(config))) out.push_back(line.substr(loader.file.size()));
    return out;
  };

  CHECK((*loader.good(with("      token: {fromFile: token}\n")).providers[0].config)["token"] == "from-a-file");
  CHECK((*loader.good(with("      token: {fromEnv: TOKEN}\n")).providers[0].config)["token"] == "from-env");
  CHECK((*loader.good(with("      hosts: [{name: a, password: {fromEnv: TOKEN}}]\n"))
              .providers[0]
              .config)["hosts"][0]["password"] == "from-env");

  const std::string allowed = "; allowed: {fromFile: path} or {fromEnv: NAME}, for it is a secret";
  CHECK(faults_of("      token: hunter2\n") == Lines{":7: providers[0].config.token: found a value" + allowed});
  CHECK(faults_of("      token: {}\n") ==
        Lines{":7: providers[0].config.token: found neither fromFile nor fromEnv" + allowed});
  CHECK(faults_of("      token: {fromFile: token, fromEnv: TOKEN}\n") ==
        Lines{":7: providers[0].config.token: found both" + allowed});
  CHECK(faults_of("      token: {fromEnv: NONE}\n") ==
        Lines{":7: providers[0].config.token: found no environment variable NONE with a value; allowed: one that is "
              "set"});
  CHECK(faults_of("      token: {fromFile: none}\n")[0].starts_with(
      ":7: providers[0].config.token: found no readable text in the file "));
  CHECK(faults_of("      token: {fromEnv: BAD}\n") ==
        Lines{":7: providers[0].config.token: found <secret>; allowed: a good one"});
  std::filesystem::remove_all(folder);
}

TEST_CASE("the faults of a provider point into the file") {
  Loader loader;
  CHECK(loader.bad(R"(apiVersion: spillway.dev/v1
nodes: [{name: n}]
providers:
  - name: c
    type: cloud
    config:
      hosts:
        - name: a
          price: cheap
        - price: 1
      tokn: x
)") == Lines{"spillway.yaml:9: providers[0].config.hosts[0].price: found no number; allowed: a number",
             "spillway.yaml:10: providers[0].config.hosts[1].name: found nothing; allowed: a name",
             "spillway.yaml:11: providers[0].config.tokn: found an unknown key; allowed: token, hosts"});
}

TEST_CASE("plain scalars of a provider are numbers and truths, quoted ones are text") {
  Loader loader;
  loader.registry["cloud"].validate = [](const json&) { return std::vector<provider::ConfigFault>{}; };
  const Config config = loader.good(
      "apiVersion: spillway.dev/v1\nnodes: [{name: n}]\nproviders:\n"
      "  - {name: c, type: cloud, config: {a: 1, b: \"1\", c: true, d: yes, e: 2.5, f: , g: 010, h: [x, 2], i: "
      ".inf}}\n");
  CHECK(*config.providers[0].config == json::parse(R"({"a":1,"b":"1","c":true,"d":"yes","e":2.5,"f":null,"g":"010",
                                                       "h":["x",2],"i":".inf"})"));
}

TEST_CASE("an alias that contains itself ends in a fault") {
  Loader loader;
  const Lines faults = loader.bad(
      "apiVersion: spillway.dev/v1\nnodes: [{name: n}]\nproviders:\n"
      "  - {name: c, type: cloud, config: {hosts: &a [*a, *a]}}\n");
  CHECK_THAT(faults, Catch::VectorContains(std::string("spillway.yaml:4: providers[0].config.hosts") + [] {
               std::string path;
               for (int i = 0; i < 32; ++i) path += "[0]";
               return path;
             }() + ": found too many levels or values (an alias in itself?); allowed: fewer"));
}

TEST_CASE("--node-name renames the only profile") {
  Loader loader;
  Config one = loader.good(kSmall);
  REQUIRE(daemon_ns::override_node_name(one, "gpu-1").has_value());
  CHECK(one.nodes[0].name == "gpu-1");
  CHECK(daemon_ns::override_node_name(one, "GPU 1").error().kind == ErrorKind::kInvalid);
  CHECK(one.nodes[0].name == "gpu-1");
  Config two = loader.good(kHead + "nodes: [{name: a}, {name: b}]\n");
  const auto refused = daemon_ns::override_node_name(two, "c");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message ==
        "--node-name: found 2 profiles under nodes[]; allowed: exactly one, or the names in the file");
}

TEST_CASE("a file that cannot be read is a fault without a line") {
  Loader loader;
  const auto config = daemon_ns::load_config("/nonexistent/spillway.yaml", loader.sources);
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().at(0).to_string() ==
        "/nonexistent/spillway.yaml: found No such file or directory; allowed: a readable file");
}

TEST_CASE("any text is either a configuration or a list of faults") {
  Loader loader;
  const std::string seed = kSmall + "a: &x {b: *x}\n? [k]\n: {c: !!binary x}\n";
  std::uint64_t state = 88172645463325252ULL;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (int edit = 0; edit < 1 + round % 5; ++edit) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      text[state % text.size()] = "{}[]:,&*!|>'\"%@`#-? \n\tax1"[(state >> 32) % 26];
    }
    const auto config = daemon_ns::parse_config(text, "f", loader.sources);
    CHECK((config.has_value() || !config.error().empty()));
  }
}
