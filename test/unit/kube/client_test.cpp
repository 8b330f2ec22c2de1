#include "vk-provider/kube/client.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"

namespace spillway::kube {
namespace {

using base::Error;
using base::ErrorKind;
using Json = nlohmann::json;
constexpr const char* kPartial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

struct World {
  base::Deadline soon() const { return reactor.timers.now() + std::chrono::seconds(5); }
  Json body(size_t i) const { return Json::parse(api.requests.at(i).body); }

  test::VirtualReactor reactor;
  test::ScriptedKubeApi api{reactor.timers};
  Client client{api};
};

model::PodKey a_key() {
  model::PodKey key;
  key.ns = "team-a";
  key.name = "p";
  key.uid = base::PodUid("u-1");
  return key;
}

TEST_CASE("a status patch names the sub-resource, asks for a small answer and yields the new version") {
  World w;
  w.api.answer(R"({"kind":"PartialObjectMetadata","metadata":{"name":"p","resourceVersion":"99"}})");
  PodStatusPatch patch;
  patch.key = a_key();
  patch.status.phase = model::PodPhase::kRunning;
  const auto written = w.reactor.run(w.client.patch_pod_status(patch, w.soon()));
  REQUIRE(written.has_value());
  CHECK(*written == "99");
  const KubeRequest& request = w.api.requests.at(0);
  CHECK(request.method == net::Method::kPatch);
  CHECK(request.target == "/api/v1/namespaces/team-a/pods/p/status");
  CHECK(request.content_type == "application/strategic-merge-patch+json");
  CHECK(request.accept == kPartial);
  CHECK(w.body(0) == Json::parse(R"({"metadata":{"uid":"u-1"},"status":{"phase":"Running"}})"));
}

TEST_CASE("a status patch to another pod of the same name is a conflict, however the server says it") {
  World w;
  w.api.fail(Error(ErrorKind::kInvalid, "Pod \"p\" is invalid: metadata.uid: Invalid value: field is immutable"));
  w.api.fail(Error(ErrorKind::kInvalid, "Pod \"p\" is invalid: status.podIPs: more than one"));
  w.api.answer("{}");
  PodStatusPatch patch;
  patch.key = a_key();
  CHECK(w.reactor.run(w.client.patch_pod_status(patch, w.soon())).error().kind == ErrorKind::kConflict);
  CHECK(w.reactor.run(w.client.patch_pod_status(patch, w.soon())).error().kind == ErrorKind::kInvalid);
  CHECK(w.reactor.run(w.client.patch_pod_status(patch, w.soon())).error().message ==
        "the API server's answer has no metadata.resourceVersion");
}

TEST_CASE("a pod is deleted at once and only if it is the one") {
  World w;
  w.api.answer("{}");
  CHECK(w.reactor.run(w.client.delete_pod(a_key(), w.soon())).has_value());
  CHECK(w.api.requests.at(0).method == net::Method::kDelete);
  CHECK(w.api.requests.at(0).target == "/api/v1/namespaces/team-a/pods/p");
  CHECK(w.body(0) == Json::parse(R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,
                                     "preconditions":{"uid":"u-1"}})"));
}

TEST_CASE("ConfigMaps and Secrets are read byte for byte") {
  World w;
  w.api.answer(R"({"kind":"ConfigMap","data":{"a":"x\ny","b.c-d":"","e":"\u00e4"},"binaryData":{"f":"AAA="}})");
  w.api.answer(R"({"kind":"Secret","data":{"token":"c2VjcmV0AA==","empty":""}})");
  w.api.answer(R"({"kind":"ConfigMap"})");
  const auto map = w.reactor.run(w.client.get_config_map("team-a", "cfg", w.soon()));
  REQUIRE(map.has_value());
  CHECK(map->data == std::map<std::string, std::string>{{"a", "x\ny"}, {"b.c-d", ""}, {"e", "\xC3\xA4"}});
  const auto secret = w.reactor.run(w.client.get_secret("team-a", "keys", w.soon()));
  REQUIRE(secret.has_value());
  CHECK(secret->data == std::map<std::string, std::string>{{"token", std::string("secret\0", 7)}, {"empty", ""}});
  CHECK(w.reactor.run(w.client.get_config_map("team-a", "none", w.soon()))->data.empty());
  CHECK(w.api.requests.at(0).target == "/api/v1/namespaces/team-a/configmaps/cfg");
  CHECK(w.api.requests.at(1).target == "/api/v1/namespaces/team-a/secrets/keys");
}

TEST_CASE("a Secret that cannot be read says where, never what") {
  World w;
  w.api.answer(R"({"kind":"Secret","data":{"token":"no base64, but a canary"}})");
  const auto secret = w.reactor.run(w.client.get_secret("team-a", "keys", w.soon()));
  REQUIRE_FALSE(secret.has_value());
  CHECK(secret.error().message.find("token") != std::string::npos);
  CHECK(secret.error().message.find("canary") == std::string::npos);
}

TEST_CASE("an answer that was cut is no empty ConfigMap") {
  World w;
  for (const char* cut : {"", "{\"kind\":\"ConfigMap\",\"da", R"({"data":{"a":"x")", R"({"data":{"a" "x"}})", "[]"}) {
    CAPTURE(cut);
    w.api.answer(cut);
    CHECK_FALSE(w.reactor.run(w.client.get_config_map("team-a", "cfg", w.soon())).has_value());
  }
}

TEST_CASE("a name that a pod's author made up leads nowhere else") {
  World w;
  w.api.answer("{\"data\":{}}");
  CHECK(w.reactor.run(w.client.get_config_map("team-a", "../secrets/keys?x=#1", w.soon())).has_value());
  CHECK(w.api.requests.at(0).target == "/api/v1/namespaces/team-a/configmaps/..%2Fsecrets%2Fkeys%3Fx%3D%231");
  for (const char* name : {"..", ".", ""}) {
    CHECK(w.reactor.run(w.client.get_secret("team-a", name, w.soon())).error().kind == ErrorKind::kInvalid);
  }
  CHECK(w.api.requests.size() == 1);
}

TEST_CASE("a lease is created, renewed with its version, and read back") {
  World w;
  const std::string answer = R"({"kind":"Lease","metadata":{"name":"burst","namespace":"kube-node-lease",
    "resourceVersion":"5","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"burst","uid":"n-1"}]},
    "spec":{"holderIdentity":"burst","leaseDurationSeconds":40,"acquireTime":"2026-11-29T00:00:00.000001Z",
    "renewTime":"2026-11-29T00:00:10.000000Z","leaseTransitions":3}})";
  w.api.answer(answer);
  w.api.answer(answer);
  Lease lease;
  lease.ns = "kube-node-lease";
  lease.name = "burst";
  lease.holder = "burst";
  lease.duration = std::chrono::seconds(40);
  lease.renew_time = w.reactor.timers.wall();
  lease.owner_node_name = "burst";
  lease.owner_node_uid = "n-1";
  auto stands = w.reactor.run(w.client.put_lease(lease, w.soon()));
  REQUIRE(stands.has_value());
  CHECK(stands->resource_version == "5");
  CHECK(stands->holder == "burst");
  CHECK(stands->duration == std::chrono::seconds(40));
  CHECK(stands->transitions == 3);
  CHECK(stands->acquire_time == base::from_rfc3339("2026-11-29T00:00:00.000001Z"));
  CHECK(stands->owner_node_uid == "n-1");
  CHECK(w.api.requests.at(0).method == net::Method::kPost);
  CHECK(w.api.requests.at(0).target == "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases");
  CHECK(w.body(0) == Json::parse(R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1",
    "metadata":{"name":"burst","namespace":"kube-node-lease",
                "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"burst","uid":"n-1"}]},
    "spec":{"holderIdentity":"burst","leaseDurationSeconds":40,"renewTime":"2026-11-29T00:00:00.000000Z",
            "leaseTransitions":0}})"));

  CHECK(w.reactor.run(w.client.put_lease(*stands, w.soon())).has_value());
  CHECK(w.api.requests.at(1).method == net::Method::kPut);
  CHECK(w.api.requests.at(1).target == "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/burst");
  CHECK(w.body(1)["metadata"]["resourceVersion"] == "5");
}

TEST_CASE("a released lease has no holder, a cut answer is no lease") {
  World w;
  w.api.answer(R"({"metadata":{"name":"l","namespace":"s","resourceVersion":"1"},"spec":{}})");
  w.api.answer(R"({"kind":"Status"})");
  const auto lease = w.reactor.run(w.client.get_lease("s", "l", w.soon()));
  REQUIRE(lease.has_value());
  CHECK(lease->holder.empty());
  CHECK_FALSE(lease->renew_time);
  CHECK_FALSE(w.reactor.run(w.client.get_lease("s", "l", w.soon())).has_value());
}

TEST_CASE("the cluster is known by the UID of kube-system") {
  World w;
  w.api.answer(R"({"kind":"Namespace","metadata":{"name":"kube-system","uid":"c-1"}})");
  w.api.answer("{}");
  CHECK(w.reactor.run(w.client.get_cluster_uid(w.soon())).value() == "c-1");
  CHECK_FALSE(w.reactor.run(w.client.get_cluster_uid(w.soon())).has_value());
  CHECK(w.api.requests.at(0).target == "/api/v1/namespaces/kube-system");
}

TEST_CASE("the live look at all pods is complete or it is nothing") {
  World w;
  const auto page = [](const std::string& items, const std::string& next) {
    return R"({"metadata":{"resourceVersion":"7","continue":")" + next + R"("},"items":[)" + items + "]}";
  };
  const std::string a = R"({"metadata":{"uid":"a"}})";
  const std::string b = R"({"metadata":{"uid":"b"}})";
  const std::string two_without_comma = R"({"metadata":{"uid":"a"}} {"metadata":{"uid":"b"}})";
  w.api.answer(page(a, "x/y"));
  w.api.answer(page(b, ""));
  CHECK(w.reactor.run(w.client.list_pod_uids(w.soon())).value() == std::unordered_set<std::string>{"a", "b"});
  CHECK(w.api.requests.at(1).target.ends_with("&continue=x%2Fy"));
  for (const std::string& cut : {std::string("{}"), std::string(), page(a, "").substr(0, 60),
                                 page(two_without_comma, ""), page(R"({"metadata":{}})", "")}) {
    CAPTURE(cut);
    w.api.answer(cut);
    CHECK_FALSE(w.reactor.run(w.client.list_pod_uids(w.soon())).has_value());
  }
}

}  // namespace
}  // namespace spillway::kube
