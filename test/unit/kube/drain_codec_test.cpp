#include "vk-provider/kube/drain_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "vk-provider/kube/home_codec.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace kube = spillway::kube;
namespace model = spillway::model;
using nlohmann::json;

namespace {

json a_pod() {
  const json limits = {{"nvidia.com/gpu", "1"}};
  return {
      {"metadata",
       {{"uid", "u1"},
        {"name", "web-1"},
        {"namespace", "ns"},
        {"resourceVersion", "7"},
        {"creationTimestamp", "2026-11-29T20:00:00Z"},
        {"labels", {{"app", "web"}, {"pod-template-hash", "h1"}}},
        {"annotations", json::object()},
        {"ownerReferences",
         {{{"kind", "Other"}, {"name", "x"}, {"uid", "x"}},
          {{"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "rs"}, {"controller", true}}}}}},
      {"spec", {{"nodeName", "burst"}, {"containers", {{{"name", "main"}, {"resources", {{"limits", limits}}}}}}}},
      {"status",
       {{"phase", "Running"},
        {"conditions", {{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2026-11-29T20:01:00Z"}}}}}}};
}

model::HomePod decode(const json& pod) {
  auto decoded = kube::decode_home_pod(pod.dump());
  REQUIRE(decoded);
  return *decoded;
}

/// What a merge patch makes of an object.
json merged(json object, const std::string& patch) {
  object.merge_patch(json::parse(patch));
  return object;
}

}  // namespace

TEST_CASE("what a drain wants to know of a pod") {
  json pod = a_pod();
  pod["metadata"]["annotations"] = {
      {"state.spillway.dev/placement",
       R"({"v":1,"uid":"u1","provider":"p","offer":"o","gpus":1,"capacityType":"on-demand","pricePerHourMicros":2390000,)"
       R"("tag":"t","attempt":1})"},
      {"descheduler.alpha.kubernetes.io/evict", ""},
      {"descheduler.alpha.kubernetes.io/prefer-no-eviction", "x"},
      {"spillway.dev/do-not-drain", "true"}};
  const model::DrainFacts facts = decode(pod).drain;
  CHECK(facts.ns == "ns");
  CHECK(facts.name == "web-1");
  CHECK(facts.resource_version == "7");
  CHECK(facts.owner_kind == "ReplicaSet");
  CHECK(facts.owner_name == "web");
  CHECK(facts.owner_uid == "rs");
  CHECK(facts.ready);
  CHECK(facts.ready_since - facts.created == 1min);
  CHECK_FALSE(facts.pending);
  CHECK(facts.price == base::Money::from_micros(2390000));
  CHECK(facts.evict_anyway);
  CHECK(facts.rather_not);
  CHECK(facts.keep);
  CHECK_FALSE(facts.note);
}

TEST_CASE("a pod that says little") {
  json pod = a_pod();
  pod["metadata"].erase("ownerReferences");
  pod["metadata"]["annotations"]["spillway.dev/do-not-drain"] = "false";
  pod["status"] = {{"phase", "Pending"}};
  const model::DrainFacts facts = decode(pod).drain;
  CHECK(facts.owner_uid.empty());
  CHECK(facts.pending);
  CHECK_FALSE(facts.ready);
  CHECK_FALSE(facts.price);
  CHECK_FALSE(facts.keep);
}

TEST_CASE("a pod is taken from its ReplicaSet, read again, and given back") {
  const json before = a_pod();
  model::DetachNote note;
  note.hash = "h1";
  note.owner_name = "web";
  note.owner_uid = "rs";
  note.since = base::WallTime(20000 * 24h);
  const std::string patch = kube::encode_detach(decode(before), note);
  CHECK(json::parse(patch)["metadata"]["resourceVersion"] == "7");
  CHECK(json::parse(patch)["metadata"]["uid"] == "u1");
  const json detached = merged(before, patch);
  CHECK(detached["metadata"]["labels"] == json{{"app", "web"}});
  const model::HomePod read = decode(detached);
  CHECK(read.drain.draining == "h1");
  REQUIRE(read.drain.note);
  CHECK(read.drain.note->hash == "h1");
  CHECK(read.drain.note->owner_name == "web");
  CHECK(read.drain.note->owner_uid == "rs");
  CHECK(read.drain.note->since == note.since);
  CHECK(merged(detached, kube::encode_return(read)) == before);
}

TEST_CASE("a note that is not for this pod, or of another version, is none") {
  json pod = a_pod();
  json& annotations = pod["metadata"]["annotations"];
  annotations["spillway.dev/draining"] = "h1";
  annotations["state.spillway.dev/drain"] = R"({"v":1,"uid":"other","since":"2026-11-29T20:00:00Z"})";
  CHECK_FALSE(decode(pod).drain.note);
  CHECK(decode(pod).drain.draining == "h1");
  annotations["state.spillway.dev/drain"] = R"({"v":2,"uid":"u1","since":"2026-11-29T20:00:00Z"})";
  CHECK_FALSE(decode(pod).drain.note);
  annotations["state.spillway.dev/drain"] = "rubbish";
  CHECK_FALSE(decode(pod).drain.note);
}

TEST_CASE("an eviction is of one pod, by its UID") {
  const json body = json::parse(kube::encode_eviction(decode(a_pod())));
  CHECK(body == json{{"apiVersion", "policy/v1"},
                     {"kind", "Eviction"},
                     {"metadata", {{"namespace", "ns"}, {"name", "web-1"}}},
                     {"deleteOptions", {{"preconditions", {{"uid", "u1"}}}}}});
}

TEST_CASE("budgets and their selectors") {
  const json labels = {{"matchLabels", {{"app", "web"}}},
                       {"matchExpressions", {{{"key", "tier"}, {"operator", "NotIn"}, {"values", {"a", "b"}}}}}};
  json budget = {{"metadata", {{"namespace", "ns"}, {"name", "b"}}}, {"spec", {{"selector", labels}}}};
  const auto read = kube::decode_budget(budget.dump());
  REQUIRE(read);
  CHECK(read->ns == "ns");
  CHECK(read->name == "b");
  CHECK_FALSE(read->selects_none);
  REQUIRE(read->selector.size() == 2);
  CHECK(read->selector[0].op == model::NodeRequirement::Operator::kIn);
  CHECK(read->selector[0].values == std::vector<std::string>{"web"});
  CHECK(read->selector[1].op == model::NodeRequirement::Operator::kNotIn);
  CHECK(read->selector[1].values == std::vector<std::string>{"a", "b"});
  budget["spec"]["selector"] = json::object();
  CHECK_FALSE(kube::decode_budget(budget.dump())->selects_none);
  budget["spec"] = json::object();
  CHECK(kube::decode_budget(budget.dump())->selects_none);
  CHECK_FALSE(kube::decode_budget("{}"));
  CHECK(kube::decode_disruptions_allowed("{}") == 0);
  CHECK(kube::decode_disruptions_allowed(R"({"status":{"disruptionsAllowed":2}})") == 2);
}
