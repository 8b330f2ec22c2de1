// The configuration: one versioned YAML document as typed values (config/example.yaml names every key).
//
// Read once, by main, before the reactor starts; a value afterwards. All faults are found in one go and no exception
// leaves this file. Does not watch the file for changes.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vk-provider/api/kubelet_config.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/base/secret.hpp"
#include "vk-provider/control/gate_settings.hpp"
#include "vk-provider/core/spend_guard.hpp"
#include "vk-provider/model/node_profile.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::daemon {

struct InstallationConfig {
  InstallationConfig() = default;
  std::string name = "spillway";
  std::string ns = "spillway-system";  // of the installation's Lease
  std::string cluster_id;              // empty: the UID of the namespace kube-system
  bool operator==(const InstallationConfig&) const = default;
};

struct ProviderConfig {
  ProviderConfig() = default;
  base::ProviderName name;
  std::string type;
  /// A mapping that the type's validate() has accepted. Its secrets are resolved: never print it.
  std::shared_ptr<const nlohmann::json> config;
};

struct PlacementConfig {
  PlacementConfig() = default;
  base::Duration start_deadline{std::chrono::minutes(20)};   // from the create call to the first running container
  int max_start_attempts = 3;                                // offers that are tried for one pod
  base::Duration create_deadline{std::chrono::seconds(20)};  // of one create call
  base::Duration orphan_grace{std::chrono::minutes(2)};      // how long an instance without a pod is left alone
  bool operator==(const PlacementConfig&) const = default;
};

struct PrometheusConfig {
  PrometheusConfig() = default;
  std::string url;  // empty: there is none
  base::Secret token;
  std::string ca_pem;  // empty: the system's CAs
  control::GatePollSettings poll;
  bool operator==(const PrometheusConfig&) const = default;
};

struct GateConfig {
  GateConfig() = default;
  bool enabled = false;
  bool in_daemon = true;  // false: only `spillway gate` runs them
  PrometheusConfig prometheus;
  std::vector<control::GateSettings> gates;  // at least one if enabled; no node in two; see gates_of()
};

/// How traffic of Services reaches rented pods (docs/traffic.md).
enum class EndpointMode : std::uint8_t {
  kNone,    // not at all, but for pods whose own address is reached
  kDirect,  // EndpointSlices of ours lead to their published ports
};

struct AdminConfig {
  AdminConfig() = default;
  std::string address = "127.0.0.1";
  std::uint16_t port = 9810;  // 0: any free port, named in the log
  bool debug = true;          // /debug/pods, for loopback peers only
  bool operator==(const AdminConfig&) const = default;
};

struct LogConfig {
  LogConfig() = default;
  base::log::Level level = base::log::Level::kInfo;
  base::log::Format format = base::log::Format::kText;
  bool operator==(const LogConfig&) const = default;
};

struct Config {
  Config() = default;
  InstallationConfig installation;
  std::vector<model::NodeProfile> nodes;  // at least one; names differ
  std::vector<ProviderConfig> providers;  // at least one; names differ
  PlacementConfig placement;
  core::SpendPolicy spend;  // a provider that costs money is under a cap per hour
  GateConfig gate;
  EndpointMode endpoints = EndpointMode::kNone;
  base::Duration ledger_retention{std::chrono::hours(24 * 365)};
  api::KubeletApiConfig kubelet_api;
  AdminConfig admin;
  LogConfig log;
};

/// One thing that is wrong with a configuration.
struct Fault {
  Fault() = default;
  std::string file;
  int line = 0;      // from 1; 0 if the fault has no place in the file
  std::string path;  // nodes[0].labels; empty for the document as a whole
  std::string message;

  /// `file:line: path: message`
  std::string to_string() const;
};

/// What a configuration is read with; handed in, so that a test decides it.
struct ConfigSources {
  ConfigSources() = default;
  const provider::Registry* providers = nullptr;
  /// The value of an environment variable.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  /// If set: receives every key that was asked for, list indices left out (`nodes[].offers.regions`).
  std::set<std::string>* known_keys = nullptr;
};

/// The process's environment.
std::optional<std::string> process_environment(const std::string& name);

/// `file` stands in the faults, and files of secrets are looked for beside it. Faults are in the order of the lines.
std::expected<Config, std::vector<Fault>> parse_config(std::string_view yaml, const std::string& file,
                                                       const ConfigSources& sources);
std::expected<Config, std::vector<Fault>> load_config(const std::string& file, const ConfigSources& sources);

/// `--node-name`: renames the only profile. kInvalid with several, or if the name is none.
base::Result<void> override_node_name(Config& config, const std::string& name);
/// `--tls-min-version`: of the kubelet API. kInvalid if there is no such version.
base::Result<void> override_tls_min_version(Config& config, const std::string& version);

}  // namespace spillway::daemon
