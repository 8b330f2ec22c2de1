// What must hold whatever the market: random markets from seeds, and one change at a time.
#include <catch2/catch.hpp>

#include <algorithm>

#include "test/unit/core/market.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using test_market::a_shape;
using test_market::an_offer;
using test_market::Market;

constexpr int kMarkets = 150;

struct Choice {
  std::string offer;  // provider/id; empty: none
  std::int64_t index = 0;
  Decision::Kind kind{};
  bool operator==(const Choice&) const = default;
};

Choice choice_of(const Decision& d) {
  if (!d.best) return {};
  return {d.best->offer.provider.str() + "/" + d.best->offer.id.str(), d.best->index.micros(), d.kind};
}

/// A market with offers and a past, the same for the same seed.
struct RandomMarket {
  std::vector<model::Offer> offers;
  Shape shape;
  std::uint64_t seed;

  explicit RandomMarket(std::uint64_t s) : seed(s) {
    base::SeededRandom random(s);
    offers = test_market::random_offers(random, 3 + static_cast<int>(random.next() % 40));
    shape = a_shape(static_cast<std::int64_t>(random.next() % 6'000'000), random.next() % 2 == 0);
  }
  void fill(Market& m, const std::vector<model::Offer>& listed) const {
    m.list(listed);
    base::SeededRandom random(seed + 1);
    test_market::random_past(m, offers, random, 60);
    m.list(listed);
  }
  Choice choose(const std::vector<model::Offer>& listed) const {
    Market m;
    fill(m, offers);
    m.list(listed);
    return choice_of(m.choose(shape));
  }
};

/// The least index among all that fit, by looking at every one.
std::int64_t least_index(Market& m, const Shape& shape) {
  Query query;
  query.shape = &shape;
  const Explanation e = m.selector.explain(query, m.now);
  std::int64_t least = e.decision.best ? e.decision.best->index.micros() : 0;
  if (!e.next.empty()) least = std::min(least, e.next.front().index.micros());
  return least;
}

}  // namespace

TEST_CASE("property: the order of the listing has no effect, and the same question has the same answer") {
  for (std::uint64_t seed = 1; seed <= kMarkets; ++seed) {
    CAPTURE(seed);
    const RandomMarket random(seed);
    std::vector<model::Offer> other = random.offers;
    std::ranges::reverse(other);
    std::rotate(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(seed % other.size()), other.end());
    Market m;
    random.fill(m, random.offers);
    const Choice first = choice_of(m.choose(random.shape));
    CHECK(choice_of(m.choose(random.shape)) == first);
    Market n;
    random.fill(n, other);
    CHECK(choice_of(n.choose(random.shape)) == first);
  }
}

TEST_CASE("property: what is read of the market does not change what is chosen") {
  for (std::uint64_t seed = 1; seed <= kMarkets; ++seed) {
    CAPTURE(seed);
    const RandomMarket random(seed);
    Market cold;
    random.fill(cold, random.offers);
    const Choice expected = choice_of(cold.choose(random.shape));
    Market warm;
    warm.list(random.offers);
    base::SeededRandom past(seed + 1);
    for (int i = 0; i < 60; ++i) {
      test_market::random_past(warm, random.offers, past, 1);
      warm.choose(random.shape);
      warm.choose(a_shape(123));
    }
    warm.list(random.offers);
    CHECK(choice_of(warm.choose(random.shape)) == expected);
  }
}

TEST_CASE("property: the winner is the best of all, looked at one by one") {
  for (std::uint64_t seed = 1; seed <= kMarkets; ++seed) {
    CAPTURE(seed);
    const RandomMarket random(seed);
    Market m;
    random.fill(m, random.offers);
    const Decision d = m.choose(random.shape);
    if (!d.best) continue;
    const std::int64_t least = least_index(m, random.shape);
    // A smaller GPU may cost one part in a hundred more.
    CHECK(d.best->index.micros() <= least + least / 100 + 1);
  }
}

TEST_CASE("property: a higher price never makes an offer chosen") {
  for (std::uint64_t seed = 1; seed <= kMarkets; ++seed) {
    const RandomMarket random(seed);
    const Choice before = random.choose(random.offers);
    for (size_t i = 0; i < random.offers.size(); i += 3) {
      std::vector<model::Offer> dearer = random.offers;
      const std::string name = dearer[i].provider.str() + "/" + dearer[i].id.str();
      dearer[i].price_per_hour =
          *dearer[i].price_per_hour + base::Money::from_micros(1 + static_cast<std::int64_t>(seed) * 5000);
      const Choice after = random.choose(dearer);
      CAPTURE(seed, name, before.offer, after.offer);
      if (before.offer != name) CHECK(after.offer != name);
    }
  }
}

TEST_CASE("property: a lower chance never makes an offer chosen") {
  for (std::uint64_t seed = 1; seed <= kMarkets; ++seed) {
    const RandomMarket random(seed);
    Market m;
    random.fill(m, random.offers);
    const Choice before = choice_of(m.choose(random.shape));
    base::SeededRandom pick(seed + 2);
    const model::Offer& unlucky = random.offers[pick.next() % random.offers.size()];
    const std::string name = unlucky.provider.str() + "/" + unlucky.id.str();
    // Nobody is told that it is sold out who may not ask; and a provider that answers has recovered.
    if (m.beliefs.opening(m.pool(unlucky), unlucky.gpu_count, m.now).why != Closed::kNo) continue;
    // What is sold out twice in a row can only be less likely: of others nothing is learnt by it but bad news.
    const double chance = m.beliefs.chance(m.pool(unlucky), m.now);
    m.learn(unlucky, LaunchResult::kSoldOut);
    CHECK(m.beliefs.chance(m.pool(unlucky), m.now) <= chance);
    CAPTURE(seed, name, before.offer);
    if (before.offer != name) CHECK(choice_of(m.choose(random.shape)).offer != name);
  }
}

TEST_CASE("property: one more offer never raises the least index") {
  for (std::uint64_t seed = 1; seed <= kMarkets; ++seed) {
    CAPTURE(seed);
    const RandomMarket random(seed);
    std::vector<model::Offer> fewer = random.offers;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(seed % fewer.size()));
    Market all;
    random.fill(all, random.offers);
    Market without;
    random.fill(without, random.offers);
    without.list(fewer);
    // A provider that lists nothing any more keeps its old listing in list(): empty it.
    for (const char* name : {"a", "b", "c"}) {
      const bool left = std::ranges::any_of(fewer, [&](const auto& o) { return o.provider.str() == name; });
      if (!left) without.book.update(base::ProviderName(name), {}, without.now);
    }
    const Decision fewer_choice = without.choose(random.shape);
    if (!fewer_choice.best) continue;
    CHECK(least_index(all, random.shape) <= least_index(without, random.shape));
  }
}

TEST_CASE("property: the index rises with the price and falls with the chance") {
  base::SeededRandom random(5);
  for (int i = 0; i < 2000; ++i) {
    Traits traits;
    traits.readiness = 0.3 + 0.7 * random.unit();
    traits.start = {3 + 4 * random.unit(), 0.2 + random.unit()};
    traits.start_hours = traits.start.mean_hours();
    traits.answer_hours = random.unit() / 100;
    traits.hazard = random.unit();
    traits.give_up = 10min;
    model::Offer offer = an_offer("a", "x", static_cast<std::int64_t>(random.next() % 9'000'000));
    offer.billing_minimum = std::chrono::seconds(random.next() % 7200);
    const Shape shape = a_shape(static_cast<std::int64_t>(random.next() % 20'000'000));
    IndexInput in;
    in.offer = &offer;
    in.traits = &traits;
    in.shape = &shape;
    const double chance = 0.004 + 0.9 * random.unit();
    const double wait = random.unit();
    const Score score = score_of(in);
    CHECK(score.at(chance, wait) == Approx(parts_of(in, chance, wait).sum()));
    CHECK(score.least() <= score.at(chance, wait));
    CHECK(score.at(chance + 0.05, wait) <= score.at(chance, wait));
    CHECK(score.at(chance, wait) <= score.at(chance, wait + 0.1));
    // The bound by which the reading stops.
    CHECK(static_cast<double>(offer.price_per_hour->micros()) * rest_hours(shape.worth, {}) <= score.least());
    model::Offer dearer = offer;
    dearer.price_per_hour = *offer.price_per_hour + base::Money::from_micros(1000);
    IndexInput dear = in;
    dear.offer = &dearer;
    CHECK(score_of(dear).at(chance, wait) > score.at(chance, wait));
    Traits worse = traits;
    worse.readiness *= 0.9;
    IndexInput bad = in;
    bad.traits = &worse;
    CHECK(score_of(bad).at(chance, wait) > score.at(chance, wait));
  }
}

TEST_CASE("property: a thousand pods and a pool that cooled make one call") {
  Market m;
  const model::Offer only = an_offer("a", "only", 1'000'000);
  m.list({only});
  m.learn(only, LaunchResult::kSoldOut);
  m.now += 61s;
  m.list({only});
  const Shape shape = a_shape();
  int calls = 0;
  for (int i = 0; i < 1000; ++i) {
    const Decision d = m.choose(shape);
    if (d.kind != Decision::Kind::kBuy) continue;
    calls += m.beliefs.begin(d.best->pool, base::InstanceTag("pod-" + std::to_string(i)), m.now) ? 1 : 0;
  }
  CHECK(calls == 1);
}

}  // namespace spillway::core
