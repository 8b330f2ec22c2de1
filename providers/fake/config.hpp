// `config:` of a provider of type fake, and the file of `spillway fake-cloud --config`.
//
// Typed values with defaults; all faults are reported at once. Holds no secrets.
//
//   mode: inProcess | socket   inProcess: the cloud lives and dies with the daemon
//   socket: /run/fake.sock     for mode socket: where `spillway fake-cloud --socket` listens
//   podIP: 192.0.2.7           what every instance shows as the address of its pod; otherwise none
//   settleTime: 10s            how long after a lost create its instance may still turn up
// and for the cloud itself, so not with mode socket:
//   seed, bootTime, priceWalk{step, permille}, offers[]{id, region, gpuModel, gpuCount, gpuMemory, cpu, memory,
//   pricePerHour, capacityType, stock, trust, billing{grain, minimum}}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "providers/fake/fake_cloud_types.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::providers::fake {

enum class Mode : std::uint8_t { kInProcess, kSocket };

struct FakeConfig {
  FakeConfig() = default;
  Mode mode = Mode::kInProcess;
  std::string socket;
  std::string pod_ip;
  base::Duration settle_time{std::chrono::seconds(10)};
  CloudSettings cloud;
};

struct ConfigReading {
  ConfigReading() = default;
  FakeConfig config;
  std::vector<provider::ConfigFault> faults;
};

/// Null and an absent mapping mean the defaults.
ConfigReading read_config(const nlohmann::json& config);
std::vector<provider::ConfigFault> validate_config(const nlohmann::json& config);

/// The cloud's part of the mapping alone, from JSON text (which every YAML reader takes, too). kInvalid with all faults
/// in one message.
base::Result<CloudSettings> read_cloud_settings(std::string_view json_text);

}  // namespace spillway::providers::fake
