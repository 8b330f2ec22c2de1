#include "vk-provider/daemon/cli_doctor.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/control/node_plan.hpp"
#include "vk-provider/daemon/cli_doctor_reader.hpp"
#include "vk-provider/daemon/config_values.hpp"
#include "vk-provider/kube/rights_client.hpp"

namespace spillway::daemon {
namespace {

core::OwnNode own_node(const model::NodeProfile& profile, const std::string& installation) {
  control::NodeSettings settings(profile);
  settings.installation = installation;
  core::OwnNode out;
  out.name = profile.name;
  out.labels = control::make_wanted_node(settings, {}, "").metadata.labels;
  return out;
}

}  // namespace

base::Result<DoctorAccount> parse_account(const std::string& text) {
  DoctorAccount out;
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    out.name = text;
    if (text.find(':') != std::string::npos) return out;
  } else {
    out.ns = text.substr(0, slash);
    out.name = text.substr(slash + 1);
    if (is_dns_label(out.ns) && is_dns_subdomain(out.name)) return out;
  }
  return base::fail(base::ErrorKind::kInvalid,
                    "--service-account: " + text + " is neither NAMESPACE/NAME nor a user such as system:node:a");
}

DoctorOptions doctor_options(const Config& config, DoctorAccount account, const std::string& training_class) {
  DoctorOptions out;
  out.installation = config.installation;
  out.account = std::move(account);
  if (out.account.name.empty()) {
    out.account.ns = config.installation.ns;
    out.account.name = "spillway";
  }
  core::DoctorFacts& known = out.known;
  for (const model::NodeProfile& node : config.nodes) {
    known.own_nodes.push_back(own_node(node, config.installation.name));
  }
  const DoctorAccount& who = out.account;
  known.account = who.ns.empty() ? who.name : kube::service_account(who.ns, who.name).name;
  known.training_class = training_class;
  known.wants_certificate =
      config.kubelet_api.enabled && config.kubelet_api.certificate.source == api::CertificateSource::kCsr;
  known.gated = config.gate.enabled;
  out.gate_apart = known.gated && !config.gate.in_daemon;
  out.leads_traffic = config.endpoints == EndpointMode::kDirect;
  for (const control::GateSettings& gate : config.gate.gates) {
    out.surges = out.surges || (known.gated && gate.drain.mode == core::DrainMode::kSurge);
    known.soft_taint = known.soft_taint || (known.gated && gate.soft_taint);
    // Only the metrics of kube-state-metrics begin so.
    const bool default_query = gate.free_query.find("kube_") != std::string::npos;
    const bool asks = known.gated && gate.rules.mode != core::GateMode::kKubernetes;
    known.asks_metrics = known.asks_metrics || (asks && default_query);
  }
  return out;
}

boost::asio::awaitable<DoctorOutcome> run_doctor(Surroundings in, DoctorOptions options) {
  DoctorOutcome out;
  DoctorReader reader(in, options);
  const auto done = co_await reader.read_cluster();
  co_await reader.read_providers();
  if (!done) {
    out.exit_code = kExitBadInput;
    out.problem = "the API server cannot be asked: " + done.error().message;
    out.reports = {core::check_providers(reader.facts())};
    co_return out;
  }
  out.reports = core::examine(reader.facts());
  switch (core::worst_of(out.reports)) {
    case core::DoctorSeverity::kOk: break;
    case core::DoctorSeverity::kWarning: out.exit_code = kExitWarnings; break;
    case core::DoctorSeverity::kError: out.exit_code = kExitErrors; break;
  }
  co_return out;
}

}  // namespace spillway::daemon
