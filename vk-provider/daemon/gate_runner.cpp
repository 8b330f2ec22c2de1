#include "vk-provider/daemon/gate_runner.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/node_plan.hpp"
#include "vk-provider/daemon/version.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::daemon {
namespace asio = boost::asio;
namespace log = base::log;

GateRunner::GateRunner(const Config& config, const DaemonDeps& deps) : config_(config), d_(deps), client_(*deps.api) {}

GateRunner::~GateRunner() = default;

base::Result<void> GateRunner::make_prometheus() {
  const PrometheusConfig& wanted = config_.gate.prometheus;
  if (wanted.url.empty()) return {};
  auto url = net::parse_url(wanted.url);
  if (!url) return base::fail(std::move(url.error()));
  url->endpoint.ca_pem = wanted.ca_pem;
  auto http = d_.http->make(std::move(url->endpoint));
  if (!http) return base::fail(std::move(http.error()));
  http_ = std::move(*http);
  prometheus_ = std::make_unique<kube::PrometheusClient>(*http_, url->path, wanted.token);
  return {};
}

async::Loop GateRunner::run() {
  if (auto made = make_prometheus(); !made) {
    log::error("the gates cannot run", {{"prometheus", config_.gate.prometheus.url}, {"error", made.error()}});
    co_return;
  }
  for (;;) {
    control::InstallationLeaseConfig lease;
    lease.ns = config_.installation.ns;
    lease.name_prefix = "spillway-gate-";
    lease.metric_prefix = "spillway_gate_lease";
    lease.installation = config_.installation.name;
    lease.hostname = d_.holder;
    lease.is_proven_dead = d_.is_proven_dead;
    lease_ = std::make_unique<control::InstallationLease>(lease, *d_.lease_api, *d_.timers, *d_.random, *d_.metrics);
    co_await lease_->acquire();
    log::info("the gates are ours", {{"gates", config_.gate.gates.size()}});
    start_work();
    co_await lease_->keep();
    co_await stop_work();
    log::warn("the gates' lease is lost; this process stands by", {});
  }
}

void GateRunner::start_work() {
  events_ = std::make_unique<kube::EventRecorder>(client_, *d_.timers, *d_.metrics, "spillway");
  control::GateDeps deps;
  deps.api = d_.api;
  deps.timers = d_.timers;
  deps.random = d_.random;
  deps.metrics = d_.metrics;
  deps.events = events_.get();
  deps.prometheus = prometheus_.get();
  deps.installation = config_.installation.name;
  gates_ = std::make_unique<control::GateController>(gates_of(config_), deps);
  drain_ = std::make_unique<control::DrainController>(*gates_, deps);
  parts_ = std::make_unique<async::TaskGroup>(d_.executor);
  parts_->spawn(events_->run());
  parts_->spawn(gates_->run());
  parts_->spawn(drain_->run());
}

asio::awaitable<void> GateRunner::stop_work() {
  if (parts_) co_await parts_->stop();
  parts_.reset();
  drain_.reset();
  gates_.reset();
  events_.reset();
}

asio::awaitable<void> GateRunner::drop() {
  co_await stop_work();
  lease_.reset();
}

asio::awaitable<void> GateRunner::release() {
  co_await stop_work();
  if (lease_) co_await lease_->release();
  lease_.reset();
}

std::vector<Check> GateRunner::readiness() const {
  // A standby is ready: it is not its fault that another one works.
  if (!gates_) return {};
  return {{"gates", gates_->synced() ? "" : "the nodes and pods of the cluster were not listed completely yet"}};
}

std::vector<control::GateSettings> gates_of(const Config& config) {
  std::vector<control::GateSettings> gates = config.gate.gates;
  for (control::GateSettings& gate : gates) {
    for (core::VirtualNode& node : gate.home.virtual_nodes) {
      const auto profile =
          std::ranges::find_if(config.nodes, [&](const auto& entry) { return entry.name == node.name; });
      if (profile == config.nodes.end()) continue;
      control::NodeSettings settings(*profile);
      settings.installation = config.installation.name;
      settings.version = std::string(kVersion);
      node.labels = control::make_wanted_node(settings, {}, "").metadata.labels;
      node.provider_taint = profile->provider_taint;
    }
  }
  return gates;
}

bool is_gated(const Config& config, const std::string& node) {
  return config.gate.enabled && std::ranges::any_of(config.gate.gates, [&](const control::GateSettings& gate) {
           return std::ranges::any_of(gate.home.virtual_nodes, [&](const auto& entry) { return entry.name == node; });
         });
}

}  // namespace spillway::daemon
