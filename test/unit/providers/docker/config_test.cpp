#include "providers/docker/config.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace spillway;
using namespace spillway::providers::docker;
using nlohmann::json;

namespace {

json minimal_host() { return {{"name", "box"}, {"endpoint", "unix:///run/docker.sock"}, {"pricePerHour", "0.05"}}; }

json with_host(json host) { return {{"hosts", json::array({std::move(host)})}}; }

/// `path message` of each fault.
std::vector<std::string> faults(const json& node) {
  std::vector<std::string> out;
  for (const provider::ConfigFault& fault : parse_config(node).faults) out.push_back(fault.path + " " + fault.message);
  return out;
}

std::string only_fault(const json& node) {
  const auto all = faults(node);
  REQUIRE(all.size() == 1);
  return all.front();
}

json host_with(const char* key, json value) {
  json host = minimal_host();
  host[key] = std::move(value);
  return with_host(host);
}

}  // namespace

TEST_CASE("docker config: a minimal host has the documented defaults") {
  const ParsedConfig parsed = parse_config(with_host(minimal_host()));
  REQUIRE(parsed.faults.empty());
  REQUIRE(parsed.config.hosts.size() == 1);
  const HostConfig& host = parsed.config.hosts[0];
  CHECK(host.name == "box");
  CHECK(host.endpoint.scheme == net::Endpoint::Scheme::kUnix);
  CHECK(host.endpoint.unix_path == "/run/docker.sock");
  CHECK(host.price_per_hour == base::Money::from_micros(50'000));
  CHECK(host.gpu_count == 0);
  CHECK(host.max_instances == 110);
  CHECK(host.log_limit == 2LL << 30);
  CHECK(host.publish_address == "127.0.0.1");
  CHECK(host.gpu_request == GpuRequest::kDeviceRequests);
  CHECK(host.gpu_environment_variable == "NVIDIA_VISIBLE_DEVICES");
  CHECK(parsed.config.pull_progress_timeout == std::chrono::minutes(10));
  CHECK(parsed.config.container_scheme == "docker");
}

TEST_CASE("docker config: every key is read") {
  const ParsedConfig parsed = parse_config(json::parse(R"({
    "hosts": [{
      "name": "box-2", "endpoint": "tcp://gpu.example:2376", "region": "lab", "pricePerHour": 0.1,
      "pricePerGpuHour": "2.39", "gpuModel": "nvidia h100", "gpuCount": 8, "gpuMemory": "80Gi", "maxInstances": 20,
      "cpu": "63500m", "memory": "512Gi", "logLimit": "50Mi", "publishAddress": "10.0.0.5", "gpuRequest": "environment",
      "gpuEnvironmentVariable": "CUDA_VISIBLE_DEVICES",
      "tls": {"caFile": "/ca", "certFile": "/cert", "keyFile": "/key"}}],
    "pullProgressTimeout": "1m30s", "diskUsageEvery": "5m", "containerScheme": "box"})"));
  for (const auto& fault : parsed.faults) UNSCOPED_INFO(fault.path << " " << fault.message);
  REQUIRE(parsed.faults.empty());
  const HostConfig& host = parsed.config.hosts[0];
  CHECK(host.endpoint.scheme == net::Endpoint::Scheme::kHttps);
  CHECK(host.endpoint.host == "gpu.example");
  CHECK(host.endpoint.port == 2376);
  CHECK(host.tls.ca == "/ca");
  CHECK(host.tls.cert == "/cert");
  CHECK(host.tls.key == "/key");
  CHECK(host.region == "lab");
  CHECK(host.price_per_hour == base::Money::from_micros(100'000));
  CHECK(host.price_per_gpu_hour == base::Money::from_micros(2'390'000));
  CHECK(host.gpu_model == "H100");
  CHECK(host.gpu_count == 8);
  CHECK(host.gpu_memory == 80LL << 30);
  CHECK(host.max_instances == 20);
  CHECK(host.cpu_milli == 63'500);
  CHECK(host.memory == 512LL << 30);
  CHECK(host.log_limit == 50LL << 20);
  CHECK(host.publish_address == "10.0.0.5");
  CHECK(host.gpu_request == GpuRequest::kEnvironment);
  CHECK(host.gpu_environment_variable == "CUDA_VISIBLE_DEVICES");
  CHECK(parsed.config.pull_progress_timeout == std::chrono::seconds(90));
  CHECK(parsed.config.disk_usage_every == std::chrono::minutes(5));
  CHECK(parsed.config.container_scheme == "box");
}

TEST_CASE("docker config: all faults come at once, with path, what was found and what is allowed") {
  const auto all = faults(json::parse(R"({
    "hosts": [
      {"name": "Box", "endpoint": "ssh://box", "pricePerHour": -1, "gpuCount": "many", "colour": "red"},
      {"name": "b", "endpoint": "unix:///s", "pricePerHour": "1", "gpuRequest": "magic", "memory": "lots"},
      {"name": "c", "endpoint": "unix:///s", "pricePerHour": "1", "logLimit": "1Ki"},
      7
    ],
    "pullProgressTimeout": "soon", "diskUsageEvery": "0s"})"));
  const std::string price =
      "hosts[0].pricePerHour is -1; allowed is a price in dollars with at most six digits after the point, "
      "such as 2.39";
  const std::string unknown_key =
      "hosts[0].colour is no key here; allowed are name, tls, endpoint, region, gpuCount, gpuMemory, gpuModel, "
      "pricePerHour, pricePerGpuHour, maxInstances, cpu, memory, logLimit, publishAddress, gpuRequest, "
      "gpuEnvironmentVariable";
  const std::vector<std::string> expected = {
      "hosts[0].name is Box; allowed are lower-case letters, digits and '-', at most 63",
      "hosts[0].endpoint is ssh://box; allowed is unix:///path/of/the/socket or tcp://host:port",
      "hosts[0].gpuCount is many; allowed is a whole number from 0 to 64",
      price,
      unknown_key,
      "hosts[1].memory is lots; allowed is a quantity greater than 0, such as 80Gi",
      "hosts[1].gpuRequest is \"magic\"; allowed are deviceRequests, environment",
      "hosts[2].logLimit is too small to be of use; allowed is 1Mi or more",
      "hosts[3] is 7; allowed is a mapping that describes one engine",
      "pullProgressTimeout is soon; allowed is a duration greater than 0, such as 90s, 10m or 1h30m",
      "diskUsageEvery is 0s; allowed is a duration greater than 0, such as 90s, 10m or 1h30m",
  };
  CHECK(all == expected);
}

TEST_CASE("docker config: hosts must be there, and differ by name") {
  CHECK(only_fault(json::object()) == "hosts is missing; it has no default");
  CHECK(only_fault({{"hosts", json::array()}}) == "hosts is []; allowed is a list of at least one host");
  CHECK(only_fault(json("text")).contains("allowed is a mapping with hosts"));
  json two = with_host(minimal_host());
  two["hosts"].push_back(minimal_host());
  CHECK(only_fault(two) == "hosts[1].name is box, which an earlier host has; names must differ");
}

TEST_CASE("docker config: an engine is reached over its socket, loopback, or TLS") {
  const auto endpoint = [](const char* text) { return host_with("endpoint", text); };
  CHECK(faults(endpoint("tcp://127.0.0.1:2375")).empty());
  CHECK(faults(endpoint("tcp://localhost:2375")).empty());
  CHECK(faults(endpoint("tcp://[::1]:2375")).empty());
  CHECK(parse_config(endpoint("tcp://[::1]:2375")).config.hosts[0].endpoint.host == "::1");
  CHECK(parse_config(endpoint("tcp://[::1]:2375")).config.hosts[0].endpoint.scheme == net::Endpoint::Scheme::kHttp);
  CHECK(only_fault(endpoint("tcp://10.0.0.1:2375")).contains("needs tls"));
  CHECK(only_fault(endpoint("unix://run/docker.sock")).contains("must be absolute"));
  CHECK(only_fault(endpoint(("unix:///" + std::string(107, 'x')).c_str())).contains("108 bytes"));
  for (const char* const bad : {"tcp://box", "tcp://:1", "tcp://box:0", "tcp://box:65536", "tcp://u@box:1",
                                "tcp://box:1/x", "tcp://::1:2375", "/run/docker.sock", "http://127.0.0.1:1"}) {
    INFO(bad);
    CHECK(only_fault(endpoint(bad)).contains("allowed is unix:///path"));
  }

  json host = minimal_host();
  host["tls"] = {{"caFile", "/ca"}};
  CHECK(only_fault(with_host(host)).contains("beside a unix socket"));
  host["endpoint"] = "tcp://10.0.0.1:2376";
  CHECK(faults(with_host(host)).empty());
  host["tls"] = {{"certFile", "/cert"}};
  CHECK(only_fault(with_host(host)).starts_with("hosts[0].tls.keyFile is missing"));
  host["tls"] = {{"insecure", true}};
  CHECK(only_fault(with_host(host)) == "hosts[0].tls.insecure is no key here; allowed are caFile, certFile, keyFile");
}

TEST_CASE("docker config: GPUs have a model and a price") {
  json host = minimal_host();
  host["gpuCount"] = 2;
  CHECK(faults(with_host(host)) ==
        std::vector<std::string>{"hosts[0].gpuModel is missing; a host with GPUs must name their model",
                                 "hosts[0].pricePerGpuHour is missing; it has no default"});
  host["pricePerGpuHour"] = "1";
  host["gpuModel"] = "A100";
  CHECK(only_fault(with_host(host)).contains("set gpuMemory"));
  host["gpuMemory"] = "80Gi";
  CHECK(parse_config(with_host(host)).config.hosts[0].gpu_model == "A100-80GB");
  host["gpuModel"] = "HomeMade-9";
  CHECK(parse_config(with_host(host)).config.hosts[0].gpu_model == "HomeMade-9");
  host["gpuModel"] = "not a label!";
  CHECK(only_fault(with_host(host)).starts_with("hosts[0].gpuModel is not a label!"));
}

TEST_CASE("docker config: values out of range are faults") {
  CHECK(only_fault(host_with("maxInstances", 0)).contains("from 1 to 10000"));
  CHECK(only_fault(host_with("gpuCount", 65)).contains("from 0 to 64"));
  CHECK(only_fault(host_with("gpuCount", 1.5)).contains("whole number"));
  CHECK(only_fault(host_with("cpu", "0")).contains("greater than 0"));
  CHECK(only_fault(host_with("publishAddress", "0.0.0.0")).contains("one IP address"));
  CHECK(only_fault(host_with("publishAddress", "box")).contains("one IP address"));
  CHECK(only_fault(host_with("gpuEnvironmentVariable", "A=B")).contains("name of an environment variable"));
  CHECK(only_fault(host_with("region", 5)).contains("allowed is a text"));
  CHECK(only_fault(host_with("region", "")).contains("not empty"));
  CHECK(only_fault(host_with("pricePerHour", "0.0000001")).contains("six digits"));
  CHECK(faults(host_with("region", nullptr)).empty());
  json config = with_host(minimal_host());
  config["containerScheme"] = "no/slash";
  CHECK(only_fault(config).starts_with("containerScheme is no/slash"));
}
