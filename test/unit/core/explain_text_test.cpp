#include "vk-provider/core/explain_text.hpp"

#include <catch2/catch.hpp>

#include "test/unit/core/market.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using test_market::a_shape;
using test_market::an_offer;
using test_market::Market;

const base::Now kNow{test_market::kStart, *base::from_rfc3339("2026-11-29T07:00:00Z")};

Explanation explain(Market& m, const Shape& shape, std::vector<ProviderBudget> budgets = {}) {
  Query query;
  query.shape = &shape;
  query.budgets = std::move(budgets);
  return m.selector.explain(query, m.now);
}

std::vector<std::string> changes(const Explanation& e, const Shape& shape) {
  std::vector<std::string> out;
  for (const NearMiss& miss : e.near) out.push_back(describe(miss, shape, kNow));
  return out;
}

/// The shape of a pod with these wishes.
Shape wishing(const std::function<void(Requirements&, model::NodeProfile&)>& wish) {
  Requirements needs;
  needs.gpu_count = 1;
  needs.gpu_resource = "nvidia.com/gpu";
  model::NodeProfile profile;
  wish(needs, profile);
  return make_shape(needs, profile, "Job");
}

TEST_CASE("explain: a choice in one line, with what stood next and by what it lost") {
  Market m;
  m.list({an_offer("a", "win", 1'230'000), an_offer("b", "dear", 2'000'000), an_offer("a", "cooling", 1'235'000)});
  m.learn(an_offer("a", "cooling", 1'235'000), LaunchResult::kSoldOut);
  const Shape shape = a_shape();
  const Decision d = m.choose(shape);
  REQUIRE(d.best);
  Query query;
  query.shape = &shape;
  CHECK(describe_choice(*d.best, m.selector.runners_up(query, *d.best, m.now)) ==
        "offer win of provider a at $1.23/h: expected cost $2.59, chance 24 %, starts in 2m16s; next: b/dear lost by "
        "price, a/cooling lost by wait");
  CHECK(describe_choice(*d.best, {}).ends_with("starts in 2m16s"));
}

TEST_CASE("explain: a line of many long names fits into an event") {
  Market m;
  std::vector<model::Offer> offers;
  for (int i = 0; i < 8; ++i) offers.push_back(an_offer("a", std::string(300, static_cast<char>('a' + i)), 1'000'000));
  m.list(offers);
  const Shape shape = a_shape();
  const Explanation e = explain(m, shape);
  CHECK(describe_choice(*e.decision.best, e.next).size() <= 1024);
}

TEST_CASE("explain: what stands next is what would be chosen without those before it") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    base::SeededRandom random(seed);
    std::vector<model::Offer> offers = test_market::random_offers(random, 30);
    Market m;
    m.list(offers);
    test_market::random_past(m, offers, random, 40);
    m.list(offers);
    // One kind of GPU: nothing is preferred for being small.
    Shape shape = a_shape();
    shape.pod.gpu_models = {"H100"};
    shape.hash = seed;
    Query query;
    query.shape = &shape;
    Decision d = m.selector.choose(query, m.now);
    if (!d.best) continue;
    const std::vector<Candidate> next = m.selector.runners_up(query, *d.best, m.now);
    CHECK(next.size() <= 4);
    for (const Candidate& c : next) {
      query.avoid.push_back(d.best->offer.id);
      d = m.selector.choose(query, m.now);
      REQUIRE(d.best);
      CHECK(d.best->offer.id == c.offer.id);
      CHECK(d.best->index == c.index);
      CHECK(c.lost_by != LostBy::kNothing);
    }
  }
}

TEST_CASE("explain: the cheapest that one filter alone rejects, and what admits it") {
  Market m;
  SECTION("the pod's price") {
    m.list({an_offer("a", "x", 2'490'000), an_offer("a", "y", 2'600'000)});
    const Shape shape =
        wishing([](auto& needs, auto&) { needs.wishes.max_price = base::Money::from_micros(2'000'000); });
    CHECK(changes(explain(m, shape), shape) ==
          std::vector<std::string>{"max-price 2.00 -> 2.49 admits offer x of provider a at $2.49/h"});
  }
  SECTION("the node's price, and a model that is not wanted") {
    model::Offer other = an_offer("b", "l4", 700'000);
    other.gpu_model = "L4";
    other.gpu_memory = std::int64_t{24} << 30U;
    m.list({an_offer("a", "x", 2'490'000), other});
    const Shape shape = wishing([](auto& needs, auto& node) {
      node.max_price_per_hour = base::Money::from_micros(1'000'000);
      needs.wishes.gpu_models = {"H100"};
    });
    CHECK(changes(explain(m, shape), shape) ==
          std::vector<std::string>{"gpu-model L4 admits offer l4 of provider b at $0.70/h",
                                   "the node's maxPricePerHour 1.00 -> 2.49 admits offer x of provider a at $2.49/h"});
  }
  SECTION("memory, spot, a stranger, a region") {
    model::Offer small = an_offer("a", "small", 1'000'000);
    small.gpu_model = "L4";
    small.gpu_memory = std::int64_t{24} << 30U;
    model::Offer spot = an_offer("a", "spot", 1'100'000);
    spot.capacity_type = model::CapacityType::kSpot;
    model::Offer far = an_offer("a", "far", 1'300'000);
    far.region = base::SharedText("mars");
    m.list({small, spot, far});
    const Shape shape = wishing([](auto& needs, auto& node) {
      needs.wishes.min_vram = std::int64_t{40} << 30U;
      needs.wishes.regions = {"region-small", "region-spot"};
      node.offers.capacity_types = {model::CapacityType::kOnDemand, model::CapacityType::kSpot};
    });
    CHECK(changes(explain(m, shape), shape) ==
          std::vector<std::string>{"min-vram 40Gi -> 24Gi admits offer small of provider a at $1.00/h",
                                   "capacity-type spot admits offer spot of provider a at $1.10/h",
                                   "regions mars admits offer far of provider a at $1.30/h"});
  }
  SECTION("a budget") {
    m.list({an_offer("a", "x", 2'490'000)});
    const Shape shape = wishing([](auto&, auto&) {});
    CHECK(changes(explain(m, shape, {{base::ProviderName("a"), base::Money::from_micros(500'000)}}), shape) ==
          std::vector<std::string>{"a budget with 0.50 -> 2.49 left per hour admits offer x of provider a at $2.49/h"});
  }
  SECTION("a provider that refuses our credentials") {
    m.list({an_offer("a", "x", 2'490'000)});
    m.learn(an_offer("a", "x", 2'490'000), LaunchResult::kCredentials);
    const Shape shape = wishing([](auto&, auto&) {});
    CHECK(changes(explain(m, shape), shape) ==
          std::vector<std::string>{"offer x of provider a at $2.49/h cannot be bought with our credentials, until "
                                   "2026-11-29T07:05:00Z"});
  }
}

TEST_CASE("explain: what two filters reject, or what is dearer than the choice, changes nothing") {
  Market m;
  model::Offer both = an_offer("b", "both", 900'000);
  both.capacity_type = model::CapacityType::kSpot;
  both.region = base::SharedText("mars");
  model::Offer dear = an_offer("b", "dear", 3'000'000);
  dear.region = base::SharedText("mars");
  m.list({an_offer("a", "x", 1'000'000), both, dear});
  const Shape shape = wishing([](auto& needs, auto&) { needs.wishes.regions = {"region-x"}; });
  const Explanation e = explain(m, shape);
  REQUIRE(e.decision.best);
  CHECK(e.near.empty());
}

TEST_CASE("explain: why something cannot be asked, and until when") {
  Opening opening;
  CHECK(describe(opening, kNow).empty());
  opening.why = Closed::kCooling;
  opening.at = kNow.steady + 12min;
  CHECK(describe(opening, kNow) == "cooling until 2026-11-29T07:12:00Z");
}

}  // namespace
}  // namespace spillway::core
