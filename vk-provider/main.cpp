// The program: parses arguments and hands over to a sub-command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <spillway_commit.hpp>
#include <string>

#include "providers/builtin.hpp"
#include "providers/fake/fake_cloud_command.hpp"
#include "vk-provider/daemon/cli_commands.hpp"

namespace {

namespace daemon_ns = spillway::daemon;
namespace fake = spillway::providers::fake;

void add_output(CLI::App* command, daemon_ns::CliOptions& options) {
  static const std::map<std::string, daemon_ns::Output> words = {{"table", daemon_ns::Output::kTable},
                                                                 {"json", daemon_ns::Output::kJson}};
  command->add_option("-o,--output", options.output, "how to show it; default: table")
      ->transform(CLI::CheckedTransformer(words).description(""))
      ->type_name("table|json");
}

void add_inputs(CLI::App* command, daemon_ns::CliOptions& options) {
  command->add_option("--config", options.config_file, "the configuration; see config/example.yaml")
      ->required()
      ->type_name("FILE");
  command->add_option("--kubeconfig", options.kubeconfig, "default: the cluster in which this runs, else $KUBECONFIG")
      ->type_name("FILE");
}

void add_cost(CLI::App* command, daemon_ns::CliOptions& options) {
  using By = daemon_ns::CostBy;
  static const std::map<std::string, By> words = {{"namespace", By::kNamespace},
                                                  {"owner", By::kOwner},
                                                  {"provider", By::kProvider},
                                                  {"node", By::kNode},
                                                  {"pod", By::kPod}};
  add_inputs(command, options);
  add_output(command, options);
  command->add_option("--by", options.cost_by, "what is summed up; default: namespace")
      ->transform(CLI::CheckedTransformer(words).description(""))
      ->type_name("namespace|owner|provider|node|pod");
  command->add_option("--since", options.cost_since, "90m, 7d, 2026-12-01, ...; default: all that the ledger holds")
      ->type_name("TIME");
}

void add_doctor(CLI::App* command, daemon_ns::CliOptions& options) {
  add_inputs(command, options);
  add_output(command, options);
  command
      ->add_option("--service-account", options.service_account,
                   "the daemon's, whose rights are asked for, or a user's name; default: spillway of its namespace")
      ->type_name("NAMESPACE/NAME");
  command->add_option("--training-class", options.training_class, "the PriorityClass of training; default: training")
      ->type_name("NAME");
  command->footer("It changes nothing. Exit codes: 0 all is well, 1 warnings, 2 bad input or no API server, 3 errors.");
}

int run(int argc, char** argv) {
  CLI::App app("Spillway: a virtual Kubernetes node for rented GPUs", "spillway");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 failed, 2 bad input or configuration, 3 refused.");
  daemon_ns::CliOptions options;
  fake::FakeCloudOptions cloud;

  CLI::App* const run = app.add_subcommand("run", "the daemon: serves the configured nodes until SIGTERM");
  add_inputs(run, options);
  run->add_option("--node-name", options.node_name, "name of the node, if the configuration has one")
      ->type_name("NAME");
  run->add_option("--tls-min-version", options.tls_min_version, "of the kubelet API: VersionTLS12 or VersionTLS13")
      ->type_name("VERSION");
  run->add_option("--decision-log", options.decision_log, "record what decides where pods go, as JSON lines")
      ->type_name("FILE");
  run->add_flag("--check-config", options.check_config, "report the faults of the configuration, and end");

  CLI::App* const gate = app.add_subcommand("gate", "the capacity gates alone, until SIGTERM");
  add_inputs(gate, options);

  CLI::App* const status = app.add_subcommand("status", "nodes, lease, providers and pods as they are now");
  add_inputs(status, options);
  add_output(status, options);

  CLI::App* const doctor = app.add_subcommand("doctor", "what in the cluster will hurt, why, and how to mend it");
  add_doctor(doctor, options);

  CLI::App* const sweep = app.add_subcommand("sweep", "end instances of ours that no living pod owns");
  add_inputs(sweep, options);
  add_output(sweep, options);
  sweep->add_flag("--dry-run", options.dry_run, "only report them");

  CLI::App* const cost = app.add_subcommand("cost", "what was spent, and what runs now, by the ledger");
  add_cost(cost, options);

  CLI::App* const explain =
      app.add_subcommand("explain", "can the pods of a manifest run, where, and why not; no cluster is asked");
  explain->add_option("-f,--filename", options.manifests, "pods or workloads in YAML or JSON; - is standard input")
      ->required()
      ->type_name("FILE");
  explain
      ->add_option("--config", options.config_file,
                   "judge by its nodes and providers, and by what they sell now; default: by all that are built in")
      ->type_name("FILE");
  explain->add_flag("--offline", options.offline, "do not ask what is sold");
  add_output(explain, options);

  CLI::App* const offers = app.add_subcommand("offers", "what the configured providers sell now, the cheapest first");
  offers->add_option("--config", options.config_file, "the configuration")->required()->type_name("FILE");
  offers->add_option("--gpu", options.offers.gpu, "of this GPU model, by any of its names")->type_name("MODEL");
  offers->add_option("--region", options.offers.region, "in this region, by the provider's word")->type_name("REGION");
  offers->add_flag("--spot", options.offers.spot, "that can be taken back at any time");
  add_output(offers, options);

  CLI::App* const why = app.add_subcommand("why", "where a pod stands, why there, and what stood next");
  why->add_option("pod", options.pod, "NAME or NAMESPACE/NAME")->required()->type_name("POD");
  why->add_option("-n,--namespace", options.ns, "default: that of the context")->type_name("NAMESPACE");
  why->add_option("--config", options.config_file, "the daemon's configuration: names its admin port")
      ->type_name("FILE");
  why->add_option("--admin", options.admin, "the daemon's admin port; default: as configured, or 127.0.0.1:9810")
      ->type_name("HOST:PORT");
  why->add_option("--kubeconfig", options.kubeconfig, "default: the cluster in which this runs, else $KUBECONFIG")
      ->type_name("FILE");
  add_output(why, options);

  CLI::App* const replay =
      app.add_subcommand("replay-decisions", "make the decisions of a decision log again; 1 if one is another now");
  replay->add_option("files", options.logs, "the parts, the oldest first: FILE.2 FILE.1 FILE")
      ->required()
      ->type_name("FILE");
  add_output(replay, options);

  CLI::App* const version = app.add_subcommand("version", "version, commit, compiler and libraries");
  add_output(version, options);

  CLI::App* const fake_cloud = app.add_subcommand("fake-cloud", "a cloud for trials, on a unix socket");
  fake_cloud->add_option("--socket", cloud.socket, "where to listen")->required()->type_name("PATH");
  fake_cloud->add_option("--seed", cloud.seed, "of all that is random; wins over the file")->type_name("N");
  fake_cloud->add_option("--config", cloud.config_file, "JSON; default: a dozen offers")->type_name("FILE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? daemon_ns::kExitDone : daemon_ns::kExitBadInput;
  }
  if (version->parsed()) return daemon_ns::command_version(options, spillway::kGitCommit);
  if (fake_cloud->parsed()) return fake::run_fake_cloud(cloud);
  if (replay->parsed()) return daemon_ns::command_replay_decisions(options);
  const spillway::provider::Registry registry = spillway::providers::builtin_providers();
  if (explain->parsed()) return daemon_ns::command_explain(options, registry);
  if (gate->parsed()) return daemon_ns::command_gate(options, registry);
  if (offers->parsed()) return daemon_ns::command_offers(options, registry);
  if (why->parsed()) return daemon_ns::command_why(options, registry);
  if (doctor->parsed()) return daemon_ns::command_doctor(options, registry);
  if (status->parsed()) return daemon_ns::command_status(options, registry);
  if (cost->parsed()) return daemon_ns::command_cost(options, registry);
  if (sweep->parsed()) return daemon_ns::command_sweep(options, registry);
  return daemon_ns::command_run(options, registry);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "spillway: %s\n", e.what());
    return daemon_ns::kExitFailed;
  }
}
