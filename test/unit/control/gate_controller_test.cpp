#include "vk-provider/control/gate_controller.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "test/support/api_server_model.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
namespace base = spillway::base;
namespace control = spillway::control;
namespace core = spillway::core;
namespace kube = spillway::kube;
namespace model = spillway::model;
namespace net = spillway::net;
using nlohmann::json;
using spillway::test::ApiServerModel;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kGateKey = "spillway.dev/home-has-capacity";
constexpr const char* kBurst = "/api/v1/nodes/burst";
const json kForeign = {{"key", "team"}, {"value", "a"}, {"effect", "NoSchedule"}};

/// The API server's model with a person between it and the gate.
class Between final : public kube::KubeApi {
 public:
  explicit Between(ApiServerModel& api) : api_(api) {}
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    if (down) return refuse<kube::KubeResponse>();
    if (request.method == net::Method::kPatch && before_patch) before_patch(request);
    return api_.send(std::move(request), deadline);
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    if (down) return refuse<async::ByteStreamPtr>();
    return api_.watch(std::move(request), deadline);
  }

  bool down = false;
  std::function<void(const kube::KubeRequest&)> before_patch;

 private:
  template <class T>
  static async::Task<T> refuse() {
    co_return base::fail(base::ErrorKind::kUnavailable, "connection refused");
  }
  ApiServerModel& api_;
};

/// Prometheus, as far as the gate asks it.
class Prometheus final : public net::HttpClient {
 public:
  async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline) override {
    ++asked;
    net::HttpResponse response;
    response.status = status;
    const bool sick_asked = request.target.find("sick") != std::string::npos;
    response.body =
        R"({"status":"success","data":{"resultType":"vector","result":[)" + (sick_asked ? sick : free) + "]}}";
    co_return response;
  }
  async::Task<net::HttpStream> open(net::HttpRequest, base::Deadline) override {
    co_return base::fail(base::ErrorKind::kUnsupported, "no streams");
  }
  void say_free(const std::string& gpus) { free = R"({"metric":{},"value":[1,")" + gpus + R"("]})"; }

  int status = 200;
  int asked = 0;
  std::string free;
  std::string sick;
};

control::GateSettings a_gate() {
  control::GateSettings gate;
  gate.name = "gpu";
  core::VirtualNode node;
  node.name = "burst";
  gate.home.virtual_nodes = {node};
  return gate;
}

struct World {
  World() {
    add_home("home1");
    add_home("home2");
    add_virtual();
  }
  ~World() { stop(); }

  void start(control::GateSettings settings = a_gate()) {
    control::GateDeps deps;
    deps.api = &between;
    deps.timers = &r.timers;
    deps.random = &random;
    deps.metrics = &metrics;
    deps.events = &events;
    deps.installation = "main";
    if (settings.rules.mode != core::GateMode::kKubernetes || !settings.unhealthy_query.empty()) {
      deps.prometheus = &client;
    }
    std::vector<control::GateSettings> gates;
    gates.push_back(std::move(settings));
    gate = std::make_unique<control::GateController>(std::move(gates), std::move(deps));
    group = std::make_unique<async::TaskGroup>(r.ctx.get_executor());
    group->spawn(gate->run());
    group->spawn(events.run());
  }
  void stop() {
    if (group) r.run(group->stop());
    group.reset();
    gate.reset();
  }

  void add_home(const std::string& name, int gpus = 8) {
    api.create("/api/v1/nodes", {{"metadata", {{"name", name}}}});
    set_home(name, gpus, true);
  }
  void set_home(const std::string& name, int gpus, bool ready) {
    api.edit("/api/v1/nodes/" + name + "/status",
             {{"status",
               {{"capacity", {{"nvidia.com/gpu", "8"}}},
                {"allocatable", {{"nvidia.com/gpu", std::to_string(gpus)}}},
                {"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}}}});
  }
  void add_virtual() {
    api.create("/api/v1/nodes",
               {{"metadata",
                 {{"name", "burst"}, {"labels", {{"spillway.dev/installation", "main"}, {"type", "virtual-kubelet"}}}}},
                {"spec", {{"taints", {kForeign, {{"key", kGateKey}, {"effect", "NoSchedule"}}}}}}});
  }
  void add_pod(const std::string& name, int gpus, bool burst, const std::string& node = {}) {
    json spec = {{"containers",
                  {{{"name", "main"},
                    {"image", "x"},
                    {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}};
    if (burst) spec["tolerations"] = {{{"key", "virtual-kubelet.io/provider"}, {"operator", "Exists"}}};
    spec["priority"] = burst ? 100 : 10000;
    if (!node.empty()) spec["nodeName"] = node;
    api.create("/api/v1/namespaces/default/pods", {{"metadata", {{"name", name}}}, {"spec", spec}});
    if (!node.empty()) return;
    api.edit("/api/v1/namespaces/default/pods/" + name + "/status",
             {{"status",
               {{"phase", "Pending"},
                {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}}}});
  }
  void fill_home() {
    add_pod("training-1", 8, false, "home1");
    add_pod("training-2", 8, false, "home2");
  }

  json taints() const { return api.get(kBurst)["spec"].value("taints", json::array()); }
  bool has(const std::string& key) const {
    const json list = taints();
    return std::ranges::any_of(list, [&](const json& taint) { return taint["key"] == key; });
  }
  bool open() const { return !has(kGateKey); }
  json condition() const {
    const json conditions = api.get(kBurst).value("/status/conditions"_json_pointer, json::array());
    for (const json& entry : conditions) {
      if (entry["type"] == "SpillwayGate") return entry;
    }
    return nullptr;
  }
  bool heard(const std::string& reason) {
    r.run_for(10s);
    const auto all = api.list("/api/v1/namespaces/default/events");
    return std::ranges::any_of(all, [&](const json& event) { return event["reason"] == reason; });
  }
  base::Duration until_open(base::Duration limit) {
    const base::TimePoint begin = r.timers.now();
    return r.run_until([&] { return open(); }, limit) ? r.timers.now() - begin : limit;
  }
  int patches() const {
    const auto it = api.requests().find("PATCH nodes");
    return it == api.requests().end() ? 0 : it->second;
  }

  VirtualReactor r;
  ApiServerModel api{r.timers};
  Between between{api};
  Prometheus prometheus;
  kube::PrometheusClient client{prometheus, "", base::Secret()};
  base::SeededRandom random{7};
  base::Metrics metrics;
  kube::Client events_client{api};
  kube::EventRecorder events{events_client, r.timers, metrics, "test"};
  std::unique_ptr<control::GateController> gate;
  std::unique_ptr<async::TaskGroup> group;
};

}  // namespace

TEST_CASE("a gate with room at home stays closed, and says why") {
  World w;
  w.start();
  w.r.run_for(5min);
  CHECK_FALSE(w.open());
  CHECK(w.has("spillway.dev/prefer-home"));
  CHECK(w.condition()["status"] == "False");
  CHECK(w.condition()["reason"] == "Started");
  CHECK(w.condition()["message"].get<std::string>().find("now 16 slots of 1 GPU free at home") != std::string::npos);
  CHECK(w.taints()[0] == kForeign);
}

TEST_CASE("a pod that home has no room for opens the gate within 6 s") {
  World w;
  SECTION("later") {
    w.start();
    w.r.run_for(1h);
    w.fill_home();
  }
  SECTION("at the very start") {
    w.fill_home();
    w.start();
    w.r.run_for(2s);
  }
  CHECK_FALSE(w.open());
  w.add_pod("inference", 1, true);
  const base::Duration took = w.until_open(1min);
  CHECK(took >= 5s);
  CHECK(took <= 6s);
  CHECK(w.taints()[0] == kForeign);
  w.r.run_for(5s);
  CHECK(w.condition()["status"] == "True");
  CHECK(w.condition()["reason"] == "Need");
  CHECK(w.heard("GateOpened"));
}

TEST_CASE("the gate closes again when home has had room for long enough") {
  World w;
  w.fill_home();
  w.start();
  w.add_pod("inference", 1, true);
  w.until_open(1min);
  w.api.delete_pod("default", "training-1", 0);
  w.api.delete_pod("default", "inference", 0);
  w.r.run_for(10min - 10s);
  CHECK(w.open());
  w.r.run_for(20s);
  CHECK_FALSE(w.open());
  CHECK(w.heard("GateClosed"));
}

TEST_CASE("a gate at rest writes nothing but its numbers") {
  World w;
  w.start();
  w.r.run_for(2min);
  w.api.forget_requests();
  w.r.run_for(1h);
  CHECK(w.patches() == 0);
  CHECK(w.api.requests().count("PATCH nodes/status") == 0);
}

TEST_CASE("a write that was overtaken is computed anew, and the other's taint stays") {
  World w;
  w.start();
  w.r.run_for(20s);
  w.fill_home();
  int times = 0;
  w.between.before_patch = [&](const kube::KubeRequest& request) {
    if (request.target.find("/status") != std::string::npos || ++times > 2) return;
    json taints = w.taints();
    taints.push_back({{"key", "other-" + std::to_string(times)}, {"effect", "NoSchedule"}});
    w.api.edit(kBurst, {{"spec", {{"taints", taints}}}});
  };
  w.add_pod("inference", 1, true);
  CHECK(w.until_open(1min) < 8s);
  CHECK(w.has("other-1"));
  CHECK(w.has("other-2"));
  CHECK(times == 3);
}

TEST_CASE("a taint that somebody takes away comes back, until it is a fight") {
  World w;
  w.start();
  w.r.run_for(1min);
  const auto take_away = [&] { w.api.edit(kBurst, {{"spec", {{"taints", {kForeign}}}}}); };
  for (int i = 0; i < 3; ++i) {
    take_away();
    w.r.run_for(11s);
    CHECK_FALSE(w.open());
  }
  CHECK(w.heard("GateContested"));
  take_away();
  w.r.run_for(9min);
  CHECK(w.open());
  w.r.run_for(2min);
  CHECK_FALSE(w.open());
}

TEST_CASE("a person's order wins, and ends by itself") {
  World w;
  w.start();
  w.r.run_for(1min);
  const std::string end = base::to_rfc3339(w.r.timers.wall() + 10min);
  w.api.edit(kBurst,
             {{"metadata", {{"annotations", {{"spillway.dev/gate", "open"}, {"spillway.dev/gate-until", end}}}}}});
  w.r.run_for(5s);
  CHECK(w.open());
  CHECK(w.condition()["reason"] == "Override");
  CHECK(w.heard("GateOverride"));
  SECTION("at its time") {
    w.r.run_for(9min);
    CHECK(w.open());
    w.r.run_for(1min + 20s);
    CHECK_FALSE(w.open());
  }
  SECTION("or when the clock jumps past it") {
    w.r.timers.jump_wall(1h);
    w.r.run_for(20s);
    CHECK_FALSE(w.open());
  }
  SECTION("an order that nobody can read is none") {
    w.api.edit(kBurst, {{"metadata", {{"annotations", {{"spillway.dev/gate", "ajar"}}}}}});
    w.r.run_for(20s);
    CHECK_FALSE(w.open());
    CHECK(w.heard("GateOverrideInvalid"));
  }
}

TEST_CASE("a jump of the clock changes no gate") {
  World w;
  w.start();
  w.r.run_for(1min);
  w.r.timers.jump_wall(24h);
  w.r.run_for(1min);
  w.r.timers.jump_wall(-48h);
  w.r.run_for(1min);
  CHECK_FALSE(w.open());
}

TEST_CASE("a restart goes on where the last process stopped") {
  World w;
  w.fill_home();
  w.start();
  w.add_pod("inference", 1, true);
  w.until_open(1min);
  w.r.run_for(1min);
  w.stop();
  w.api.delete_pod("default", "training-1", 0);
  w.api.delete_pod("default", "inference", 0);
  w.r.run_for(1min);
  w.start();
  w.r.run_for(7min);
  CHECK(w.open());
  w.r.run_for(1min + 30s);
  CHECK_FALSE(w.open());
}

TEST_CASE("an open node that nobody of us opened is closed") {
  World w;
  w.api.edit(kBurst, {{"spec", {{"taints", {kForeign}}}}});
  w.start();
  w.r.run_for(5s);
  CHECK_FALSE(w.open());
}

TEST_CASE("three minutes without the API server change nothing") {
  World w;
  w.start();
  w.r.run_for(1min);
  w.between.down = true;
  w.api.end_watches();
  w.fill_home();
  w.add_pod("inference", 1, true);
  w.r.run_for(3min);
  CHECK_FALSE(w.open());
  w.between.down = false;
  w.r.run_for(1min);
  CHECK(w.open());
  CHECK(w.heard("GateDataMissing"));
}

TEST_CASE("a Node that is deleted and created again has its gate") {
  World w;
  w.fill_home();
  w.start();
  w.add_pod("inference", 1, true);
  w.until_open(1min);
  kube::KubeRequest request;
  request.method = net::Method::kDelete;
  request.target = kBurst;
  w.api.exchange(request);
  w.r.run_for(5s);
  w.add_virtual();
  w.r.run_for(5s);
  CHECK(w.open());
  CHECK(w.condition()["status"] == "True");
  CHECK_FALSE(w.heard("GateContested"));
}

TEST_CASE("a Node of another installation is not touched") {
  World w;
  w.api.edit(kBurst, {{"metadata", {{"labels", {{"spillway.dev/installation", "other"}}}}}});
  w.fill_home();
  w.start();
  w.add_pod("inference", 1, true);
  w.r.run_for(10min);
  CHECK_FALSE(w.open());
  CHECK(w.condition().is_null());
}

TEST_CASE("no home node: nothing is decided") {
  World w;
  for (const char* name : {"home1", "home2"}) {
    kube::KubeRequest request;
    request.method = net::Method::kDelete;
    request.target = std::string("/api/v1/nodes/") + name;
    w.api.exchange(request);
  }
  w.start();
  w.add_pod("inference", 1, true);
  w.r.run_for(10min);
  CHECK_FALSE(w.open());
  CHECK(w.heard("GateNoHome"));
}

TEST_CASE("a home that is NotReady as a whole opens the gate") {
  World w;
  w.start();
  w.r.run_for(2min);
  w.set_home("home1", 8, false);
  w.set_home("home2", 8, false);
  CHECK(w.until_open(1min) <= 16s);
  CHECK(w.heard("GateOpened"));
}

TEST_CASE("Prometheus decides while it has data, and Kubernetes when it has none") {
  World w;
  control::GateSettings settings = a_gate();
  settings.rules.mode = core::GateMode::kPrometheusThenKubernetes;
  settings.free_query = "free";
  SECTION("empty") {}
  SECTION("503") { w.prometheus.status = 503; }
  SECTION("NaN") { w.prometheus.say_free("NaN"); }
  w.fill_home();
  w.start(settings);
  w.add_pod("inference", 1, true);
  w.r.run_for(29s);
  CHECK_FALSE(w.open());
  w.r.run_for(10s);
  CHECK(w.open());
  CHECK(w.heard("GateDataMissing"));
  w.prometheus.status = 200;
  w.prometheus.say_free("0");
  w.r.run_for(1min);
  CHECK(w.heard("GateDataRestored"));
}

TEST_CASE("samples that are too old are no data") {
  World w;
  control::GateSettings settings = a_gate();
  settings.rules.mode = core::GateMode::kPrometheus;
  settings.free_query = "free";
  settings.freshness_query = "fresh";
  w.prometheus.say_free("91");  // to both questions
  w.start(settings);
  w.r.run_for(10min);
  CHECK_FALSE(w.open());
  CHECK(w.heard("GateDataMissing"));
  CHECK(w.metrics.to_text().find(R"(spillway_gate_bad_polls_total{gate="gpu",reason="stale"})") != std::string::npos);
}

TEST_CASE("sick GPUs are no room") {
  World w;
  control::GateSettings settings = a_gate();
  settings.unhealthy_query = "sick";
  settings.unhealthy_label = "Hostname";
  w.prometheus.sick =
      R"({"metric":{"Hostname":"home1"},"value":[1,"8"]},{"metric":{"Hostname":"home2"},"value":[1,"8"]})";
  w.start(settings);
  CHECK(w.until_open(5min) <= 2min);
  w.prometheus.status = 500;
  w.r.run_for(1min);
  CHECK(w.heard("GateHealthDataMissing"));
}
