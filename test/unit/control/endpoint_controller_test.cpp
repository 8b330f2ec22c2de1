#include "vk-provider/control/endpoint_controller.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "test/support/api_server_model.hpp"
#include "test/support/pod_builder.hpp"
#include "test/support/virtual_time.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
namespace base = spillway::base;
namespace control = spillway::control;
namespace kube = spillway::kube;
namespace model = spillway::model;
namespace net = spillway::net;
namespace test = spillway::test;
using nlohmann::json;
using spillway::test::ApiServerModel;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kSlices = "/apis/discovery.k8s.io/v1/namespaces/team-a/endpointslices";
constexpr const char* kServices = "/api/v1/namespaces/team-a/services";

/// The API server's model with somebody between it and the controller.
class Between final : public kube::KubeApi {
 public:
  explicit Between(ApiServerModel& api) : api_(api) {}
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    const bool write = request.method != net::Method::kGet;
    if (write) {
      writes.push_back(request);
      if (before_write) before_write(request);
      if (refuse_writes) return refuse(base::ErrorKind::kUnavailable);
      if (lose_answers) {
        api_.exchange(request);
        return refuse(base::ErrorKind::kUnknownOutcome);
      }
    }
    return api_.send(std::move(request), deadline);
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    return api_.watch(std::move(request), deadline);
  }

  std::vector<kube::KubeRequest> writes;
  std::function<void(const kube::KubeRequest&)> before_write;
  bool refuse_writes = false;
  bool lose_answers = false;

 private:
  static async::Task<kube::KubeResponse> refuse(base::ErrorKind kind) { co_return base::fail(kind, "no answer"); }
  ApiServerModel& api_;
};

json a_service(const std::string& name = "web", int target = 8080) {
  return {{"metadata", {{"name", name}}},
          {"spec",
           {{"selector", {{"app", "web"}}},
            {"clusterIP", "10.0.0.7"},
            {"ipFamilies", {"IPv4"}},
            {"ports", {{{"name", "http"}, {"port", 80}, {"targetPort", target}, {"protocol", "TCP"}}}}}}};
}

/// Running and ready, published at 203.0.113.<n>:<30000 + n>.
model::PodRecord a_record(const base::Now& now, int n = 1, int container_port = 8080) {
  model::PodSpec spec = test::a_pod("web-" + std::to_string(n));
  spec.key.uid = base::PodUid("uid-" + std::to_string(n));
  model::PodRecord record = spillway::core::admit(test::share(std::move(spec)), test::seen_at(), now);
  model::Instance instance = test::an_instance(model::InstanceState::kRunning);
  instance.containers[0].started_at = now.wall;
  model::InstancePort& port = instance.ports.emplace_back();
  port.container_port = container_port;
  port.host = "203.0.113." + std::to_string(n);
  port.public_port = 30000 + n;
  record.placement = test::a_placement();
  record.provider = test::facts();
  record.containers.resize(1);
  record.containers[0].claim = instance.containers[0];
  record.containers[0].ready = record.containers[0].started = true;
  record.ran = true;
  record.observed.status.phase = model::PodPhase::kRunning;
  record.stage = model::Running{instance};
  return record;
}

/// What a user's deletion makes of it.
void remove(model::PodRecord& record) {
  model::Stopping stopping;
  stopping.why = model::StopReason::kDeleted;
  record.deleting = true;
  record.stage = stopping;
}

struct World {
  World() { api.create(kServices, a_service()); }
  ~World() { stop(); }

  void start(std::vector<model::PodRecord> records = {}) {
    control::EndpointDeps deps;
    deps.executor = r.ctx.get_executor();
    deps.api = &between;
    deps.timers = &r.timers;
    deps.random = &random;
    deps.metrics = &metrics;
    deps.events = &events;
    deps.scope.installation = "main";
    deps.pods_known = [this] { return pods_known; };
    deps.holds_lease = [this] { return holds_lease; };
    controller = std::make_unique<control::EndpointController>(std::move(deps));
    group = std::make_unique<async::TaskGroup>(r.ctx.get_executor());
    for (const model::PodRecord& record : records) tell_now(record);
    group->spawn(controller->run());
    group->spawn(events.run());
    r.run_for(1s);
  }
  void stop() {
    if (group) r.run(group->stop());
    group.reset();
    controller.reset();
  }
  model::PodRecord record(int n = 1, int container_port = 8080) { return a_record(r.timers.both(), n, container_port); }
  /// As the reflector and the pod controller do.
  void tell_now(const model::PodRecord& record, const std::string& app = "web") {
    const json pod = {{"metadata",
                       {{"name", record.key().name.str()},
                        {"namespace", record.key().ns.str()},
                        {"uid", record.key().uid.str()},
                        {"resourceVersion", "1"},
                        {"labels", {{"app", app}}}}}};
    controller->watch_labels(pods).on_object(pod.dump());
    controller->on_pod(record);
  }
  void tell(const model::PodRecord& record, const std::string& app = "web") {
    tell_now(record, app);
    r.run_for(1s);
  }
  std::vector<json> slices() const { return api.list(kSlices); }
  json endpoint() const {
    const auto all = slices();
    return all.size() == 1 && all[0]["endpoints"].size() == 1 ? all[0]["endpoints"][0] : json();
  }
  int heard(const std::string& reason) {
    r.run_for(10s);
    const auto all = api.list("/api/v1/namespaces/team-a/events");
    return static_cast<int>(std::ranges::count_if(all, [&](const json& event) { return event["reason"] == reason; }));
  }
  json add_slice(const std::string& name, const std::string& installation = "main") {
    return api.create(kSlices, {{"metadata",
                                 {{"name", name},
                                  {"labels",
                                   {{"kubernetes.io/service-name", "gone"},
                                    {"endpointslice.kubernetes.io/managed-by", "spillway.dev"},
                                    {"spillway.dev/installation", installation}}}}},
                                {"addressType", "IPv4"},
                                {"endpoints", {{{"addresses", {"203.0.113.99"}}}}},
                                {"ports", {{{"name", "http"}, {"port", 1}}}}});
  }

  /// Where the pods go on to.
  struct Pods final : kube::ReflectorSink {
    void on_list_begin() override {}
    void on_list_end() override {}
    void on_object(std::string_view) override { ++seen; }
    void on_deleted(std::string_view) override {}
    int seen = 0;
  };

  Pods pods;
  VirtualReactor r;
  ApiServerModel api{r.timers};
  Between between{api};
  base::SeededRandom random{7};
  base::Metrics metrics;
  kube::Client events_client{api};
  kube::EventRecorder events{events_client, r.timers, metrics, "test"};
  bool pods_known = true;
  bool holds_lease = true;
  std::unique_ptr<control::EndpointController> controller;
  std::unique_ptr<async::TaskGroup> group;
};

}  // namespace

TEST_CASE("a slice is written once, and says all that a proxy needs") {
  World w;
  w.start({w.record()});
  const auto slices = w.slices();
  REQUIRE(slices.size() == 1);
  const json& slice = slices[0];
  const json service = w.api.get(std::string(kServices) + "/web");
  CHECK(slice["metadata"]["labels"] == json{{"kubernetes.io/service-name", "web"},
                                            {"endpointslice.kubernetes.io/managed-by", "spillway.dev"},
                                            {"spillway.dev/installation", "main"}});
  CHECK(
      slice["metadata"]["ownerReferences"] ==
      json::array({{{"apiVersion", "v1"}, {"kind", "Service"}, {"name", "web"}, {"uid", service["metadata"]["uid"]}}}));
  CHECK(slice["addressType"] == "IPv4");
  CHECK(slice["ports"] == json::array({{{"name", "http"}, {"port", 30001}, {"protocol", "TCP"}}}));
  CHECK(
      slice["endpoints"] ==
      json::array({{{"addresses", {"203.0.113.1"}},
                    {"conditions", {{"ready", true}, {"serving", true}, {"terminating", false}}},
                    {"nodeName", "burst"},
                    {"targetRef", {{"kind", "Pod"}, {"namespace", "team-a"}, {"name", "web-1"}, {"uid", "uid-1"}}}}}));
  CHECK(w.controller->reconciled());
  w.r.run_for(10min);
  w.tell(w.record());
  CHECK(w.between.writes.size() == 1);
}

TEST_CASE("readiness is followed, and a dead instance leaves") {
  World w;
  model::PodRecord record = w.record();
  w.start({record});
  record.containers[0].ready = false;
  record.containers[0].claim.state = model::ContainerState::kExited;
  record.containers[0].claim.exit_code = 1;
  const base::TimePoint begin = w.r.timers.now();
  w.tell_now(record);
  CHECK(w.r.run_until([&] { return w.endpoint()["conditions"]["ready"] == false; }, 5s));
  CHECK(w.r.timers.now() - begin <= 200ms);
  CHECK(w.endpoint()["conditions"]["serving"] == false);
  record = w.record();
  w.tell(record);
  CHECK(w.endpoint()["conditions"]["ready"] == true);
  remove(record);
  w.tell(record);
  CHECK(w.endpoint()["conditions"] == json{{"ready", false}, {"serving", true}, {"terminating", true}});
  record.outcome = model::Outcome{};
  w.tell(record);
  CHECK(w.slices().empty());
}

TEST_CASE("what an earlier process left is put right before anything else") {
  World w;
  w.add_slice("stale");
  w.add_slice("foreign", "second");
  model::PodRecord unknown = w.record();
  unknown.stage = model::Admitted{};
  w.start({w.record()});
  CHECK(w.slices().size() == 2);
  w.stop();
  w.pods_known = false;
  w.between.writes.clear();
  w.start({unknown});
  w.r.run_for(1min);
  CHECK_FALSE(w.controller->reconciled());
  CHECK(w.between.writes.empty());
  w.pods_known = true;
  w.r.run_for(1s);
  CHECK(w.controller->reconciled());
  CHECK(w.between.writes.empty());  // its provider was not asked yet: it stays in service
  CHECK(w.metrics.to_text().find("spillway_endpoint_slices 1\n") != std::string::npos);
  w.stop();
  w.start();
  CHECK(w.controller->reconciled());
  CHECK(w.metrics.to_text().find("spillway_endpoint_slices 0\n") != std::string::npos);
  const auto left = w.slices();
  REQUIRE(left.size() == 1);
  CHECK(left[0]["metadata"]["name"] == "foreign");
}

TEST_CASE("a pod whose labels change is another Service's") {
  World w;
  w.start({w.record()});
  CHECK(w.slices().size() == 1);
  w.tell(w.record(), "other");
  CHECK(w.slices().empty());
  CHECK(w.pods.seen == 2);
}

TEST_CASE("Services come, change and go") {
  World w;
  w.start({w.record()});
  w.api.create(kServices, a_service("second"));
  w.r.run_for(1s);
  CHECK(w.slices().size() == 2);
  w.api.edit(std::string(kServices) + "/second", {{"spec", {{"selector", {{"app", "other"}}}}}});
  w.r.run_for(1s);
  CHECK(w.slices().size() == 1);
  w.api.edit(std::string(kServices) + "/web", {{"spec", {{"publishNotReadyAddresses", true}}}});
  model::PodRecord unready = w.record();
  unready.containers[0].claim.state = model::ContainerState::kWaiting;
  w.tell(unready);
  CHECK(w.endpoint()["conditions"]["ready"] == true);
  CHECK(w.endpoint()["conditions"]["serving"] == false);
  kube::KubeRequest remove;
  remove.method = net::Method::kDelete;
  remove.target = std::string(kServices) + "/web";
  w.api.exchange(remove);
  w.r.run_for(1s);
  CHECK(w.slices().empty());
}

TEST_CASE("who changes or deletes our slice has it repaired") {
  World w;
  w.start({w.record()});
  const std::string path = std::string(kSlices) + "/" + w.slices()[0]["metadata"]["name"].get<std::string>();
  w.api.edit(path, {{"endpoints", json::array()}});
  w.r.run_for(1s);
  CHECK(w.endpoint()["addresses"][0] == "203.0.113.1");
  w.api.edit(path, {{"metadata", {{"labels", {{"spillway.dev/installation", nullptr}}}}}});
  w.r.run_for(5s);
  CHECK(w.slices()[0]["metadata"]["labels"]["spillway.dev/installation"] == "main");
  kube::KubeRequest remove;
  remove.method = net::Method::kDelete;
  remove.target = path;
  w.api.exchange(remove);
  w.r.run_for(1s);
  CHECK(w.endpoint()["addresses"][0] == "203.0.113.1");
}

TEST_CASE("a write that somebody else's came before is made again on top of it") {
  World w;
  model::PodRecord record = w.record();
  w.start({record});
  const std::string path = std::string(kSlices) + "/" + w.slices()[0]["metadata"]["name"].get<std::string>();
  w.between.before_write = [&](const kube::KubeRequest& request) {
    w.between.before_write = nullptr;
    CHECK(request.method == net::Method::kPatch);
    w.api.edit(path, {{"metadata", {{"annotations", {{"team", "a"}}}}}});
  };
  remove(record);
  w.tell(record);
  CHECK(w.endpoint()["conditions"]["terminating"] == true);
  CHECK(w.slices()[0]["metadata"]["annotations"]["team"] == "a");
  CHECK(w.between.writes.size() == 3);
}

TEST_CASE("a lost answer makes no second slice, and an outage is caught up with") {
  World w;
  w.start();
  w.between.lose_answers = true;
  w.tell(w.record());
  CHECK(w.slices().size() == 1);
  w.between.lose_answers = false;
  w.r.run_for(1min);
  CHECK(w.slices().size() == 1);
  const size_t before = w.between.writes.size();
  CHECK(before == 1);
  w.between.refuse_writes = true;
  w.tell(w.record(2));
  w.r.run_for(1min);
  CHECK(w.slices().size() == 1);
  const size_t tries = w.between.writes.size() - before;
  CHECK(tries >= 5);
  CHECK(tries <= 15);
  w.between.refuse_writes = false;
  w.r.run_for(20s);
  CHECK(w.slices().size() == 2);
}

TEST_CASE("nothing is written without the lease") {
  World w;
  w.holds_lease = false;
  w.start({w.record()});
  w.r.run_for(1min);
  CHECK(w.between.writes.empty());
  w.holds_lease = true;
  w.r.run_for(1s);
  CHECK(w.slices().size() == 1);
}

TEST_CASE("a port that nobody publishes is told once, and only if it lasts") {
  World w;
  w.start({w.record(1, 9090)});
  CHECK(w.heard("EndpointPortUnreached") == 0);
  w.tell(w.record(1));
  w.r.run_for(5min);
  CHECK(w.heard("EndpointPortUnreached") == 0);
  w.tell(w.record(1, 9090));
  w.r.run_for(10min);
  CHECK(w.heard("EndpointPortUnreached") == 1);
  const auto events = w.api.list("/api/v1/namespaces/team-a/events");
  CHECK(events[0]["involvedObject"]["kind"] == "Service");
  CHECK(events[0]["count"] == 1);
  CHECK(events[0]["message"].get<std::string>().find("spillway.dev/public-ports: \"8080\"") != std::string::npos);
}

TEST_CASE("a Service without a selector, of another name, or without ports is nobody's of ours") {
  World w;
  for (const char* key : {"selector", "ports"}) {
    json without = a_service(std::string("without-") + key);
    without["spec"].erase(key);
    w.api.create(kServices, without);
  }
  json external = a_service("external");
  external["spec"]["type"] = "ExternalName";
  w.api.create(kServices, external);
  w.start({w.record()});
  CHECK(w.slices().size() == 1);
}
