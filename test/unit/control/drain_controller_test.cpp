#include "vk-provider/control/drain_controller.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

#include "test/support/api_server_model.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
namespace base = spillway::base;
namespace control = spillway::control;
namespace core = spillway::core;
namespace kube = spillway::kube;
namespace net = spillway::net;
using nlohmann::json;
using spillway::test::ApiServerModel;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kWeb = "/api/v1/namespaces/default/pods/web-1";
constexpr const char* kBurst = "/api/v1/nodes/burst";

/// The API server's model, with evictions and refusals to order.
class Between final : public kube::KubeApi {
 public:
  explicit Between(ApiServerModel& api) : api_(api) {}
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    if (request.target.ends_with("/eviction")) {
      evictions.push_back(json::parse(request.body));
      if (refusal) co_return base::fail(*refusal);
      api_.delete_pod("default", "web-1", 0);
      co_return kube::KubeResponse();
    }
    const bool of_pod = request.method == net::Method::kPatch && request.target.starts_with(kWeb);
    if (of_pod && refusal) co_return base::fail(*refusal);
    co_return co_await api_.send(std::move(request), deadline);
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    return api_.watch(std::move(request), deadline);
  }

  std::vector<json> evictions;
  std::optional<base::Error> refusal;

 private:
  ApiServerModel& api_;
};

/// One pod of one ReplicaSet on a rented node behind a closed gate, and an empty home.
struct World {
  explicit World(core::DrainMode mode) {
    gate.name = "gpu";
    core::VirtualNode node;
    node.name = "burst";
    gate.home.virtual_nodes = {node};
    gate.drain.mode = mode;
    api.create("/api/v1/nodes", {{"metadata", {{"name", "home"}}}});
    api.edit("/api/v1/nodes/home/status", {{"status",
                                            {{"capacity", {{"nvidia.com/gpu", "8"}}},
                                             {"allocatable", {{"nvidia.com/gpu", "8"}}},
                                             {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    api.create("/api/v1/nodes",
               {{"metadata",
                 {{"name", "burst"}, {"labels", {{"spillway.dev/installation", "main"}, {"type", "virtual-kubelet"}}}}},
                {"spec", {{"taints", {{{"key", "spillway.dev/home-has-capacity"}, {"effect", "NoSchedule"}}}}}}});
    api.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
               {{"metadata", {{"name", "web"}}}, {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}}});
    add_pod("web-1", "burst", true);
    start();
  }
  ~World() { stop(); }

  void start() {
    control::GateDeps deps;
    deps.api = &between;
    deps.timers = &r.timers;
    deps.random = &random;
    deps.metrics = &metrics;
    deps.events = &events;
    deps.installation = "main";
    gates = std::make_unique<control::GateController>(std::vector{gate}, deps);
    drain = std::make_unique<control::DrainController>(*gates, deps);
    group = std::make_unique<async::TaskGroup>(r.ctx.get_executor());
    group->spawn(gates->run());
    group->spawn(drain->run());
    group->spawn(events.run());
  }
  void stop() {
    if (group) r.run(group->stop());
    group.reset();
    drain.reset();
    gates.reset();
  }

  void add_pod(const std::string& name, const std::string& node, bool ready) {
    const json limits = {{"nvidia.com/gpu", "1"}};
    api.create(kPods, {{"metadata",
                        {{"name", name},
                         {"labels", {{"app", "web"}, {"pod-template-hash", "h1"}}},
                         {"ownerReferences",
                          {{{"apiVersion", "apps/v1"},
                            {"kind", "ReplicaSet"},
                            {"name", "web"},
                            {"uid", "rs"},
                            {"controller", true}}}}}},
                       {"spec",
                        {{"nodeName", node},
                         {"tolerations", {{{"key", "virtual-kubelet.io/provider"}, {"operator", "Exists"}}}},
                         {"containers", {{{"name", "main"}, {"image", "x"}, {"resources", {{"limits", limits}}}}}}}}});
    if (ready) set_ready(name);
  }
  void set_ready(const std::string& name) {
    const json condition = {{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2026-11-28T00:00:00Z"}};
    api.edit(std::string(kPods) + "/" + name + "/status",
             {{"status", {{"phase", "Running"}, {"conditions", {condition}}}}});
  }
  json metadata() const { return api.get(kWeb)["metadata"]; }
  bool detached() const { return metadata()["labels"] == json{{"app", "web"}}; }
  /// What a ReplicaSet does with a pod that does not fit its selector, and with one replica too few.
  void let_go() {
    api.edit(kWeb, {{"metadata", {{"ownerReferences", nullptr}}}});
    add_pod("web-2", "home", false);
  }
  /// What it does with one that fits again.
  void take_back() {
    const json owner = {
        {"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "rs"}, {"controller", true}};
    api.edit(kWeb, {{"metadata", {{"ownerReferences", json::array({owner})}}}});
  }
  bool heard(const std::string& reason) {
    r.run_for(10s);
    const auto all = api.list("/api/v1/namespaces/default/events");
    return std::ranges::any_of(all, [&](const json& event) { return event["reason"] == reason; });
  }
  bool shows(const std::string& sample) const { return metrics.to_text().find(sample + "\n") != std::string::npos; }

  VirtualReactor r;
  ApiServerModel api{r.timers};
  Between between{api};
  base::SeededRandom random{7};
  base::Metrics metrics;
  kube::Client events_client{api};
  kube::EventRecorder events{events_client, r.timers, metrics, "test"};
  control::GateSettings gate;
  std::unique_ptr<control::GateController> gates;
  std::unique_ptr<control::DrainController> drain;
  std::unique_ptr<async::TaskGroup> group;
};

}  // namespace

TEST_CASE("a pod is evicted by its UID, and the move is told") {
  World w(core::DrainMode::kEvict);
  const std::string uid = w.metadata()["uid"];
  w.r.run_for(59s);
  CHECK(w.between.evictions.empty());
  REQUIRE(w.r.run_until([&] { return !w.between.evictions.empty(); }, 10s));
  CHECK(w.between.evictions[0]["deleteOptions"]["preconditions"]["uid"] == uid);
  w.add_pod("web-2", "home", true);
  CHECK(w.heard("DrainStarted"));
  CHECK(w.heard("DrainDone"));
  CHECK(w.shows(R"(spillway_drain_moves_total{gate="gpu",mode="evict",result="home"} 1)"));
  CHECK(w.shows(R"(spillway_drain_inflight{gate="gpu"} 0)"));
  CHECK(w.between.evictions.size() == 1);
}

TEST_CASE("a drain that is off does nothing") {
  World w(core::DrainMode::kOff);
  w.r.run_for(10min);
  CHECK(w.between.evictions.empty());
  CHECK_FALSE(w.api.requests().contains("LIST poddisruptionbudgets"));
}

TEST_CASE("what the API server refuses is told by its reason") {
  World w(core::DrainMode::kEvict);
  std::string reason;
  SECTION("the budget") {
    w.between.refusal = base::Error(base::ErrorKind::kRateLimited, "it would violate the budget");
    reason = "pdb";
  }
  SECTION("two budgets") {
    w.between.refusal = base::Error(base::ErrorKind::kUnknownOutcome, "This pod has more than one PodDisruptionBudget");
    reason = "two-pdbs";
  }
  SECTION("a right") {
    w.between.refusal = base::Error(base::ErrorKind::kPermission, "cannot create pods/eviction");
    reason = "refused";
  }
  REQUIRE(w.r.run_until([&] { return !w.between.evictions.empty(); }, 70s));
  w.r.run_for(1s);
  CHECK(w.shows(R"(spillway_drain_blocked{gate="gpu",reason=")" + reason + R"("} 1)"));
  CHECK(w.heard("DrainBlocked"));
}

TEST_CASE("surge takes the pod away, waits for the other one, and evicts") {
  World w(core::DrainMode::kSurge);
  REQUIRE(w.r.run_until([&] { return w.detached(); }, 70s));
  CHECK(w.metadata()["annotations"]["spillway.dev/draining"] == "h1");
  w.let_go();
  w.r.run_for(1min);
  CHECK(w.between.evictions.empty());
  SECTION("in one process") {}
  SECTION("in two") {
    w.stop();
    w.start();
    w.r.run_for(5s);
    CHECK(w.between.evictions.empty());
  }
  w.set_ready("web-2");
  REQUIRE(w.r.run_until([&] { return w.between.evictions.size() == 1; }, 2s));
  CHECK(w.heard("DrainDone"));
  CHECK(w.shows(R"(spillway_drain_moves_total{gate="gpu",mode="surge",result="home"} 1)"));
}

TEST_CASE("a node that is opened gets its pod back within a second or two") {
  World w(core::DrainMode::kSurge);
  REQUIRE(w.r.run_until([&] { return w.detached(); }, 70s));
  w.let_go();
  w.r.run_for(5s);
  w.api.edit(kBurst, {{"metadata", {{"annotations", {{"spillway.dev/gate", "open"}}}}}});
  REQUIRE(w.r.run_until([&] { return !w.detached(); }, 2s));
  CHECK(w.metadata()["labels"]["pod-template-hash"] == "h1");
  CHECK(w.metadata().value("annotations", json::object()).empty());
  w.take_back();
  CHECK(w.heard("DrainAborted"));
  CHECK(w.between.evictions.empty());
}

TEST_CASE("a drain that is off by now gives back what it has left") {
  World w(core::DrainMode::kSurge);
  REQUIRE(w.r.run_until([&] { return w.detached(); }, 70s));
  w.let_go();
  w.stop();
  w.gate.drain.mode = core::DrainMode::kOff;
  w.start();
  REQUIRE(w.r.run_until([&] { return !w.detached(); }, 10s));
  CHECK(w.between.evictions.empty());
}

TEST_CASE("without the right to patch pods surge changes nothing") {
  World w(core::DrainMode::kSurge);
  w.between.refusal = base::Error(base::ErrorKind::kPermission, "cannot patch resource pods");
  CHECK_FALSE(w.r.run_until([&] { return w.detached(); }, 5min));
  CHECK(w.heard("DrainBlocked"));
  CHECK(w.shows(R"(spillway_drain_blocked{gate="gpu",reason="refused"} 1)"));
}
