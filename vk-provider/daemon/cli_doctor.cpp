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
  out.provider_taint = profile.provider_taint;
  return out;
}

base::Result<void> take_account(const std::string& account, DoctorOptions& out) {
  const std::size_t slash = account.find('/');
  if (slash == std::string::npos && account.find(':') != std::string::npos) {
    out.account_name = account;
    out.known.account = account;
    return {};
  }
  out.account_ns = account.substr(0, slash);
  if (slash != std::string::npos) out.account_name = account.substr(slash + 1);
  if (!is_dns_label(out.account_ns) || !is_dns_subdomain(out.account_name)) {
    return base::fail(base::ErrorKind::kInvalid,
                      "--service-account is NAMESPACE/NAME, or the name of a user with a colon "
                      "in it; found " +
                          account);
  }
  out.known.account = kube::service_account(out.account_ns, out.account_name).name;
  return {};
}

}  // namespace

base::Result<DoctorOptions> doctor_options(const Config& config, const std::string& account,
                                           const std::string& training_class) {
  DoctorOptions out;
  out.installation = config.installation;
  if (auto done = take_account(account.empty() ? config.installation.ns + "/spillway" : account, out); !done) {
    return base::fail(std::move(done.error()));
  }
  core::DoctorFacts& known = out.known;
  for (const model::NodeProfile& node : config.nodes) {
    known.own_nodes.push_back(own_node(node, config.installation.name));
  }
  known.training_class = training_class;
  known.wants_certificate =
      config.kubelet_api.enabled && config.kubelet_api.certificate.source == api::CertificateSource::kCsr;
  known.gated = config.gate.enabled;
  out.gate_apart = known.gated && !config.gate.in_daemon;
  for (const control::GateSettings& gate : config.gate.gates) {
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
