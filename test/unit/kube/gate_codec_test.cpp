#include "vk-provider/kube/gate_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

namespace base = spillway::base;
namespace kube = spillway::kube;
using nlohmann::json;

namespace {

constexpr const char* kForeign =
    R"({"key": "team", "futureField":{"a":[1,2.50]}, "value":"a\u002fb","effect":"NoSchedule","timeAdded":"2026-11-29T00:00:00Z"})";

std::string node_with(const std::string& taints) {
  return R"({"metadata":{"name":"burst","uid":"u","resourceVersion":"12","labels":{"spillway.dev/installation":"main"},
      "annotations":{"spillway.dev/gate":"open","spillway.dev/gate-until":"2026-11-29T01:00:00Z"}},
      "spec":{"taints":[)" +
         taints + R"(]},"status":{"conditions":[{"type":"Ready","status":"True"},
      {"type":"SpillwayGate","status":"True","reason":"Need","message":"m","lastTransitionTime":"2026-11-29T00:30:00Z"}]}})";
}

}  // namespace

TEST_CASE("a virtual node as the gate sees it") {
  const auto node = kube::decode_gate_node(node_with(kForeign));
  REQUIRE(node);
  CHECK(node->name == "burst");
  CHECK(node->uid == "u");
  CHECK(node->resource_version == "12");
  CHECK(node->installation == "main");
  CHECK(node->order == "open");
  CHECK(node->order_until == "2026-11-29T01:00:00Z");
  CHECK(node->gate_status == "True");
  CHECK(node->gate_reason == "Need");
  CHECK(node->gate_message == "m");
  CHECK(node->gate_since == base::from_rfc3339("2026-11-29T00:30:00Z"));
  CHECK_FALSE(kube::decode_gate_node(R"({"metadata":{"name":"n"}})").has_value());
  CHECK_FALSE(kube::decode_gate_node(node_with(R"({"key":"a")")).has_value());
}

TEST_CASE("taints of others stay byte for byte and in their order") {
  const kube::RawTaint ours = kube::make_taint("spillway.dev/home-has-capacity", "NoSchedule");
  const auto node = kube::decode_gate_node(
      node_with(std::string(kForeign) + "," + ours.json + R"(,{"key":"z","effect":"NoExecute"})"));
  REQUIRE(node);
  CHECK(node->has_taint(ours));
  const auto without = kube::replace_taints(node->taints, {ours}, {});
  CHECK(kube::encode_gate_taints(*node, without) ==
        R"({"metadata":{"uid":"u","resourceVersion":"12"},"spec":{"taints":[)" + std::string(kForeign) +
            R"(,{"key":"z","effect":"NoExecute"}]}})");
  const auto again = kube::replace_taints(without, {}, {ours});
  CHECK(again.size() == 3);
  CHECK(again.back() == ours);
  CHECK(kube::replace_taints(again, {}, {ours}) == again);
}

TEST_CASE("a taint is told by key and effect") {
  const kube::RawTaint hard = kube::make_taint("a", "NoSchedule");
  const kube::RawTaint soft = kube::make_taint("a", "PreferNoSchedule");
  CHECK(kube::replace_taints({hard}, {soft}, {soft}).size() == 2);
}

TEST_CASE("the condition is applied alone") {
  const auto node = kube::decode_gate_node(node_with(""));
  REQUIRE(node);
  kube::GateCondition condition;
  condition.open = true;
  condition.reason = "Need";
  condition.message = "open: \"why\"";
  condition.since = *base::from_rfc3339("2026-11-29T00:30:00Z");
  condition.now = *base::from_rfc3339("2026-11-29T00:31:00Z");
  const json body = json::parse(kube::encode_gate_condition(*node, condition));
  CHECK(body["metadata"] == json({{"name", "burst"}, {"uid", "u"}}));
  CHECK(body["status"] == json({{"conditions",
                                 {{{"type", "SpillwayGate"},
                                   {"status", "True"},
                                   {"reason", "Need"},
                                   {"message", "open: \"why\""},
                                   {"lastHeartbeatTime", "2026-11-29T00:31:00Z"},
                                   {"lastTransitionTime", "2026-11-29T00:30:00Z"}}}}}));
}
