#include "vk-provider/core/node_match.hpp"

#include <catch2/catch.hpp>

namespace core = spillway::core;
namespace model = spillway::model;
using Operator = model::NodeRequirement::Operator;
using Match = model::Toleration::Operator;

namespace {

model::Toleration toleration(std::string key, Match op, std::string value, std::string effect) {
  model::Toleration out;
  out.key = std::move(key);
  out.op = op;
  out.value = std::move(value);
  out.effect = std::move(effect);
  return out;
}

model::NodeRequirement requirement(std::string key, Operator op, std::vector<std::string> values, bool field = false) {
  model::NodeRequirement out;
  out.key = std::move(key);
  out.op = op;
  out.values = std::move(values);
  out.of_field = field;
  return out;
}

bool meets(const model::NodeRequirement& wanted) {
  model::HomePod pod;
  pod.has_node_terms = true;
  pod.node_terms = {{wanted}};
  return core::fits_node(pod, "burst", {{"gpu", "h100"}, {"memory", "80"}});
}

}  // namespace

TEST_CASE("a toleration tolerates as the scheduler says") {
  const model::Taint taint("a", "b", "NoSchedule");
  CHECK(core::tolerates(toleration("a", Match::kEqual, "b", "NoSchedule"), taint));
  CHECK(core::tolerates(toleration("a", Match::kEqual, "b", ""), taint));
  CHECK_FALSE(core::tolerates(toleration("a", Match::kEqual, "c", ""), taint));
  CHECK_FALSE(core::tolerates(toleration("a", Match::kEqual, "b", "NoExecute"), taint));
  CHECK(core::tolerates(toleration("a", Match::kExists, "", ""), taint));
  CHECK_FALSE(core::tolerates(toleration("b", Match::kExists, "", ""), taint));
  CHECK(core::tolerates(toleration("", Match::kExists, "", ""), taint));
  CHECK_FALSE(core::tolerates(toleration("", Match::kExists, "", "NoExecute"), taint));
  CHECK_FALSE(core::tolerates(toleration("", Match::kEqual, "", ""), taint));
}

TEST_CASE("a required node affinity matches as the scheduler says") {
  CHECK(meets(requirement("gpu", Operator::kIn, {"l4", "h100"})));
  CHECK_FALSE(meets(requirement("gpu", Operator::kIn, {"l4"})));
  CHECK_FALSE(meets(requirement("other", Operator::kIn, {"l4"})));
  CHECK(meets(requirement("gpu", Operator::kNotIn, {"l4"})));
  CHECK_FALSE(meets(requirement("gpu", Operator::kNotIn, {"h100"})));
  CHECK(meets(requirement("other", Operator::kNotIn, {"h100"})));
  CHECK(meets(requirement("gpu", Operator::kExists, {})));
  CHECK_FALSE(meets(requirement("gpu", Operator::kDoesNotExist, {})));
  CHECK(meets(requirement("memory", Operator::kGt, {"79"})));
  CHECK_FALSE(meets(requirement("memory", Operator::kGt, {"80"})));
  CHECK(meets(requirement("memory", Operator::kLt, {"81"})));
  CHECK_FALSE(meets(requirement("gpu", Operator::kLt, {"81"})));
  CHECK(meets(requirement("metadata.name", Operator::kIn, {"burst"}, true)));
  CHECK_FALSE(meets(requirement("metadata.name", Operator::kIn, {"home"}, true)));
  CHECK_FALSE(meets(requirement("gpu", Operator::kUnknown, {})));
}

TEST_CASE("one term is enough, and all of its requirements count") {
  model::HomePod pod;
  pod.has_node_terms = true;
  const core::NodeLabels labels = {{"gpu", "h100"}};
  CHECK_FALSE(core::fits_node(pod, "burst", labels));
  pod.node_terms = {{}};
  CHECK_FALSE(core::fits_node(pod, "burst", labels));
  pod.node_terms = {{requirement("gpu", Operator::kIn, {"l4"})}, {requirement("gpu", Operator::kExists, {})}};
  CHECK(core::fits_node(pod, "burst", labels));
  pod.node_terms = {{requirement("gpu", Operator::kExists, {}), requirement("zone", Operator::kExists, {})}};
  CHECK_FALSE(core::fits_node(pod, "burst", labels));
}
