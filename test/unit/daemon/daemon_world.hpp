// A cluster, a cloud, and one daemon after the other, in virtual time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "providers/fake/fake_provider.hpp"
#include "test/support/api_server_model.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/daemon/daemon.hpp"

namespace spillway::test {

namespace fake = providers::fake;
using nlohmann::json;

inline constexpr const char* kPods = "/api/v1/namespaces/team-a/pods";

inline fake::CloudSettings at_once() {
  fake::CloudSettings settings;
  settings.boot_time = base::Duration(0);
  return settings;
}

/// A cluster, a cloud, and one daemon after the other.
class World {
 public:
  explicit World(fake::CloudSettings settings = at_once())
      : api(reactor.timers), cloud(std::move(settings), reactor.timers.both()) {
    registry["fake"] = fake::provider_type_over(cloud);
  }
  ~World() { crash(); }

  void start() {
    daemon::Config config;
    model::NodeProfile node;
    node.name = "burst";
    node.capacity = {
        {"cpu", "64"}, {"memory", "256Gi"}, {"pods", "100"}, {"ephemeral-storage", "1Ti"}, {"nvidia.com/gpu", "8"}};
    node.internal_ip = "192.0.2.10";
    node.max_price_per_hour = price_cap;
    node.offers.capacity_types = capacity_types;
    config.spend = spend;
    config.nodes = {node};
    daemon::ProviderConfig provider;
    provider.name = base::ProviderName("cloud");
    provider.type = "fake";
    provider.config = std::make_shared<const json>(json::object());
    config.providers = {provider};
    config.placement.orphan_grace = std::chrono::seconds(30);
    daemon::DaemonDeps deps;
    deps.executor = reactor.ctx.get_executor();
    deps.timers = &reactor.timers;
    deps.random = &random;
    deps.metrics = &metrics;
    deps.api = way == nullptr ? &api : way;
    deps.lease_api = &api;
    deps.registry = &registry;
    deps.holder = "host";
    running = std::make_unique<daemon::Daemon>(config, deps);
    ended = false;
    boost::asio::co_spawn(reactor.ctx, running->run(), [this](const std::exception_ptr&, int code) {
      exit_code = code;
      ended = true;
    });
  }
  /// Everything of the daemon stops where it stands; the lease is not given back.
  void crash() {
    if (!running) return;
    reactor.run(running->abandon());
    reactor.run_until([this] { return ended; }, std::chrono::seconds(1));
    running.reset();
  }
  void stop() {
    running->request_stop();
    REQUIRE(reactor.run_until([this] { return ended; }, std::chrono::seconds(10)));
    running.reset();
  }

  json pod() const { return api.get(std::string(kPods) + "/web"); }
  std::string phase() const {
    const json object = pod();
    return object.is_null() ? "gone" : object.value("status", json::object()).value("phase", "");
  }
  bool until(const std::string& wanted, base::Duration limit) {
    return reactor.run_until([&] { return phase() == wanted; }, limit);
  }
  /// `change` makes an ordinary pod another one.
  void create_pod(const std::function<void(json&)>& change = {}) {
    const json limits = {{"nvidia.com/gpu", "1"}};
    json pod = {{"metadata", {{"name", "web"}, {"namespace", "team-a"}}},
                {"spec",
                 {{"nodeName", "burst"},
                  {"restartPolicy", "Always"},
                  {"terminationGracePeriodSeconds", 30},
                  {"containers", {{{"name", "main"}, {"image", "app:1"}, {"resources", {{"limits", limits}}}}}}}},
                {"status", {{"phase", "Pending"}}}};
    if (change) change(pod);
    api.create(kPods, std::move(pod));
  }
  size_t alive() { return cloud.size(reactor.timers.now()); }
  /// Instances that ever existed.
  size_t bought() { return cloud.audit(reactor.timers.now()).instances.size(); }

  VirtualReactor reactor;
  base::SeededRandom random{1};
  base::Metrics metrics;
  ApiServerModel api;
  kube::KubeApi* way = nullptr;          // to `api`, if something is to go wrong on it
  std::optional<base::Money> price_cap;  // of the node
  std::vector<model::CapacityType> capacity_types = model::OfferFilter().capacity_types;  // of the node
  core::SpendPolicy spend;
  fake::FakeCloud cloud;
  provider::Registry registry;
  std::unique_ptr<daemon::Daemon> running;
  bool ended = true;
  int exit_code = -1;
};

}  // namespace spillway::test
