#include "vk-provider/daemon/active.hpp"

#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/daemon/gate_runner.hpp"
#include "vk-provider/daemon/version.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/net/digest.hpp"
#include "vk-provider/provider/metered_provider.hpp"

namespace spillway::daemon {
namespace log = base::log;

namespace {
constexpr base::Duration kWaitForProviders = std::chrono::seconds(30);
constexpr base::Duration kShowEvery = std::chrono::seconds(1);
// Nodes without a heartbeat lose their pods: no slice is worth that.
constexpr base::Duration kWaitForEndpoints = std::chrono::seconds(5);
constexpr base::Duration kLookAtEndpoints = std::chrono::milliseconds(50);
// A pod that is bound behind a dead connection is seen after this time (docs/adr/0005).
constexpr base::Duration kPodsWatchTime = std::chrono::seconds(10);
async::Task<async::ByteStreamPtr> cannot_connect(std::string host, int port) {
  co_return base::fail(base::ErrorKind::kUnsupported,
                       "nothing can be reached from here, so neither can " + host + ":" + std::to_string(port));
}

provider::ConnectTcp way_out(const DaemonDeps& deps) {
  if (deps.connect_tcp) return deps.connect_tcp;
  return [](const std::string& host, int port, base::Deadline) { return cannot_connect(host, port); };
}

}  // namespace

Active::Active(const Config& config, const DaemonDeps& deps, control::InstallationLease& lease,
               const std::string& cluster_id)
    : config_(config),
      d_(deps),
      lease_(lease),
      ownership_(net::sha256(cluster_id + "/" + config.installation.name)),
      client_(*deps.api),
      events_(client_, *deps.timers, *deps.metrics, "spillway"),
      handlers_(*deps.timers, way_out(deps)),
      group_(deps.executor) {}

base::Result<void> Active::start() {
  // 1. Who keeps the books, and what can be bought from.
  make_ledger();
  if (auto made = make_providers(); !made) return made;
  // 2. Who decides and writes.
  make_endpoints();
  make_controllers();
  // 3. The API of the nodes, before there are nodes that name its ports.
  if (auto started = start_kubelet_api(); !started) return started;
  make_nodes();
  group_.spawn(begin());
  return {};
}

async::Loop Active::begin() {
  // 4. What was spent before; until it is known nothing is bought.
  co_await ledger_->first_look();
  co_await brake_->first_look();
  group_.spawn(brake_->run());
  group_.spawn(ledger_->run());
  group_.spawn(ledger_->run_questions());
  // 5. Listings of providers and pods run from now on; no create before both are known.
  group_.spawn(events_.run());
  group_.spawn(pods_->run());
  group_.spawn(pods_->run_probes());
  group_.spawn(pods_->run_cleanup());
  group_.spawn(sweep_->run());
  for (auto& provider : provider_controllers_) {
    group_.spawn(provider->run_listings());
    group_.spawn(provider->run_offers());
  }
  for (auto& reflector : reflectors_) group_.spawn(reflector->run());
  if (endpoints_) {
    group_.spawn(endpoints_->run());
    co_await await_endpoints();
  }
  // 6. Nodes come last: what the scheduler binds to them finds everything at work.
  for (auto& node : nodes_) group_.spawn(node->run());
  group_.spawn(watch_providers());
}

async::Loop Active::await_endpoints() {
  const base::TimePoint end = d_.timers->now() + kWaitForEndpoints;
  while (!endpoints_->reconciled() && d_.timers->now() < end) co_await d_.timers->sleep_for(kLookAtEndpoints);
}

void Active::make_endpoints() {
  if (config_.endpoints != EndpointMode::kDirect) return;
  control::EndpointDeps deps;
  deps.executor = d_.executor;
  deps.api = d_.api;
  deps.timers = d_.timers;
  deps.random = d_.random;
  deps.metrics = d_.metrics;
  deps.events = &events_;
  deps.scope.installation = config_.installation.name;
  for (const model::NodeProfile& profile : config_.nodes) {
    const auto zone = profile.labels.find(std::string(model::kLabelZone));
    if (zone != profile.labels.end()) deps.scope.zones.emplace(profile.name, zone->second);
  }
  deps.pods_known = [this] { return pods_->synced(); };
  deps.holds_lease = [this] { return lease_.covers(d_.timers->now()); };
  endpoints_ = std::make_unique<control::EndpointController>(std::move(deps));
}

void Active::make_ledger() {
  control::LedgerDeps deps;
  deps.timers = d_.timers;
  deps.metrics = d_.metrics;
  deps.api = d_.api;
  deps.providers = &providers_;
  deps.ownership = ownership_;
  deps.ns = config_.installation.ns;
  deps.installation = config_.installation.name;
  deps.retention = config_.ledger_retention;
  deps.holds_lease = [this] { return lease_.covers(d_.timers->now()); };
  deps.find_pod = [this](const base::PodUid& uid) -> const model::PodRecord* {
    const control::PodEntry* const entry = pods_->pods().find(uid);
    return entry == nullptr ? nullptr : &entry->record;
  };
  deps.bought_after = [this](const base::PodUid& uid, const base::InstanceTag& tag) -> std::optional<base::TimePoint> {
    const control::PodEntry* const entry = pods_->pods().find(uid);
    if (entry == nullptr || !entry->launch || entry->launch->tag != tag) return std::nullopt;
    return entry->launch->reserved;
  };
  deps.owned = [this](const base::PodUid& uid, int attempt) { return pods_->owns(uid, attempt); };
  deps.settled = [this](const base::PodUid& uid) { pods_->entry_closed(uid); };
  deps.restored = [this](const core::SpendState& state) { placer_->resume(state, d_.timers->both()); };
  deps.runs = [this](const core::LedgerEntry& entry) { placer_->found(core::open_of(entry), d_.timers->both()); };
  deps.stopped = [this](const core::LedgerEntry& entry) {
    placer_->stopped(entry.ref.provider, entry.tag, d_.timers->both());
  };
  ledger_ = std::make_unique<control::LedgerKeeper>(std::move(deps));
}

base::Result<void> Active::make_providers() {
  provider::ProviderDeps deps;
  deps.executor = d_.executor;
  deps.timers = d_.timers;
  deps.random = d_.random;
  deps.http = d_.http;
  for (const ProviderConfig& entry : config_.providers) {
    auto made = d_.registry->at(entry.type).make(entry.name, *entry.config, deps);
    if (!made) {
      return base::fail(made.error().kind, "provider " + entry.name.str() + ": " + made.error().message);
    }
    auto metered =
        std::make_unique<provider::MeteredProvider>(std::move(*made), *d_.timers, *d_.metrics, ledger_.get());
    providers_.add(std::make_unique<provider::ThrottledProvider>(std::move(metered), provider::ThrottleConfig{},
                                                                 *d_.timers, *d_.metrics));
  }
  return {};
}

void Active::make_controllers() {
  placer_ = std::make_unique<control::Placer>(offers_, providers_, config_.spend, *d_.metrics, d_.timers->both());
  if (d_.decisions != nullptr) placer_->record_to(*d_.decisions);
  control::PodDeps deps;
  deps.executor = d_.executor;
  deps.timers = d_.timers;
  deps.random = d_.random;
  deps.metrics = d_.metrics;
  deps.client = &client_;
  deps.events = &events_;
  deps.providers = &providers_;
  deps.handlers = &handlers_;
  deps.offers = &offers_;
  deps.placer = placer_.get();
  deps.ledger = ledger_.get();
  deps.ownership = ownership_;
  deps.nodes = config_.nodes;
  deps.policy.start_deadline = config_.placement.start_deadline;
  deps.policy.max_start_attempts = config_.placement.max_start_attempts;
  deps.create_deadline = config_.placement.create_deadline;
  deps.lease_covers = [this](base::Deadline deadline) { return lease_.covers(deadline); };
  deps.old_creates_end =
      lease_.handed_over() ? lease_.acquired_at() : lease_.acquired_at() + config_.placement.create_deadline;
  deps.ask_provider = [this](const base::ProviderName& name) {
    if (control::ProviderController* controller = find_controller(name)) controller->ask();
  };
  deps.stir_provider = [this](const base::ProviderName& name) {
    if (control::ProviderController* controller = find_controller(name)) controller->stir();
  };
  if (endpoints_) {
    deps.pod_changed = [this](const model::PodRecord& record) { endpoints_->on_pod(record); };
  }
  pods_ = std::make_unique<control::PodController>(std::move(deps));
  brake_ = std::make_unique<control::BrakeKeeper>(pods_->brake(), *d_.api, config_.installation.ns,
                                                  config_.installation.name, *d_.timers,
                                                  [this] { return lease_.covers(d_.timers->now()); });
  sweep_ = std::make_unique<control::SweepController>(
      ownership_, config_.placement.orphan_grace, providers_, client_, *d_.timers, *d_.metrics,
      [this](const base::PodUid& uid, int attempt) { return pods_->owns(uid, attempt); },
      [this](const base::PodUid& uid) { return pods_->pods().find(uid) != nullptr; },
      [this] { return lease_.covers(d_.timers->now()); });
  for (const auto& provider : providers_.all()) {
    provider_controllers_.push_back(std::make_unique<control::ProviderController>(
        *provider, ownership_.prefix(), offers_, *d_.timers, *d_.random, *d_.metrics,
        [this](const base::ProviderName& name, const provider::OwnedList& list, base::TimePoint began) {
          pods_->on_listing(name, list, began);
          if (pods_->synced() && pods_->recovered()) sweep_->on_listing(name, list);
        },
        [this](const base::ProviderName& name) { return pods_->busy(name); }));
    if (d_.decisions != nullptr) provider_controllers_.back()->record_to(*d_.decisions);
  }
}

base::Result<void> Active::start_kubelet_api() {
  if (!config_.kubelet_api.enabled) return {};
  samples_ = std::make_unique<control::SampleController>(providers_, pods_->pods(), *d_.timers);
  for (async::Loop& loop : samples_->loops()) group_.spawn(std::move(loop));
  api::KubeletSources sources;
  sources.pods = &pods_->pods();
  sources.probes = &pods_->probes();
  sources.usage = &samples_->usage();
  sources.refresh_usage = [this](base::Deadline deadline) { return samples_->refresh(deadline); };
  sources.usage_failing = [this] { return samples_->failing(); };
  sources.find_provider = [this](const base::ProviderName& name) -> provider::Provider* {
    return providers_.find(name);
  };
  sources.unsynced = [this] { return pods_->synced() ? std::string() : "the pods were not listed completely yet"; };
  sources.api = d_.api;
  sources.metrics = d_.metrics;
  sources.timers = d_.timers;
  std::vector<api::KubeletNode> nodes;
  for (const model::NodeProfile& profile : config_.nodes) {
    api::KubeletNode& node = nodes.emplace_back();
    node.name = profile.name;
    node.address = profile.internal_ip.str();
    if (const auto pods = profile.capacity.find("pods"); pods != profile.capacity.end()) node.max_pods = pods->second;
  }
  kubelet_ = std::make_unique<api::KubeletApi>(d_.executor, config_.kubelet_api, std::move(nodes),
                                               config_.installation.name, std::move(sources));
  return kubelet_->start();
}

void Active::make_nodes() {
  for (const model::NodeProfile& profile : config_.nodes) {
    nodes_.push_back(std::make_unique<control::NodeController>(settings_of(profile), *d_.api, *d_.lease_api, *d_.timers,
                                                               *d_.random, *d_.metrics, &events_));
    kube::ReflectorConfig pods;
    pods.name = "pods";
    pods.path = "/api/v1/pods";
    pods.field_selector = "spec.nodeName=" + profile.name;
    pods.watch_time = kPodsWatchTime;
    kube::ReflectorSink& sink = pods_->sink(profile.name);
    reflectors_.push_back(std::make_unique<kube::Reflector>(std::move(pods), *d_.api,
                                                            endpoints_ ? endpoints_->watch_labels(sink) : sink,
                                                            *d_.timers, *d_.random, *d_.metrics));
  }
}

control::ProviderController* Active::find_controller(const base::ProviderName& name) const {
  for (const auto& controller : provider_controllers_) {
    if (controller->name() == name) return controller.get();
  }
  return nullptr;
}

control::NodeSettings Active::settings_of(const model::NodeProfile& profile) const {
  control::NodeSettings node(profile);
  node.installation = config_.installation.name;
  node.version = std::string(kVersion);
  node.gated = is_gated(config_, profile.name);
  if (kubelet_) node.kubelet_port = kubelet_->port(profile.name);
  return node;
}

async::Loop Active::watch_providers() {
  const base::TimePoint patience_ends = d_.timers->now() + kWaitForProviders;
  for (;;) {
    show_providers();
    if (d_.decisions != nullptr) d_.decisions->flush();
    if (!pods_->recovered() && d_.timers->now() >= patience_ends) pods_->stop_waiting_for_providers();
    co_await d_.timers->sleep_for(kShowEvery);
  }
}

void Active::show_providers() {
  std::string problem;
  for (const auto& controller : provider_controllers_) {
    if (controller->reachable()) continue;
    problem += (problem.empty() ? "" : "; ") + controller->name().str() + ": " + controller->problem();
  }
  if (problem.empty() == shown_problem_.empty()) return;
  shown_problem_ = problem;
  for (auto& node : nodes_) {
    if (problem.empty()) {
      node->set_providers_reachable(true, "ProvidersReachable", "all providers answer");
    } else {
      node->set_providers_reachable(false, "ProviderUnreachable", problem);
    }
  }
}

boost::asio::awaitable<void> Active::shut_down(base::Deadline deadline) {
  if (pods_) co_await pods_->drain(deadline);
  if (ledger_) co_await ledger_->drain(deadline);
  co_await drop();
}

boost::asio::awaitable<void> Active::drop() {
  // It uses all of the others.
  if (kubelet_) co_await kubelet_->stop(d_.timers->now());
  co_await group_.stop();
  if (pods_) co_await pods_->stop();
  for (const auto& provider : providers_.all()) co_await provider->stop();
}

std::vector<Check> Active::readiness() const {
  std::vector<Check> checks;
  checks.emplace_back("pods", pods_->synced() ? "" : "the pods were not listed completely yet");
  checks.emplace_back("recovery", pods_->recovered() ? "" : "the providers were not asked yet what they hold");
  if (ledger_) {
    checks.emplace_back(
        "ledger", ledger_->ready() || !ledger_->problem().empty() ? ledger_->problem() : "the ledger was not read yet");
  }
  if (endpoints_) {
    checks.emplace_back("endpoints", endpoints_->reconciled()
                                         ? ""
                                         : "Services and EndpointSlices were not listed completely yet (their rights: "
                                           "config/deploy/endpoints)");
  }
  if (kubelet_) checks.emplace_back("kubelet api", kubelet_->problem());
  for (const auto& node : nodes_) {
    checks.emplace_back("node " + node->name(), node->registered()        ? ""
                                                : node->problem().empty() ? "not registered yet"
                                                                          : node->problem());
  }
  return checks;
}

}  // namespace spillway::daemon
