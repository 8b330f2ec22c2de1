#include "vk-provider/daemon/run.hpp"

#include <unistd.h>

#include <random>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "vk-provider/api/admin_server.hpp"
#include "vk-provider/async/reactor.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/base/process.hpp"
#include "vk-provider/daemon/daemon.hpp"
#include "vk-provider/daemon/gate_runner.hpp"
#include "vk-provider/daemon/version.hpp"
#include "vk-provider/kube/http_kube_api.hpp"
#include "vk-provider/net/http_client.hpp"
#include "vk-provider/net/tcp_stream.hpp"

namespace spillway::daemon {
namespace log = base::log;

namespace {

constexpr base::Duration kAdminStop = std::chrono::seconds(1);
constexpr size_t kLeaseConnections = 2;

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

/// A client and the API over it; the lease has a pair of its own.
struct Connection {
  static base::Result<std::unique_ptr<Connection>> make(net::HttpClientFactory& http, const kube::ClusterAccess& access,
                                                        kube::Credentials& credentials, size_t connections) {
    net::Endpoint endpoint = access.endpoint;
    endpoint.max_connections = connections;
    auto client = http.make(std::move(endpoint));
    if (!client) return base::fail(std::move(client.error()));
    auto made = std::make_unique<Connection>();
    made->client = std::move(*client);
    made->api = std::make_unique<kube::HttpKubeApi>(*made->client, credentials, access.path_prefix,
                                                    "spillway/" + std::string(kVersion));
    return made;
  }

  std::unique_ptr<net::HttpClient> client;
  std::unique_ptr<kube::HttpKubeApi> api;
};

std::vector<api::AdminCheck> to_admin(const std::vector<Check>& checks) {
  std::vector<api::AdminCheck> out;
  for (const Check& check : checks) out.emplace_back(check.name, check.problem);
  return out;
}

/// The gates alone, until they are told to stop.
class GateProcess {
 public:
  GateProcess(const Config& config, const DaemonDeps& deps)
      : gates_(config, deps), group_(deps.executor), stop_(deps.timers->make_waiter()) {}

  boost::asio::awaitable<int> run() {
    group_.spawn(gates_.run());
    co_await stop_->wait();
    log::info("stopping: the taints stay as they are");
    co_await group_.stop();
    co_await gates_.release();
    co_return 0;
  }
  void request_stop() { stop_->wake(); }
  std::vector<Check> readiness() const { return gates_.readiness(); }
  std::string debug_pods() const { return "[]"; }
  std::optional<std::string> debug_placement(const std::string&) const { return std::nullopt; }

 private:
  GateRunner gates_;
  async::TaskGroup group_;
  std::unique_ptr<async::Waiter> stop_;
};

template <class Work>
boost::asio::awaitable<int> serve(Work& work, api::AdminServer& admin, async::TaskGroup& group, async::Timers& timers) {
  const int code = co_await work.run();
  co_await admin.stop(timers.now() + kAdminStop);
  co_await group.stop();
  co_return code;
}

/// Runs a Daemon or a GateProcess in a reactor of its own.
template <class Work>
int run_process(const Config& config, const RunOptions& options) {
  // 1. The reactor, time and chance.
  async::Reactor reactor;
  base::SeededRandom random(std::random_device{}());
  base::Metrics metrics;
  // 2. The API server: a pool for work, and connections of its own for Leases.
  net::BeastHttpClientFactory http(reactor.executor(), reactor.timers());
  kube::Credentials credentials(options.access, reactor.timers());
  auto work = Connection::make(http, options.access, credentials, options.access.endpoint.max_connections);
  auto lease = Connection::make(http, options.access, credentials, kLeaseConnections);
  if (!work || !lease) {
    log::error("cannot connect to the API server", {{"error", work ? lease.error() : work.error()}});
    return 2;
  }
  std::unique_ptr<control::DecisionLog> decisions;
  if (!options.decision_log.empty()) {
    auto made = control::DecisionLog::create(options.decision_log);
    if (!made) {
      log::error("cannot write the decision log", {{"error", made.error()}});
      return 2;
    }
    decisions = std::move(*made);
  }
  // 3. The daemon, or the gates.
  DaemonDeps deps;
  deps.executor = reactor.executor();
  deps.timers = &reactor.timers();
  deps.random = &random;
  deps.metrics = &metrics;
  deps.api = (*work)->api.get();
  deps.lease_api = (*lease)->api.get();
  deps.registry = options.registry;
  deps.http = &http;
  deps.decisions = decisions.get();
  deps.connect_tcp = [&reactor](std::string host, int port, base::Deadline deadline) {
    return net::connect_tcp(reactor.executor(), reactor.timers(), std::move(host), static_cast<std::uint16_t>(port),
                            deadline);
  };
  deps.holder = base::this_process(host_name());
  deps.is_proven_dead = [](const std::string& holder) { return base::is_proven_dead(holder); };
  Work process(config, deps);
  // 4. The admin port.
  api::AdminServerConfig admin_config;
  admin_config.address = config.admin.address;
  admin_config.port = config.admin.port;
  api::AdminSources sources;
  sources.readiness = [&process] { return to_admin(process.readiness()); };
  if (config.admin.debug) {
    sources.debug_pods = [&process] { return process.debug_pods(); };
    sources.debug_placement = [&process](const std::string& uid) { return process.debug_placement(uid); };
  }
  api::AdminServer admin(reactor.executor(), reactor.timers(), metrics, admin_config, std::move(sources));
  if (auto started = admin.start(); !started) {
    log::error("cannot listen", {{"error", started.error()}});
    return 1;
  }
  log::info("spillway starts", {{"version", kVersion},
                                {"installation", config.installation.name},
                                {"nodes", config.nodes.size()},
                                {"providers", config.providers.size()},
                                {"admin", config.admin.address + ":" + std::to_string(admin.port())}});

  async::TaskGroup group(reactor.executor());
  group.spawn(async::probe_reactor_lag(reactor.timers(), metrics));
  reactor.on_stop_signal([&process] { process.request_stop(); });
  int code = 1;
  boost::asio::co_spawn(reactor.context(), serve(process, admin, group, reactor.timers()),
                        [&](const std::exception_ptr& error, int exit_code) {
                          code = exit_code;
                          reactor.stop();
                          if (error) std::rethrow_exception(error);
                        });
  reactor.run();
  return code;
}

}  // namespace

int run_daemon(const Config& config, const RunOptions& options) { return run_process<Daemon>(config, options); }

int run_gate(const Config& config, const RunOptions& options) { return run_process<GateProcess>(config, options); }

}  // namespace spillway::daemon
