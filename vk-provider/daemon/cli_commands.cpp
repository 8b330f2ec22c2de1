#include "vk-provider/daemon/cli_commands.hpp"

#include <boost/version.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/daemon/cli_doctor.hpp"
#include "vk-provider/daemon/cli_explain.hpp"
#include "vk-provider/daemon/cli_session.hpp"
#include "vk-provider/daemon/cli_status.hpp"
#include "vk-provider/daemon/cli_sweep.hpp"
#include "vk-provider/daemon/cluster_access.hpp"
#include "vk-provider/daemon/run.hpp"
#include "vk-provider/daemon/version.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/net/library_versions.hpp"

namespace spillway::daemon {
namespace {

void print(std::FILE* stream, const std::string& text) { std::fwrite(text.data(), 1, text.size(), stream); }

int bad_input(const std::string& message) {
  print(stderr, "spillway: " + message + "\n");
  return kExitBadInput;
}

/// Runs `work`, which fills `report`, with the configured cluster and providers.
template <class Report, class MakeWork>
int run_standalone(const CliOptions& options, const provider::Registry& registry, Report& report, MakeWork make_work) {
  const auto config = load_or_print(options, registry);
  if (!config) return kExitBadInput;
  base::log::configure(base::log::Level::kWarn, base::log::Format::kText);
  const auto access = find_cluster(options.kubeconfig, process_environment);
  if (!access) return bad_input(access.error().message);
  auto session = CliSession::open(*config, registry, *access);
  if (!session) return bad_input(session.error().message);
  (*session)->run(make_work(*config, (*session)->surroundings()));
  if (!report.problem.empty()) print(stderr, "spillway: " + report.problem + "\n");
  print(stdout, to_text(report, options.output));
  return report.exit_code;
}

base::Result<std::string> read_text(const std::string& file) {
  const auto all_of = [](std::istream& in) { return std::string(std::istreambuf_iterator<char>(in), {}); };
  if (file == "-") return all_of(std::cin);
  std::ifstream in(file, std::ios::binary);
  std::string text = in ? all_of(in) : std::string();
  if (!in) return base::fail(base::ErrorKind::kInvalid, file + ": cannot be read");
  return text;
}

boost::asio::awaitable<void> sweep_into(Surroundings in, SweepOptions options, SweepReport* report) {
  *report = co_await sweep(std::move(in), std::move(options));
}

boost::asio::awaitable<void> status_into(Surroundings in, StatusOptions options, StatusReport* report) {
  *report = co_await gather_status(std::move(in), std::move(options));
}

boost::asio::awaitable<void> cost_into(Surroundings in, CostOptions options, CostReport* report) {
  *report = co_await gather_cost(std::move(in), std::move(options));
}

boost::asio::awaitable<void> doctor_into(Surroundings in, DoctorOptions options, DoctorOutcome* outcome) {
  *outcome = co_await run_doctor(std::move(in), std::move(options));
}

std::string boost_version() {
  std::string text = BOOST_LIB_VERSION;
  for (char& c : text) c = c == '_' ? '.' : c;
  return text;
}

}  // namespace

std::optional<Config> load_or_print(const CliOptions& options, const provider::Registry& registry) {
  ConfigSources sources;
  sources.providers = &registry;
  sources.environment = process_environment;
  auto config = load_config(options.config_file, sources);
  if (!config) {
    for (const Fault& fault : config.error()) print(stderr, fault.to_string() + "\n");
    return std::nullopt;
  }
  base::Result<void> overridden;
  if (!options.node_name.empty()) overridden = override_node_name(*config, options.node_name);
  if (overridden && !options.tls_min_version.empty()) {
    overridden = override_tls_min_version(*config, options.tls_min_version);
  }
  if (!overridden) {
    bad_input(overridden.error().message);
    return std::nullopt;
  }
  return std::move(*config);
}

int command_run(const CliOptions& options, const provider::Registry& registry) {
  const auto config = load_or_print(options, registry);
  if (!config) return kExitBadInput;
  if (options.check_config) {
    print(stderr, options.config_file + ": no faults\n");
    return kExitDone;
  }
  base::log::configure(config->log.level, config->log.format);
  auto access = find_cluster(options.kubeconfig, process_environment);
  if (!access) return bad_input(access.error().message);
  RunOptions run;
  run.access = std::move(*access);
  run.registry = &registry;
  run.decision_log = options.decision_log;
  return run_daemon(*config, run);
}

int command_gate(const CliOptions& options, const provider::Registry& registry) {
  const auto config = load_or_print(options, registry);
  if (!config) return kExitBadInput;
  if (!config->gate.enabled) return bad_input(options.config_file + ": gate.enabled is false");
  base::log::configure(config->log.level, config->log.format);
  auto access = find_cluster(options.kubeconfig, process_environment);
  if (!access) return bad_input(access.error().message);
  RunOptions run;
  run.access = std::move(*access);
  return run_gate(*config, run);
}

int command_status(const CliOptions& options, const provider::Registry& registry) {
  StatusReport report;
  return run_standalone(options, registry, report, [&report](const Config& config, const Surroundings& in) {
    StatusOptions wanted;
    wanted.installation = config.installation;
    for (const model::NodeProfile& node : config.nodes) wanted.nodes.push_back(node.name);
    return status_into(in, std::move(wanted), &report);
  });
}

int command_sweep(const CliOptions& options, const provider::Registry& registry) {
  SweepReport report;
  return run_standalone(options, registry, report, [&report, &options](const Config& config, const Surroundings& in) {
    SweepOptions wanted;
    wanted.installation = config.installation.name;
    wanted.cluster_id = config.installation.cluster_id;
    wanted.dry_run = options.dry_run;
    return sweep_into(in, std::move(wanted), &report);
  });
}

int command_cost(const CliOptions& options, const provider::Registry& registry) {
  CostOptions wanted;
  wanted.by = options.cost_by;
  if (!options.cost_since.empty()) {
    const auto since = parse_since(options.cost_since, base::SystemClock().wall());
    if (!since) return bad_input(since.error().message);
    wanted.since = *since;
  }
  CostReport report;
  return run_standalone(options, registry, report, [&report, &wanted](const Config& config, const Surroundings& in) {
    wanted.ns = config.installation.ns;
    wanted.installation = config.installation.name;
    return cost_into(in, wanted, &report);
  });
}

int command_doctor(const CliOptions& options, const provider::Registry& registry) {
  DoctorAccount account;
  if (!options.service_account.empty()) {
    auto parsed = parse_account(options.service_account);
    if (!parsed) return bad_input(parsed.error().message);
    account = std::move(*parsed);
  }
  DoctorOutcome outcome;
  return run_standalone(options, registry, outcome, [&](const Config& config, const Surroundings& in) {
    return doctor_into(in, doctor_options(config, account, options.training_class), &outcome);
  });
}

int command_explain(const CliOptions& options, const provider::Registry& registry) {
  ExplainBasis basis = explain_basis(registry);
  std::optional<Config> config;
  if (!options.config_file.empty()) {
    config = load_or_print(options, registry);
    if (!config) return kExitBadInput;
    basis = explain_basis(*config, registry);
  }
  std::vector<ManifestText> manifests;
  for (const std::string& file : options.manifests) {
    auto text = read_text(file);
    if (!text) return bad_input(text.error().message);
    manifests.push_back({file == "-" ? "<stdin>" : file, std::move(*text)});
  }
  ExplainReport report = explain(manifests, basis);
  if (config && !options.offline && report.faults.empty()) {
    base::log::configure(base::log::Level::kWarn, base::log::Format::kText);
    const auto market = ask_market(*config, registry);
    if (!market) return bad_input(market.error().message);
    dry_run(report, basis, **market);
  }
  for (const Fault& fault : report.faults) print(stderr, fault.to_string() + "\n");
  if (report.faults.empty()) print(stdout, to_text(report, options.output));
  return report.exit_code;
}

int command_version(const CliOptions& options, const std::string& git_commit) {
  const std::vector<std::pair<std::string, std::string>> rows = {{"version", std::string(kVersion)},
                                                                 {"commit", git_commit},
                                                                 {"compiler", __VERSION__},
                                                                 {"openssl", net::openssl_version()},
                                                                 {"boost", boost_version()}};
  if (options.output == Output::kJson) {
    kube::JsonWriter w;
    w.open_object();
    for (const auto& [name, value] : rows) w.field(name, value);
    print(stdout, w.close_object().text() + "\n");
    return kExitDone;
  }
  Table table({"PART", "VERSION"});
  for (const auto& [name, value] : rows) table.add({name, value});
  print(stdout, table.to_text());
  return kExitDone;
}

}  // namespace spillway::daemon
