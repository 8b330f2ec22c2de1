// What `providers[].config` of a docker provider says: hosts with their prices and GPUs.
//
// Values, made once at start. Does not open files or sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/net/http.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::providers::docker {

/// How a container is given its GPUs.
enum class GpuRequest : std::uint8_t {
  kDeviceRequests,  // HostConfig.DeviceRequests, the engine's own way
  kEnvironment,     // an environment variable that names the indices, for runtimes that read one
};

struct TlsFiles {
  TlsFiles() = default;
  std::string ca;    // empty: the system's CAs
  std::string cert;  // empty: no client certificate
  std::string key;
};

struct HostConfig {
  HostConfig() = default;
  std::string name;
  net::Endpoint endpoint;  // without certificates: those are read from `tls` when the provider is made
  TlsFiles tls;
  std::string region;
  base::Money price_per_hour;      // of an instance without GPUs
  base::Money price_per_gpu_hour;  // of an instance with GPUs, times their number
  std::string gpu_model;           // canonical where model/gpu_catalog knows it
  int gpu_count = 0;
  std::int64_t gpu_memory = 0;  // bytes of one GPU; 0 = unknown
  int max_instances = 110;
  std::int64_t cpu_milli = 0;          // 0 = unknown
  std::int64_t memory = 0;             // bytes; 0 = unknown
  std::int64_t log_limit = 2LL << 30;  // bytes that are kept of one container's log, older ones go
  std::string publish_address = "127.0.0.1";
  GpuRequest gpu_request = GpuRequest::kDeviceRequests;
  std::string gpu_environment_variable = "NVIDIA_VISIBLE_DEVICES";
};

struct Config {
  Config() = default;
  std::vector<HostConfig> hosts;
  base::Duration pull_progress_timeout{std::chrono::minutes(10)};
  base::Duration disk_usage_every{std::chrono::minutes(1)};  // while a pod has a limit on disk space
  std::string container_scheme = "docker";                   // of containerStatuses[].containerID
};

struct ParsedConfig {
  ParsedConfig() = default;
  Config config;  // of use only without faults
  std::vector<provider::ConfigFault> faults;
};

/// All faults at once; an unknown key is one.
ParsedConfig parse_config(const nlohmann::json& node);

}  // namespace spillway::providers::docker
