#include "vk-provider/control/node_controller.hpp"

#include <catch2/catch.hpp>

#include "test/support/fake_node_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
namespace base = spillway::base;
using base::ErrorKind;
using nlohmann::json;
using spillway::control::NodeController;
using spillway::control::NodeSettings;
using spillway::test::FakeNodeApi;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kNode = "/api/v1/nodes/burst";

NodeSettings a_profile() {
  NodeSettings profile;
  profile.name = "burst";
  profile.labels = {{"nvidia.com/gpu.product", "H100"}};
  profile.capacity = {{"cpu", "8"}, {"memory", "64Gi"}, {"pods", "100"}, {"nvidia.com/gpu", "8"}};
  profile.internal_ip = "10.0.0.1";
  profile.kubelet_port = 10250;
  profile.installation = "main";
  profile.version = "0.1.0";
  return profile;
}

/// One run of the daemon's part that keeps a node.
struct Run {
  Run(VirtualReactor& reactor, FakeNodeApi& api, FakeNodeApi& lease_api, NodeSettings profile = a_profile())
      : r(reactor),
        controller(std::move(profile), api, lease_api, reactor.timers, random, metrics, nullptr),
        group(reactor.ctx.get_executor()) {
    group.spawn(controller.run());
  }
  ~Run() { r.run(group.stop()); }

  VirtualReactor& r;
  base::SeededRandom random{7};
  base::Metrics metrics;
  NodeController controller;
  async::TaskGroup group;
};

struct Fixture {
  const json& node() const { return api.node("burst"); }
  json condition(const std::string& type) const {
    for (const json& condition : node()["status"]["conditions"]) {
      if (condition["type"] == type) return condition;
    }
    return nullptr;
  }
  bool has_taint(const std::string& key) const {
    for (const json& taint : node()["spec"]["taints"]) {
      if (taint["key"] == key) return true;
    }
    return false;
  }
  bool has_ours() const { return has_taint("virtual-kubelet.io/provider"); }
  size_t writes() const {
    return api.count("POST", "/api/v1/nodes") + api.count("PATCH", "/api/v1/nodes") + api.count("PUT", "/api/v1/nodes");
  }

  VirtualReactor r;
  FakeNodeApi api{r.timers};
  FakeNodeApi leases{r.timers};
};

}  // namespace

TEST_CASE("a node with a gate is created closed, and the gate's taint is nobody else's business") {
  Fixture f;
  NodeSettings profile = a_profile();
  profile.gated = true;
  Run run(f.r, f.api, f.leases, profile);
  f.r.run_for(1min);
  CHECK(f.has_ours());
  CHECK(f.has_taint("spillway.dev/home-has-capacity"));
  f.api.edit_node("burst", [](json& node) { node["spec"]["taints"].erase(1); });
  f.r.run_for(1min);
  CHECK_FALSE(f.has_taint("spillway.dev/home-has-capacity"));
}

TEST_CASE("a node is created with its taint and labels in the first write, and its status follows") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  const auto posts = f.api.requests("POST", "/api/v1/nodes");
  REQUIRE(posts.size() == 1);
  const json first = json::parse(posts[0].body);
  CHECK(first["spec"]["taints"][0]["key"] == "virtual-kubelet.io/provider");
  CHECK(first["metadata"]["labels"]["spillway.dev/installation"] == "main");
  CHECK(first["metadata"]["labels"]["nvidia.com/gpu.product"] == "H100");

  CHECK(run.controller.registered());
  CHECK(run.controller.problem().empty());
  CHECK(f.condition("Ready")["status"] == "True");
  CHECK(f.node()["status"]["capacity"]["nvidia.com/gpu"] == "8");
  CHECK(f.node()["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3-spillway.0.1.0");
  CHECK(f.node()["status"]["addresses"] == json::parse(R"([{"type": "InternalIP", "address": "10.0.0.1"}])"));
  CHECK(f.has_taint("node.kubernetes.io/not-ready"));  // of another controller
  CHECK(f.writes() == 3);                              // node, status, addresses
  CHECK(f.leases.lease("burst")["metadata"]["ownerReferences"][0]["uid"] == f.node()["metadata"]["uid"]);
  CHECK_FALSE(run.controller.last_recreated());
}

TEST_CASE("at rest there is one report every five minutes, and leases go over their own connection") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  f.api.forget_requests();
  f.leases.forget_requests();
  f.r.run_for(1h);
  CHECK(f.writes() == 12);
  CHECK(f.api.count("PATCH", "/api/v1/nodes/burst/status?") == 12);
  CHECK(f.api.count("GET", "/api/v1/nodes/") == 0);
  CHECK(f.api.count("GET", "/version") == 0);
  CHECK(f.leases.count("PUT", "/apis/coordination.k8s.io/") > 340);
  CHECK(f.leases.count("GET", "/api/v1/") == 0);
  CHECK(f.condition("Ready")["lastTransitionTime"] == "2026-11-29T00:00:00Z");
  CHECK(f.condition("Ready")["lastHeartbeatTime"] > "2026-11-29T00:55:00Z");
}

TEST_CASE("a busy or dead connection for everything else does not delay the lease") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  f.api.faults.push_back({"PATCH", kNode, base::Error(ErrorKind::kDeadline, "busy"), 100000});
  f.api.delay = 9s;
  f.leases.forget_requests();
  f.r.run_for(10min);
  CHECK(f.leases.count("PUT", "/apis/coordination.k8s.io/") >= 58);
}

TEST_CASE("a restart adopts the node: Ready does not flap, and its transition time stays") {
  Fixture f;
  {
    Run run(f.r, f.api, f.leases);
    f.r.run_for(1s);
  }
  const std::string uid = f.node()["metadata"]["uid"];
  f.r.run_for(30s);
  f.api.forget_requests();
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  CHECK(run.controller.registered());
  CHECK(f.node()["metadata"]["uid"] == uid);
  CHECK(f.api.count("POST", "/api/v1/nodes") == 0);
  CHECK(f.writes() == 1);  // the first report
  CHECK(f.condition("Ready")["status"] == "True");
  CHECK(f.condition("Ready")["lastTransitionTime"] == "2026-11-29T00:00:00Z");
  CHECK_FALSE(run.controller.last_recreated());
}

TEST_CASE("a stop deletes nothing") {
  Fixture f;
  {
    Run run(f.r, f.api, f.leases);
    f.r.run_for(1s);
  }
  CHECK(f.api.has_node("burst"));
  CHECK(f.leases.has_lease("burst"));
  CHECK(f.api.count("DELETE", "/") == 0);
}

TEST_CASE("a node that does not belong to this installation is never written, until it is gone") {
  for (const char* labels : {R"({})", R"({"spillway.dev/installation": "other"})", R"({"type": "virtual-kubelet"})"}) {
    INFO(labels);
    Fixture f;
    f.api.put_node(
        {{"metadata", {{"name", "burst"}, {"labels", json::parse(labels)}}}, {"spec", {{"taints", json::array()}}}});
    Run run(f.r, f.api, f.leases);
    f.r.run_for(1h);
    CHECK(f.writes() == 0);
    CHECK_FALSE(run.controller.registered());
    CHECK(run.controller.problem().find("a Node burst exists that is not of this installation") == 0);
    CHECK_FALSE(f.leases.has_lease("burst"));

    f.api.delete_node("burst");
    f.r.run_for(1s);
    CHECK(run.controller.registered());
    CHECK(run.controller.problem().empty());
    CHECK(f.leases.has_lease("burst"));
  }
}

TEST_CASE("a node that appears between the list and the create is looked at before it is adopted") {
  Fixture f;
  f.api.faults.push_back({"POST", "/api/v1/nodes", base::Error(ErrorKind::kConflict, "already exists"), 1, true});
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  CHECK(f.api.count("GET", kNode) >= 1);
  CHECK(run.controller.registered());
}

TEST_CASE("a create whose answer was lost is not repeated") {
  Fixture f;
  f.api.faults.push_back({"POST", "/api/v1/nodes", base::Error(ErrorKind::kUnknownOutcome, "lost"), 1, true});
  Run run(f.r, f.api, f.leases);
  f.r.run_for(30s);
  CHECK(run.controller.registered());
  CHECK(f.api.count("POST", "/api/v1/nodes") == 1);
}

TEST_CASE("a node that is deleted comes back at once, with taint, labels, status and a lease of its own") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(10s);
  const std::string before = f.node()["metadata"]["uid"];
  f.api.delete_node("burst");
  const base::TimePoint deleted_at = f.r.timers.now();
  f.r.settle();
  REQUIRE(f.api.has_node("burst"));
  CHECK(f.node()["metadata"]["uid"] != before);
  CHECK(f.has_ours());
  CHECK(f.condition("Ready")["status"] == "True");
  CHECK(f.node()["status"]["addresses"].size() == 1);
  CHECK(run.controller.registered());
  CHECK(run.controller.last_recreated() == deleted_at);
  CHECK(f.leases.lease("burst")["metadata"]["ownerReferences"][0]["uid"] == f.node()["metadata"]["uid"]);
}

TEST_CASE("a node that is deleted while a write to it is under way comes back") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  f.api.delay = 2s;
  run.controller.set_providers_reachable(false, "ProvidersUnreachable", "docker: no answer");
  f.r.run_for(1s);
  f.api.delete_node("burst");
  f.r.run_for(30s);
  REQUIRE(f.api.has_node("burst"));
  CHECK(run.controller.registered());
  CHECK(f.condition("SpillwayProvidersReachable")["status"] == "False");
}

TEST_CASE("what somebody takes away or changes of ours is restored, in one write") {
  struct Row {
    const char* name;
    void (*damage)(json&);
  };
  const Row rows[] = {
      {"taint", [](json& n) { n["spec"]["taints"] = json::array(); }},
      {"label", [](json& n) { n["metadata"]["labels"].erase("nvidia.com/gpu.product"); }},
      {"installation label", [](json& n) { n["metadata"]["labels"].erase("spillway.dev/installation"); }},
      {"capacity", [](json& n) { n["status"]["capacity"]["nvidia.com/gpu"] = "1"; }},
      {"conditions", [](json& n) { n["status"]["conditions"] = json::array(); }},
      {"Ready",
       [](json& n) {
         for (json& c : n["status"]["conditions"]) {
           if (c["type"] == "Ready") c["status"] = "Unknown";
         }
       }},
      {"addresses", [](json& n) { n["status"]["addresses"] = json::array(); }},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Fixture f;
    Run run(f.r, f.api, f.leases);
    f.r.run_for(1s);
    f.api.forget_requests();
    f.api.edit_node("burst", row.damage);
    f.r.settle();
    CHECK(f.has_ours());
    CHECK(f.node()["metadata"]["labels"]["nvidia.com/gpu.product"] == "H100");
    CHECK(f.node()["metadata"]["labels"]["spillway.dev/installation"] == "main");
    CHECK(f.node()["status"]["capacity"]["nvidia.com/gpu"] == "8");
    CHECK(f.condition("Ready")["status"] == "True");
    CHECK(f.node()["status"]["addresses"].size() == 1);
    CHECK(f.writes() == 1);
  }
}

TEST_CASE("what others write is left alone, and survives our own writes") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  f.api.forget_requests();
  f.api.edit_node("burst", [](json& n) {
    n["spec"]["taints"].push_back({{"key", "team"}, {"value", "ml"}, {"effect", "NoSchedule"}});
    n["metadata"]["labels"]["team"] = "ml";
    n["metadata"]["annotations"]["note"] = "hands off";
    n["status"]["conditions"].push_back({{"type", "KernelDeadlock"}, {"status", "False"}});
    n["status"]["capacity"]["example.com/dongle"] = "1";
  });
  f.r.settle();
  CHECK(f.writes() == 0);
  f.api.edit_node("burst", [](json& n) {
    std::erase_if(n["spec"]["taints"].get_ref<json::array_t&>(),
                  [](const json& t) { return t["key"] == "virtual-kubelet.io/provider"; });
    n["metadata"]["labels"].erase("type");
  });
  f.r.run_for(6min);
  CHECK(f.has_ours());
  CHECK(f.has_taint("team"));
  CHECK(f.has_taint("node.kubernetes.io/not-ready"));
  CHECK(f.node()["metadata"]["labels"]["team"] == "ml");
  CHECK(f.node()["metadata"]["annotations"]["note"] == "hands off");
  CHECK_FALSE(f.condition("KernelDeadlock").is_null());
  CHECK(f.node()["status"]["capacity"]["example.com/dongle"] == "1");
}

TEST_CASE("a taint that somebody adds at the same moment is not lost") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  f.api.edit_node("burst", [](json& n) { n["spec"]["taints"] = json::array(); });
  f.api.delay = 1s;  // our write is on its way when the other one comes
  f.r.run_for(500ms);
  f.api.edit_node("burst", [](json& n) {
    n["spec"]["taints"].push_back({{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}});
  });
  f.r.run_for(10s);
  CHECK(f.has_taint("node.kubernetes.io/unreachable"));
  CHECK(f.has_ours());
}

TEST_CASE("an outage of the providers is a condition, and the node stays Ready") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1min);
  f.api.forget_requests();
  const std::string broke_at = base::to_rfc3339(f.r.timers.wall());
  run.controller.set_providers_reachable(false, "ProvidersUnreachable", "docker: connection refused");
  f.r.settle();
  const json condition = f.condition("SpillwayProvidersReachable");
  CHECK(condition["status"] == "False");
  CHECK(condition["reason"] == "ProvidersUnreachable");
  CHECK(condition["message"] == "docker: connection refused");
  CHECK(condition["lastTransitionTime"] == broke_at);
  CHECK(f.condition("Ready")["status"] == "True");
  CHECK(f.condition("Ready")["lastTransitionTime"] == "2026-11-29T00:00:00Z");
  CHECK(f.writes() == 1);
  run.controller.set_providers_reachable(false, "ProvidersUnreachable", "docker: connection refused");
  f.r.settle();
  CHECK(f.writes() == 1);
  f.r.run_for(1min);
  const std::string healed_at = base::to_rfc3339(f.r.timers.wall());
  run.controller.set_providers_reachable(true, "ProvidersReachable", "all providers answer");
  f.r.settle();
  CHECK(f.condition("SpillwayProvidersReachable")["status"] == "True");
  CHECK(f.condition("SpillwayProvidersReachable")["lastTransitionTime"] == healed_at);
}

TEST_CASE("labels of an earlier configuration go away at the next start, those of others stay") {
  Fixture f;
  {
    Run run(f.r, f.api, f.leases);
    f.r.run_for(1s);
  }
  f.api.edit_node("burst", [](json& n) { n["metadata"]["labels"]["team"] = "ml"; });
  NodeSettings profile = a_profile();
  profile.labels = {{"example.com/new", "1"}};
  Run run(f.r, f.api, f.leases, profile);
  f.r.run_for(1s);
  const json& labels = f.node()["metadata"]["labels"];
  CHECK_FALSE(labels.contains("nvidia.com/gpu.product"));
  CHECK(labels["example.com/new"] == "1");
  CHECK(labels["team"] == "ml");
  f.api.forget_requests();
  f.r.run_for(4min);
  CHECK(f.writes() == 0);
}

TEST_CASE("somebody who keeps undoing what we write is answered more and more slowly, not in a storm") {
  Fixture f;
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  f.api.forget_requests();
  for (int i = 0; i < 600; ++i) {
    if (f.has_ours()) f.api.edit_node("burst", [](json& n) { n["spec"]["taints"] = json::array(); });
    f.r.run_for(1s);
  }
  CHECK(f.writes() < 30);
  f.r.run_for(2min);
  CHECK(f.has_ours());
}

TEST_CASE("an API server that is away is asked again without a storm, and the node comes when it answers") {
  for (const ErrorKind kind : {ErrorKind::kUnavailable, ErrorKind::kPermission, ErrorKind::kUnauthenticated}) {
    INFO(base::to_string(kind));
    Fixture f;
    f.api.faults.push_back({"POST", "/api/v1/nodes", base::Error(kind, "planned"), 12});
    Run run(f.r, f.api, f.leases);
    f.r.run_for(10s);
    CHECK_FALSE(run.controller.registered());
    CHECK(run.controller.problem().find("cannot create the node: planned") == 0);
    f.r.run_for(5min);
    CHECK(run.controller.registered());
    CHECK(run.controller.problem().empty());
    CHECK(f.api.count("POST", "/api/v1/nodes") == 13);
  }
}

TEST_CASE("a server that does not tell its version gets a node all the same") {
  Fixture f;
  f.api.faults.push_back({"GET", "/version", base::Error(ErrorKind::kPermission, "no"), 1});
  Run run(f.r, f.api, f.leases);
  f.r.run_for(1s);
  CHECK(run.controller.registered());
  CHECK(f.node()["status"]["nodeInfo"]["kubeletVersion"] == "v1.30.0-spillway.0.1.0");
}

TEST_CASE("two profiles in one process are two nodes with two leases") {
  Fixture f;
  NodeSettings second = a_profile();
  second.name = "burst-2";
  Run one(f.r, f.api, f.leases);
  Run two(f.r, f.api, f.leases, second);
  f.r.run_for(1min);
  CHECK(one.controller.registered());
  CHECK(two.controller.registered());
  CHECK(f.leases.has_lease("burst"));
  CHECK(f.leases.has_lease("burst-2"));
  f.api.delete_node("burst-2");
  f.r.settle();
  CHECK(f.api.has_node("burst-2"));
  CHECK_FALSE(one.controller.last_recreated());
}
