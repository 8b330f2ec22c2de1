#include "vk-provider/core/repair_brake.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
namespace base = spillway::base;
using spillway::core::RepairBrake;

TEST_CASE("a repair each ten seconds, and a long pause after three in five minutes") {
  RepairBrake brake;
  base::TimePoint now{1h};
  CHECK(brake.may_repair_at() <= now);
  CHECK_FALSE(brake.note_repair(now));
  CHECK(brake.may_repair_at() == now + 10s);
  now += 10s;
  CHECK_FALSE(brake.note_repair(now));
  now += 10s;
  CHECK(brake.note_repair(now));
  CHECK(brake.may_repair_at() == now + 10min);
  brake.forget();
  CHECK(brake.may_repair_at() <= now);
}

TEST_CASE("rare repairs are no fight") {
  RepairBrake brake;
  base::TimePoint now{1h};
  for (int i = 0; i < 20; ++i, now += 3min) CHECK_FALSE(brake.note_repair(now));
}
