#include "test/simulation/owner_facts.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway::simulation;
using spillway::base::TimePoint;

namespace {
constexpr TimePoint kStart{1h};
}

TEST_CASE("pods that were made before the first failure are one generation") {
  Failures failures;
  failures.add(kStart, kStart + 10s);
  failures.add(kStart + 1s, kStart + 11s);
  failures.add(kStart + 10s, kStart + 12s);
  REQUIRE(failures.generations().size() == 1);
  CHECK(failures.generations()[0].made == kStart);
  CHECK(failures.generations()[0].failed == kStart + 10s);
  failures.add(kStart + 11s, kStart + 20s);
  REQUIRE(failures.generations().size() == 2);
  CHECK(failures.before(kStart) == 0);
  CHECK(failures.before(kStart + 15s) == 1);
  CHECK(failures.before(kStart + 21s) == 2);
}

TEST_CASE("a launch counts for the generation that had failed when its pod was made") {
  Failures failures;
  failures.note_launch(kStart);
  failures.add(kStart, kStart + 10s);
  failures.note_launch(kStart);
  failures.note_launch(kStart + 11s);
  failures.add(kStart + 11s, kStart + 20s);
  failures.note_launch(kStart + 12s);
  failures.note_launch(kStart + 21s);
  CHECK(failures.generations()[0].launches == 2);
  CHECK(failures.generations()[1].launches == 1);
}

TEST_CASE("a new holder of the lease knows of no failure") {
  Owners owners;
  owners.begin_term("host0", kStart);
  owners.pod_made("", kStart);
  CHECK(owners.find("") == nullptr);
  owners.pod_made("rs", kStart);
  owners.find("rs")->crashed.add(kStart, kStart + 10s);
  owners.begin_term("host1", kStart + 20s);
  owners.pod_made("rs", kStart + 30s);
  CHECK(owners.daemon() == "host1");
  CHECK(owners.term_began() == kStart + 20s);
  CHECK(owners.find("rs")->crashed.generations().empty());
  CHECK(owners.find("rs")->first_pod == kStart);
}
