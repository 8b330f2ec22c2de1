#include "vk-provider/core/label_selector.hpp"

#include <catch2/catch.hpp>

using spillway::core::LabelSelector;
using spillway::core::matches;
using spillway::core::parse_label_selector;
using Labels = std::map<std::string, std::string>;

TEST_CASE("a selector of text selects as kubectl does") {
  const Labels ours{{"type", "virtual-kubelet"}, {"zone", "a"}};
  const auto selects = [&ours](const char* text) {
    const auto selector = parse_label_selector(text);
    REQUIRE(selector.has_value());
    return matches(*selector, ours);
  };
  CHECK(selects(""));
  CHECK(selects("type"));
  CHECK(selects("type=virtual-kubelet"));
  CHECK(selects("type == virtual-kubelet"));
  CHECK(selects("type=virtual-kubelet,zone in (b, a)"));
  CHECK(selects("zone notin (b, c), !gpu"));
  CHECK(selects("gpu!=H100"));
  CHECK_FALSE(selects("type!=virtual-kubelet"));
  CHECK_FALSE(selects("!type"));
  CHECK_FALSE(selects("gpu"));
  CHECK_FALSE(selects("type=virtual-kubelet,zone in (b,c)"));
  CHECK_FALSE(selects("zone notin (a)"));
}

TEST_CASE("what is no selector is told from one that selects everything") {
  for (const char* text : {"a b", "a in b", "=a", "a in (b", "a like (b)", ",", "a=b=c", "! "}) {
    INFO(text);
    CHECK_FALSE(parse_label_selector(text).has_value());
  }
}

TEST_CASE("a selector of an object selects by labels and expressions, and one that is absent nothing") {
  LabelSelector selector;
  CHECK(matches(selector, {}));
  selector.nothing = true;
  CHECK_FALSE(matches(selector, {}));
  selector.nothing = false;
  selector.labels = {{"app", "api"}};
  spillway::model::NodeRequirement requirement;
  requirement.key = "tier";
  requirement.op = spillway::model::NodeRequirement::Operator::kNotIn;
  requirement.values = {"test"};
  selector.expressions = {requirement};
  CHECK(matches(selector, {{"app", "api"}}));
  CHECK_FALSE(matches(selector, {{"app", "api"}, {"tier", "test"}}));
  CHECK_FALSE(matches(selector, {{"app", "web"}}));
}
