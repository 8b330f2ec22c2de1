// hedge and reconsider: a second instance because the first is late, and a move because there is something cheaper.
#include <catch2/catch.hpp>

#include <cmath>

#include "test/unit/core/market.hpp"
#include "vk-provider/core/hedge.hpp"
#include "vk-provider/core/reconsider.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using test_market::an_offer;

Traits usual() {
  Traits t;
  t.readiness = 0.95;
  t.start = {std::log(120.0), 0.4};
  t.start_hours = t.start.mean_hours();
  t.answer_hours = 3.0 / 3600;
  t.hazard = 0.0005;
  t.give_up = 2 * t.start.quantile95();
  return t;
}

Candidate candidate(const char* provider, std::int64_t price) {
  Candidate c;
  c.offer = an_offer(provider, "x", price);
  c.chance = 0.9;
  c.readiness = 0.95;
  c.hazard = 0.0005;
  c.start = 130s;
  return c;
}

HedgeQuestion question(const Traits& first, const Candidate& second, std::int64_t value, base::Duration waited) {
  HedgeQuestion q;
  q.first = &first;
  q.waited = waited;
  q.value_of_time = base::Money::from_micros(value);
  q.second = &second;
  q.second_start_hours = 130.0 / 3600;
  q.second_answer_hours = 3.0 / 3600;
  return q;
}

}  // namespace

TEST_CASE("hedge: the question comes up when nineteen of twenty have started") {
  const Traits t = usual();
  CHECK(hedge_after(t) == t.start.quantile95());
  CHECK(t.start.chance_longer(hedge_after(t)) == Approx(0.05).margin(1e-6));
}

TEST_CASE("hedge: worth it for those in a hurry, late, and not too dear") {
  const Traits t = usual();
  const Candidate second = candidate("b", 1'000'000);
  const base::Duration late = hedge_after(t);
  CHECK(worth_hedging(question(t, second, 5'000'000, late)));
  CHECK_FALSE(worth_hedging(question(t, second, 200'000, late)));
  CHECK_FALSE(worth_hedging(question(t, second, 5'000'000, 10s)));
  CHECK_FALSE(worth_hedging(question(t, candidate("b", 20'000'000), 5'000'000, late)));
  Candidate by_the_hour = second;
  by_the_hour.offer.billing_minimum = 3600s;
  CHECK_FALSE(worth_hedging(question(t, by_the_hour, 5'000'000, late)));
  Traits sure = t;
  sure.readiness = 0.9999;
  CHECK_FALSE(worth_hedging(question(sure, second, 5'000'000, late)));
}

TEST_CASE("hedge: whoever runs first wins, so a slow second one still helps against a machine that never starts") {
  Traits t = usual();
  const base::Duration late = hedge_after(t);
  // Sure to come, on average sooner than the second: only the rent of both would be lost.
  t.readiness = 0.9999;
  CHECK_FALSE(worth_hedging(question(t, candidate("b", 1'000'000), 5'000'000, late)));
  // One in five of those that are so late never comes; until it is given up the second one would long run.
  t.readiness = 0.988;
  t.give_up = late + 2min;
  CHECK(worth_hedging(question(t, candidate("b", 1'000'000), 5'000'000, late)));
  CHECK_FALSE(worth_hedging(question(t, candidate("b", 1'000'000), 1'000'000, late)));
}

TEST_CASE("hedge: only into another failure domain") {
  const model::Offer a = an_offer("a", "x", 1);
  model::Offer b = an_offer("a", "y", 1);
  CHECK(other_domain(a, b));
  b.region = a.region;
  CHECK_FALSE(other_domain(a, b));
  b.provider = base::ProviderName("b");
  CHECK(other_domain(a, b));
}

TEST_CASE("hedge: one for twenty creates, five saved up, and within the money of a namespace") {
  constexpr base::TimePoint kStart{100h};
  HedgeBudget budget(base::Money::from_micros(3'000'000));
  const base::Money one = base::Money::from_micros(1'000'000);
  CHECK(budget.take("team", one, kStart));
  CHECK_FALSE(budget.take("team", one, kStart));
  for (int i = 0; i < 19; ++i) budget.note_create();
  CHECK_FALSE(budget.take("team", one, kStart));
  for (int i = 0; i < 2; ++i) budget.note_create();
  CHECK(budget.take("team", one, kStart));
  for (int i = 0; i < 1000; ++i) budget.note_create();
  CHECK(budget.take("team", one, kStart));
  CHECK_FALSE(budget.take("team", one, kStart));
  CHECK_FALSE(budget.take("team", one, kStart + 23h));
  for (int i = 0; i < 3; ++i) CHECK(budget.take("other", one, kStart));
  CHECK_FALSE(budget.take("third", base::Money::from_micros(3'000'001), kStart));
  CHECK(budget.take("team", one, kStart + 25h));
  CHECK_FALSE(budget.take("third", one, kStart + 25h));
}

namespace {

MoveQuestion move(const Traits& here, const Candidate& there) {
  MoveQuestion q;
  q.price = base::Money::from_micros(3'060'000);
  q.here = &here;
  q.ran = 1h;
  q.there = &there;
  q.worth.value_of_time = base::Money::from_micros(1'000'000);
  q.worth.runtime = 2h;
  q.worth.checkpoint = 30min;
  q.overlaps = true;
  return q;
}

}  // namespace

TEST_CASE("reconsider: a third of the price is worth a move, a tenth less is not") {
  const Traits here = usual();
  const Candidate cheap = candidate("b", 1'000'000);
  const auto saved = worth_moving(move(here, cheap));
  REQUIRE(saved);
  CHECK(saved->micros() > 3'000'000);
  CHECK_FALSE(worth_moving(move(here, candidate("b", 2'980'000))));
  CHECK_FALSE(worth_moving(move(here, candidate("b", 3'500'000))));
}

TEST_CASE("reconsider: not too soon, not too often, and not into what is closed") {
  const Traits here = usual();
  Candidate cheap = candidate("b", 1'000'000);
  MoveQuestion q = move(here, cheap);
  q.ran = 29min;
  CHECK_FALSE(worth_moving(q));
  q.ran = 5h;
  q.moved = 3h;
  CHECK_FALSE(worth_moving(q));
  q.moved = 4h;
  CHECK(worth_moving(q));
  cheap.opening.why = Closed::kCooling;
  CHECK_FALSE(worth_moving(q));
}

TEST_CASE("reconsider: what would be lost, what it is worth to its owner, and spot that is taken back count") {
  const Traits here = usual();
  Candidate cheap = candidate("b", 2'000'000);
  MoveQuestion q = move(here, cheap);
  REQUIRE(worth_moving(q));
  q.unsaved = 1h;
  CHECK_FALSE(worth_moving(q));
  q.unsaved = {};
  q.disruption = base::Money::from_micros(5'000'000);
  CHECK_FALSE(worth_moving(q));
  q.disruption = {};
  cheap.hazard = 2;
  CHECK_FALSE(worth_moving(q));
}

}  // namespace spillway::core
