// The sub-commands of the program, from parsed arguments to exit code.
//
// Called by main, which parses; main's thread. Data to stdout, the rest to stderr.
#pragma once

#include <string>

#include "vk-provider/daemon/cli_cost.hpp"
#include "vk-provider/daemon/cli_offers.hpp"
#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/config.hpp"
#include "vk-provider/kube/credentials.hpp"

namespace spillway::daemon {

struct CliOptions {
  CliOptions() = default;
  std::string config_file;
  std::string kubeconfig;       // empty: see cluster_access.hpp
  std::string node_name;        // empty: as configured
  std::string tls_min_version;  // of the kubelet API; empty: as configured
  bool check_config = false;
  bool dry_run = false;
  CostBy cost_by = CostBy::kNamespace;
  std::string cost_since;              // empty: all that the ledger holds
  std::vector<std::string> manifests;  // files; "-" is standard input
  bool offline = false;                // explain: ask no provider
  std::string decision_log;            // run: a file; empty: none
  std::vector<std::string> logs;       // replay-decisions: the parts, the oldest first
  OffersFilter offers;
  std::string pod;                          // NAME or NAMESPACE/NAME
  std::string ns;                           // empty: as kubectl would
  std::string admin;                        // HOST:PORT of a daemon; empty: as configured, or the default
  std::string service_account;              // doctor: NAMESPACE/NAME; empty: spillway of the installation's namespace
  std::string training_class = "training";  // doctor: a PriorityClass
  Output output = Output::kTable;
};

/// Loads the file and applies the flags that override it. Without a value the faults were printed.
std::optional<Config> load_or_print(const CliOptions& options, const provider::Registry& registry);

int command_run(const CliOptions& options, const provider::Registry& registry);
int command_gate(const CliOptions& options, const provider::Registry& registry);
int command_status(const CliOptions& options, const provider::Registry& registry);
int command_sweep(const CliOptions& options, const provider::Registry& registry);
int command_cost(const CliOptions& options, const provider::Registry& registry);
int command_explain(const CliOptions& options, const provider::Registry& registry);
int command_offers(const CliOptions& options, const provider::Registry& registry);
int command_why(const CliOptions& options, const provider::Registry& registry);
int command_replay_decisions(const CliOptions& options);
int command_doctor(const CliOptions& options, const provider::Registry& registry);
int command_version(const CliOptions& options, const std::string& git_commit);

}  // namespace spillway::daemon
