#include "vk-provider/core/cooling.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

constexpr base::BackoffPolicy kPolicy{60s, 30min};
constexpr base::TimePoint kStart{1h};

base::InstanceTag who(int i) { return base::InstanceTag("pod-" + std::to_string(i)); }

TEST_CASE("cooling: what never failed is open to everybody") {
  Cooling cooling;
  CHECK_FALSE(cooling.needs_lease());
  for (int i = 0; i < 1000; ++i) CHECK(cooling.begin(who(i), kStart));
  CHECK(cooling.opening(kPolicy, kStart).at <= kStart);
}

TEST_CASE("cooling: nobody while it cools, then one of a thousand") {
  Cooling cooling;
  cooling.failed(who(0), kPolicy, kStart);
  CHECK(cooling.opening(kPolicy, kStart + 1s).at == kStart + 60s);
  CHECK_FALSE(cooling.begin(who(1), kStart + 59s));
  int callers = 0;
  for (int i = 0; i < 1000; ++i) callers += cooling.begin(who(i), kStart + 60s) ? 1 : 0;
  CHECK(callers == 1);
  const auto opening = cooling.opening(kPolicy, kStart + 60s);
  CHECK(opening.probing);
  CHECK(opening.at == kStart + 60s + Cooling::kLease);
  CHECK(opening.again == 120s);
}

TEST_CASE("cooling: each failure in a row doubles the wait, up to the cap") {
  Cooling cooling;
  base::TimePoint t = kStart;
  for (const base::Duration wait : {60s, 120s, 240s, 480s, 960s, 1800s, 1800s}) {
    REQUIRE(cooling.begin(who(1), t));
    cooling.failed(who(1), kPolicy, t);
    CHECK(cooling.until() == t + wait);
    t += wait;
  }
}

TEST_CASE("cooling: calls that failed together count once") {
  Cooling cooling;
  for (int i = 0; i < 100; ++i) cooling.failed(who(i), kPolicy, kStart + std::chrono::milliseconds(i));
  CHECK(cooling.streak() == 1);
  CHECK(cooling.until() == kStart + 60s);
}

TEST_CASE("cooling: what the other side asks for is the least") {
  Cooling cooling;
  cooling.failed(who(1), kPolicy, kStart, 10min);
  CHECK(cooling.until() == kStart + 10min);
  cooling.failed(who(2), kPolicy, kStart + 1s, 20min);
  CHECK(cooling.until() == kStart + 1s + 20min);
}

TEST_CASE("cooling: after a success the number of callers doubles until there is no limit") {
  Cooling cooling;
  cooling.failed(who(0), kPolicy, kStart);
  base::TimePoint t = kStart + 60s;
  REQUIRE(cooling.begin(who(0), t));
  cooling.succeeded(who(0));
  for (const int allowed : {2, 4, 8, 16, 32, 64}) {
    CAPTURE(allowed);
    int callers = 0;
    for (int i = 0; i < 200; ++i) callers += cooling.begin(who(i), t) ? 1 : 0;
    CHECK(callers == allowed);
    for (int i = 0; i < 200; ++i) cooling.given_back(who(i));
    REQUIRE(cooling.begin(who(0), t));
    cooling.succeeded(who(0));
  }
  CHECK_FALSE(cooling.needs_lease());
}

TEST_CASE("cooling: a failure while it recovers begins again with one") {
  Cooling cooling;
  cooling.failed(who(0), kPolicy, kStart);
  REQUIRE(cooling.begin(who(0), kStart + 60s));
  cooling.succeeded(who(0));
  cooling.failed(who(1), kPolicy, kStart + 61s);
  CHECK(cooling.until() == kStart + 121s);
  CHECK(cooling.begin(who(2), kStart + 121s));
  CHECK_FALSE(cooling.begin(who(3), kStart + 121s));
}

TEST_CASE("cooling: a lease is given back, or ends by itself") {
  Cooling cooling;
  cooling.failed(who(0), kPolicy, kStart);
  REQUIRE(cooling.begin(who(1), kStart + 60s));
  cooling.given_back(who(1));
  REQUIRE(cooling.begin(who(2), kStart + 60s));
  CHECK_FALSE(cooling.begin(who(3), kStart + 60s + Cooling::kLease - 1s));
  CHECK(cooling.begin(who(3), kStart + 60s + Cooling::kLease));
  // The same caller holds one lease, not two.
  CHECK(cooling.begin(who(3), kStart + 61s + Cooling::kLease));
}

}  // namespace
}  // namespace spillway::core
