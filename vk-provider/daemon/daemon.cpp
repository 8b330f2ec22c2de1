#include "vk-provider/daemon/daemon.hpp"

#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/debug_codec.hpp"
#include "vk-provider/daemon/active.hpp"
#include "vk-provider/daemon/gate_runner.hpp"

namespace spillway::daemon {
namespace log = base::log;

namespace {
constexpr base::BackoffPolicy kStartBackoff{std::chrono::seconds(1), std::chrono::seconds(10)};
constexpr base::Duration kCallDeadline = std::chrono::seconds(10);
// SIGTERM to exit in 10 s: the release of the lease has what is left.
constexpr base::Duration kDrain = std::chrono::seconds(6);
}  // namespace

Daemon::Daemon(Config config, DaemonDeps deps)
    : config_(std::move(config)), d_(std::move(deps)), group_(d_.executor), stop_(d_.timers->make_waiter()) {}

Daemon::~Daemon() = default;

boost::asio::awaitable<int> Daemon::run() {
  group_.spawn(lead());
  if (config_.gate.enabled && config_.gate.in_daemon) {
    gates_ = std::make_unique<GateRunner>(config_, d_);
    group_.spawn(gates_->run());
  }
  co_await stop_->wait();
  log::info("stopping: writes under way are finished; nodes, pods and instances stay as they are");
  // The lease outlasts the drain without another renewal. What lead() has begun to drop it has dropped after this.
  co_await group_.stop();
  if (active_) co_await active_->shut_down(d_.timers->now() + kDrain);
  if (gates_) co_await gates_->release();
  if (lease_) co_await lease_->release();
  active_.reset();
  lease_.reset();
  gates_.reset();
  log::info("stopped");
  co_return exit_code_;
}

void Daemon::request_stop() { stop_->wake(); }

boost::asio::awaitable<void> Daemon::abandon() {
  co_await group_.stop();
  if (active_) co_await active_->drop();
  if (gates_) co_await gates_->drop();
  active_.reset();
  lease_.reset();
  gates_.reset();
  stop_->wake();
}

async::Loop Daemon::lead() {
  const std::string cluster_id = co_await find_cluster_id();
  for (;;) {
    control::InstallationLeaseConfig lease_config;
    lease_config.ns = config_.installation.ns;
    lease_config.installation = config_.installation.name;
    lease_config.hostname = d_.holder;
    lease_config.is_proven_dead = d_.is_proven_dead;
    lease_ =
        std::make_unique<control::InstallationLease>(lease_config, *d_.lease_api, *d_.timers, *d_.random, *d_.metrics);
    co_await lease_->acquire();
    active_ = std::make_unique<Active>(config_, d_, *lease_, cluster_id);
    if (auto started = active_->start(); !started) {
      log::error("cannot start", {{"error", started.error()}});
      exit_code_ = 2;
      request_stop();
      co_return;
    }
    co_await lease_->keep();
    log::error("the installation lease is lost; all work is dropped, and this daemon stands by");
    co_await active_->drop();
    active_.reset();
  }
}

boost::asio::awaitable<std::string> Daemon::find_cluster_id() {
  if (!config_.installation.cluster_id.empty()) co_return config_.installation.cluster_id;
  kube::Client client(*d_.api);
  for (int failures = 1;; ++failures) {
    auto uid = co_await client.get_cluster_uid(d_.timers->now() + kCallDeadline);
    if (uid) co_return *uid;
    log::warn("the API server cannot be asked for the cluster's id; trying again",
              {{"error", uid.error()},
               {"remedy", "check --kubeconfig, its CA, and that config/deploy/rbac.yaml is applied"}});
    co_await d_.timers->sleep_for(base::backoff_delay(kStartBackoff, failures));
  }
}

std::vector<Check> Daemon::readiness() const {
  std::vector<Check> checks;
  checks.emplace_back("lease", lease_ && lease_->held() ? "" : "another daemon holds the installation's lease");
  if (gates_) {
    for (Check& check : gates_->readiness()) checks.push_back(std::move(check));
  }
  if (!active_) return checks;
  for (Check& check : active_->readiness()) checks.push_back(std::move(check));
  return checks;
}

std::string Daemon::debug_pods() const {
  if (!active_) return "[]";
  return control::encode_debug_pods(active_->pods().pods(), d_.timers->both());
}

std::optional<std::string> Daemon::debug_placement(const std::string& uid) const {
  const control::PodEntry* const entry = active_ ? active_->pods().pods().find(base::PodUid(uid)) : nullptr;
  if (entry == nullptr) return std::nullopt;
  return control::encode_debug_placement(*entry, active_->placer(), d_.timers->both());
}

}  // namespace spillway::daemon
