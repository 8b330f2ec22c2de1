#include "test/simulation/plan.hpp"

#include <cstdint>
#include <limits>

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::simulation;

namespace {

std::string fault_of(const std::string& text) {
  const auto plan = parse_plan(text);
  return plan ? std::string() : plan.error().message;
}

}  // namespace

TEST_CASE("a plan is the same whenever its seed is drawn, and survives being written down") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::string text = to_text(draw_plan(seed));
    CHECK(text == to_text(draw_plan(seed)));
    CHECK(text != to_text(draw_plan(seed + 1)));
    const auto read = parse_plan(text);
    REQUIRE(read.has_value());
    CHECK(to_text(*read) == text);
  }
}

TEST_CASE("the largest seed survives being written down") {
  Plan plan = draw_plan(1);
  plan.seed = std::numeric_limits<std::uint64_t>::max();
  const auto read = parse_plan(to_text(plan));
  REQUIRE(read.has_value());
  CHECK(read->seed == plan.seed);
}

TEST_CASE("a plan may speak to people, and what it leaves out has its default") {
  const auto plan = parse_plan("# a bug\n\nspillway-simulation 1\nseed 7\ncloud unique=0\nat 5 kill restart=9\n");
  REQUIRE(plan.has_value());
  CHECK(plan->seed == 7);
  REQUIRE(plan->clouds.size() == 1);
  CHECK(plan->clouds[0].unique == 0);
  CHECK(plan->clouds[0].settle == CloudTraits().settle);
  REQUIRE(plan->steps.size() == 1);
  CHECK(plan->steps[0].at == 5);
  CHECK(plan->steps[0].verb == find_verb("kill"));
  CHECK(plan->steps[0].args[2] == 9);
}

TEST_CASE("a plan that cannot be read is refused with its line") {
  const std::string head = "spillway-simulation 1\ncloud\n";
  CHECK(fault_of("") == "the plan is empty");
  CHECK(fault_of("spillway-simulation 1\n") == "the plan has no cloud");
  CHECK(fault_of("\x7f"
                 "ELF rubbish") ==
        "line 1: this is no plan of a simulation; it must begin with \"spillway-simulation 1\"");
  CHECK(fault_of("spillway-simulation 0\n") == "line 1: format 0 is not known; this program reads format 1");
  CHECK(fault_of(head + "seed many\n") == "line 3: seed must be followed by a number");
  CHECK(fault_of(head + "\nworld nodes=9\n") == "line 4: nodes must be a number from 1 to 4");
  CHECK(fault_of(head + "world colour=1\n") == "line 3: there is no \"colour\" here");
  CHECK(fault_of(head + "at 5 dance\n") == "line 3: there is no verb \"dance\"; `simulation list-verbs` names them");
  CHECK(fault_of(head + "at 5 kill after=-1\n") == "line 3: after must be a number from 0 to 1000000");
  CHECK(fault_of(head + "at soon kill\n") == "line 3: a step's time must be a number from 0 to 86400000");
  CHECK(fault_of(head + "world length=9000\nat 9001 kill\n") ==
        "the step at 9001 comes after the end at 9000 (world length)");
  CHECK(fault_of(head + "and so on\n") == "line 3: expected seed, world, cloud or at, found \"and\"");
}
