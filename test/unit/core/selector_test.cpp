#include "vk-provider/core/selector.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string_view>

#include "test/unit/core/market.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using test_market::a_shape;
using test_market::an_offer;
using test_market::Market;

std::string best(const Decision& d) { return d.best ? d.best->offer.id.str() : ""; }
std::uint32_t rejected(const Explanation& e, Filter f) { return e.rejected.at(static_cast<size_t>(f)); }

TEST_CASE("selector: of what is equally unknown the cheapest wins, of equals the first by name") {
  Market m;
  m.list({an_offer("b", "y", 2'000'000), an_offer("a", "z", 2'000'000), an_offer("a", "dear", 2'100'000)});
  const Decision d = m.choose(a_shape());
  CHECK(d.kind == Decision::Kind::kBuy);
  CHECK(best(d) == "z");
  CHECK(d.best->chance == Approx(0.7));
}

TEST_CASE("selector: nothing to choose from") {
  Market m;
  const Decision d = m.choose(a_shape());
  CHECK(d.kind == Decision::Kind::kNone);
  CHECK_FALSE(d.best);
  CHECK_FALSE(d.again_at);
}

TEST_CASE("selector: a cheap pool that is sold out is left for a dear one, or waited for, as the pod's time is worth") {
  const model::Offer cheap = an_offer("a", "cheap", 1'000'000);
  const model::Offer dear = an_offer("b", "dear", 1'200'000);
  Market m;
  m.list({cheap, dear});
  m.learn(cheap, LaunchResult::kSoldOut);
  const Decision hurried = m.choose(a_shape(5'000'000));
  CHECK(hurried.kind == Decision::Kind::kBuy);
  CHECK(best(hurried) == "dear");
  m.list({cheap, an_offer("b", "dear", 9'000'000)});
  m.now += 30min;
  m.learn(cheap, LaunchResult::kSoldOut);
  m.list({cheap, an_offer("b", "dear", 9'000'000)});
  const Decision patient = m.choose(a_shape(10'000));
  CHECK(patient.kind == Decision::Kind::kWait);
  CHECK(best(patient) == "cheap");
  CHECK(patient.again_at > m.now);
}

TEST_CASE("selector: reliability is a price: a host that often fails to start wins where time is cheap") {
  const model::Offer bad = an_offer("a", "bad", 1'000'000);
  const model::Offer good = an_offer("b", "good", 1'100'000);
  Market m;
  m.list({bad, good});
  for (int i = 0; i < 30; ++i) {
    m.learn(bad, LaunchResult::kAccepted);
    m.learn(bad, i % 4 == 0 ? LaunchResult::kNeverRan : LaunchResult::kRan, 60s);
    m.learn(good, LaunchResult::kAccepted);
    m.learn(good, LaunchResult::kRan, 60s);
  }
  m.now += 1min;
  CHECK(best(m.choose(a_shape(0))) == "bad");
  CHECK(best(m.choose(a_shape(20'000'000))) == "good");
}

TEST_CASE("selector: a slow start, and spot that is taken back, cost what they cost") {
  const model::Offer fast = an_offer("a", "fast", 1'050'000);
  model::Offer slow = an_offer("b", "slow", 1'000'000);
  Market m;
  m.list({fast, slow});
  for (int i = 0; i < 30; ++i) {
    m.learn(fast, LaunchResult::kAccepted);
    m.learn(slow, LaunchResult::kAccepted);
    m.learn(fast, LaunchResult::kRan, 20s);
    m.learn(slow, LaunchResult::kRan, 200s);
  }
  m.now += 1min;
  CHECK(best(m.choose(a_shape(0))) == "slow");
  CHECK(best(m.choose(a_shape(5'000'000))) == "fast");
  Market s;
  model::Offer spot = an_offer("a", "spot", 950'000);
  spot.capacity_type = model::CapacityType::kSpot;
  const model::Offer steady = an_offer("b", "steady", 1'000'000);
  s.list({spot, steady});
  s.learn(spot, LaunchResult::kAccepted);
  s.learn(steady, LaunchResult::kAccepted);
  CHECK(best(s.choose(a_shape())) == "steady");
  spot.price_per_hour = base::Money::from_micros(300'000);
  s.list({spot, steady});
  CHECK(best(s.choose(a_shape())) == "spot");
}

TEST_CASE("selector: about the same price, the smaller GPU") {
  model::Offer big = an_offer("a", "big", 1'000'000);
  model::Offer small = an_offer("b", "small", 1'005'000);
  small.gpu_model = "L40S";
  small.gpu_memory = std::int64_t{48} << 30U;
  Market m;
  m.list({big, small});
  CHECK(best(m.choose(a_shape())) == "small");
  small.price_per_hour = base::Money::from_micros(1'030'000);
  m.list({big, small});
  CHECK(best(m.choose(a_shape())) == "big");
}

TEST_CASE("selector: what failed for this pod is taken only if nothing else fits") {
  Market m;
  m.list({an_offer("a", "x", 1'000'000), an_offer("b", "y", 2'000'000)});
  const Shape shape = a_shape();
  Query query;
  query.shape = &shape;
  query.avoid = {base::OfferId("x")};
  CHECK(best(m.selector.choose(query, m.now)) == "y");
  query.avoid = {base::OfferId("x"), base::OfferId("y")};
  CHECK(best(m.selector.choose(query, m.now)) == "x");
}

TEST_CASE("selector: budgets limit the price, and lean to the cheap when they are nearly used") {
  model::Offer cheap = an_offer("a", "cheap", 1'000'000);
  model::Offer fast = an_offer("b", "fast", 1'040'000);
  Market m;
  m.list({cheap, fast});
  for (int i = 0; i < 30; ++i) {
    m.learn(cheap, LaunchResult::kAccepted);
    m.learn(fast, LaunchResult::kAccepted);
    m.learn(fast, LaunchResult::kRan, 10s);
    m.learn(cheap, LaunchResult::kRan, 330s);
  }
  m.now += 1min;
  const Shape shape = a_shape();
  Query query;
  query.shape = &shape;
  CHECK(best(m.selector.choose(query, m.now)) == "fast");
  query.budgets = {{base::ProviderName("a"), base::Money::from_micros(9'000'000), 2},
                   {base::ProviderName("b"), base::Money::from_micros(1'039'999), 1}};
  CHECK(best(m.selector.choose(query, m.now)) == "cheap");
  query.budgets[1].at_most = base::Money::from_micros(1'040'000);
  query.budgets[1].price_factor = 2;
  query.budgets[0].at_most = base::Money();
  CHECK(best(m.selector.choose(query, m.now)) == "fast");
  query.budgets[1].at_most = base::Money();
  CHECK(m.selector.choose(query, m.now).kind == Decision::Kind::kNone);
}

TEST_CASE("selector: a listing that is too old buys nothing") {
  Market m;
  m.list({an_offer("a", "x", 1'000'000)});
  m.now += 5min;
  CHECK(best(m.choose(a_shape())) == "x");
  m.now += 1s;
  CHECK(m.choose(a_shape()).kind == Decision::Kind::kNone);
}

TEST_CASE("selector: a provider that is out of reach is not waited for, and its return is told") {
  const model::Offer cheap = an_offer("a", "cheap", 100'000);
  const model::Offer dear = an_offer("b", "dear", 3'000'000);
  for (const LaunchResult result : {LaunchResult::kBroken, LaunchResult::kCredentials}) {
    Market m;
    m.list({cheap, dear});
    for (int i = 0; i < 5; ++i) m.learn(cheap, result);
    CHECK(best(m.choose(a_shape(0))) == "dear");
    m.book.update(base::ProviderName("b"), {}, m.now);
    const Decision none = m.choose(a_shape(0));
    CHECK(none.kind == Decision::Kind::kNone);
    CHECK(none.again_at == m.now + (result == LaunchResult::kBroken ? base::Duration(30s) : base::Duration(5min)));
  }
}

TEST_CASE("selector: machines that failed, refusals and changed offers are left out") {
  model::Offer x = an_offer("a", "x", 1'000'000);
  x.host = "host-1";
  const model::Offer y = an_offer("b", "y", 2'000'000);
  const Shape shape = a_shape();
  {
    Market m;
    m.list({x, y});
    m.learn(x, LaunchResult::kNeverRan);
    CHECK(best(m.choose(shape)) == "y");
  }
  {
    Market m;
    m.list({x, y});
    m.learn(x, LaunchResult::kOfferChanged);
    CHECK(best(m.choose(shape)) == "y");
    m.now += 1s;
    m.list({x, y});
    CHECK(best(m.choose(shape)) == "x");
  }
  {
    Market m;
    m.list({x, y});
    Beliefs::Report report;
    report.pool = m.pool(x);
    report.offer = x.id;
    report.result = LaunchResult::kUnsupported;
    report.pods = shape.hash;
    report.digest = digest_of(*m.book.find(x.provider, x.id));
    m.beliefs.learn(report, m.now);
    CHECK(best(m.choose(shape)) == "y");
    CHECK(best(m.choose(a_shape(2'000'000))) == "x");
  }
}

TEST_CASE("selector: explain accounts for every offer, once") {
  Market m({"a", "b"});
  std::vector<model::Offer> offers{an_offer("a", "win", 1'000'000), an_offer("a", "next", 1'500'000),
                                   an_offer("c", "unable", 1)};
  offers.push_back(an_offer("b", "sold-out", 1'000'000));
  offers.back().available = false;
  offers.push_back(an_offer("b", "no-price", 1));
  offers.back().price_per_hour.reset();
  offers.push_back(an_offer("b", "cpu", 10'000));
  offers.back().gpu_count = 0;
  offers.back().gpu_model = "";
  offers.push_back(an_offer("b", "amd", 1'000'000));
  offers.back().gpu_model = "MI300X";
  offers.push_back(an_offer("b", "cooling", 1'100'000));
  m.list(offers);
  m.learn(offers.back(), LaunchResult::kSoldOut);
  const Shape shape = a_shape();
  Query query;
  query.shape = &shape;
  const Explanation e = m.selector.explain(query, m.now);
  CHECK(best(e.decision) == "win");
  CHECK(e.offers == 8);
  CHECK(rejected(e, Filter::kCapability) == 1);
  CHECK(rejected(e, Filter::kSoldOut) == 1);
  CHECK(rejected(e, Filter::kNoPrice) == 1);
  CHECK(rejected(e, Filter::kGpuCount) == 1);
  CHECK(rejected(e, Filter::kVendor) == 1);
  REQUIRE(e.next.size() == 2);
  CHECK(e.next[0].offer.id == base::OfferId("next"));
  CHECK(e.next[0].lost_by == LostBy::kPrice);
  CHECK(e.next[1].offer.id == base::OfferId("cooling"));
  CHECK((e.next[1].lost_by == LostBy::kWait || e.next[1].lost_by == LostBy::kChance));
  CHECK(e.next[1].opening.why == Closed::kCooling);
  CHECK(
      explain_counts(e.rejected, e.offers, shape) ==
      "3 of 8 offers fit: 1 without a price, 1 too few GPUs, 1 sold out, 1 of a provider that cannot honour the pod, 1 "
      "GPUs of another vendor");
}

TEST_CASE("selector: every filter has its word") {
  std::set<std::string_view> words;
  const Shape shape = a_shape();
  for (size_t i = 0; i < static_cast<size_t>(Filter::kCount); ++i) {
    const auto filter = static_cast<Filter>(i);
    CHECK(words.insert(to_string(filter)).second);
    CHECK_FALSE(describe(filter, shape).empty());
  }
  CHECK_FALSE(words.contains(""));
}

TEST_CASE("shape: what the pod does not say, its owner decides") {
  Requirements needs;
  needs.gpu_count = 1;
  model::NodeProfile both;
  both.offers.capacity_types = {model::CapacityType::kOnDemand, model::CapacityType::kSpot};
  CHECK(make_shape(needs, both, "Job").worth.value_of_time == base::Money::from_micros(200'000));
  CHECK(make_shape(needs, both, "ReplicaSet").worth.value_of_time == base::Money::from_micros(1'000'000));
  CHECK(make_shape(needs, both, "ReplicaSet").worth.checkpoint == base::Duration(0));
  CHECK_FALSE(make_shape(needs, both, "Job").worth.checkpoint);
  CHECK_FALSE(make_shape(needs, both, "StatefulSet").worth.checkpoint);
  // Spot only where it is tolerated.
  CHECK_FALSE(make_shape(needs, both, "").spot_tolerated);
  CHECK_FALSE(make_shape(needs, both, "Job").spot_tolerated);
  needs.wishes.checkpoint_interval = 30min;
  CHECK(make_shape(needs, both, "Job").spot_tolerated);
  CHECK_FALSE(make_shape(needs, both, "StatefulSet").spot_tolerated);
  needs.wishes.capacity_types = {model::CapacityType::kOnDemand};
  CHECK_FALSE(make_shape(needs, both, "Job").spot_tolerated);
  needs.wishes = {};
  model::NodeProfile spot_only;
  spot_only.offers.capacity_types = {model::CapacityType::kSpot};
  CHECK(make_shape(needs, spot_only, "").spot_tolerated);
  // Strangers' machines only for who carries no secrets, or says so.
  CHECK(make_shape(needs, both, "").strangers_tolerated);
  needs.carries_secrets = true;
  CHECK_FALSE(make_shape(needs, both, "").strangers_tolerated);
  needs.wishes.trust = model::Trust::kCommunity;
  CHECK(make_shape(needs, both, "").strangers_tolerated);
  needs.carries_secrets = false;
  needs.wishes.trust = model::Trust::kDatacenter;
  CHECK_FALSE(make_shape(needs, both, "").strangers_tolerated);
}

TEST_CASE("shape: a tier stands for a value of time, which wins if both are said") {
  Requirements needs;
  needs.wishes.tier = model::Tier::kCritical;
  CHECK(make_shape(needs, {}, "Job").worth.value_of_time == base::Money::from_micros(20'000'000));
  needs.wishes.value_of_time = base::Money::from_micros(7);
  CHECK(make_shape(needs, {}, "Job").worth.value_of_time == base::Money::from_micros(7));
}

}  // namespace
}  // namespace spillway::core
