#include "vk-provider/core/beliefs.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

constexpr base::TimePoint kStart{100h};

PoolKey key(const std::string& provider, const std::string& region = "us-east-1a", int gpus = 1,
            model::CapacityType type = model::CapacityType::kOnDemand) {
  PoolKey out;
  out.provider = base::ProviderName(provider);
  out.region = region;
  out.gpu_model = "H100";
  out.gpu_count = gpus;
  out.capacity_type = type;
  return out;
}

struct World {
  PoolIndex pools;
  Beliefs beliefs{pools};

  NextStep learn(PoolId pool, LaunchResult result, base::TimePoint now, const std::string& who = "pod",
                 base::Duration took = 3s) {
    Beliefs::Report report;
    report.pool = pool;
    report.offer = base::OfferId("offer");
    report.who = base::InstanceTag(who);
    report.result = result;
    report.took = took;
    return beliefs.learn(report, now);
  }
  bool begin(PoolId pool, base::TimePoint now, const std::string& who = "pod") {
    return beliefs.begin(pool, base::InstanceTag(who), now);
  }
};

model::Offer offer_of(const std::string& provider) {
  model::Offer offer;
  offer.provider = base::ProviderName(provider);
  offer.id = base::OfferId("offer");
  offer.gpu_model = "H100";
  offer.gpu_count = 1;
  return offer;
}

}  // namespace

TEST_CASE("pools: one number for one pool, zones of a region are kin") {
  PoolIndex pools;
  const PoolId a = pools.intern(key("aws", "us-east-1a"));
  const PoolId b = pools.intern(key("aws", "us-east-1b"));
  const PoolId eight = pools.intern(key("aws", "us-east-1a", 8));
  const PoolId west = pools.intern(key("aws", "us-west-2a"));
  const PoolId spot = pools.intern(key("aws", "us-east-1a", 1, model::CapacityType::kSpot));
  const PoolId other = pools.intern(key("gcp", "us-east1-b"));
  CHECK(pools.intern(key("aws", "us-east-1a")) == a);
  CHECK(pools.size() == 6);
  CHECK(pools.kin(a).place == pools.kin(b).place);
  CHECK(pools.kin(a).place == pools.kin(eight).place);
  CHECK(pools.kin(a).place != pools.kin(west).place);
  CHECK(pools.kin(a).family == pools.kin(west).family);
  CHECK(pools.kin(a).family != pools.kin(spot).family);
  CHECK(pools.kin(a).provider == pools.kin(spot).provider);
  CHECK(pools.kin(a).provider != pools.kin(other).provider);
}

TEST_CASE("chance: what is unknown is 0.7, an answer counts fully and fades") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  CHECK(w.beliefs.chance(pool, kStart) == Approx(0.7));
  w.learn(pool, LaunchResult::kSoldOut, kStart);
  CHECK(w.beliefs.chance(pool, kStart) == 0.004);
  CHECK(w.beliefs.chance(pool, kStart + 1min) < 0.03);
  const double after_one_hour = w.beliefs.chance(pool, kStart + 1h);
  CHECK(after_one_hour > 0.1);
  CHECK(after_one_hour < 0.3);
  CHECK(w.beliefs.chance(pool, kStart + 24h * 30) == Approx(0.7).margin(0.01));
  w.learn(pool, LaunchResult::kAccepted, kStart + 2h);
  CHECK(w.beliefs.chance(pool, kStart + 2h) == 0.995);
}

TEST_CASE("chance: never above the bound that saves computing it") {
  World w;
  std::vector<PoolId> pools;
  for (const char* const zone : {"us-east-1a", "us-east-1b", "us-east-1c", "us-west-2a", "eu-west-1a"}) {
    pools.push_back(w.pools.intern(key("a", zone)));
  }
  std::uint64_t dice = 1;
  base::TimePoint now = kStart;
  for (int i = 0; i < 5000; ++i) {
    dice = dice * 6364136223846793005U + 1442695040888963407U;
    now += std::chrono::seconds(1 + (dice >> 33U) % 4000);
    w.learn(pools[(dice >> 40U) % pools.size()],
            (dice >> 50U) % 5 == 0 ? LaunchResult::kSoldOut : LaunchResult::kAccepted, now);
    for (const PoolId pool : pools) {
      for (const auto later : {0s, 60s, 1800s, 86400s}) {
        const double most = w.beliefs.most_chance(pool, model::Stock::kUnknown, now + later);
        if (w.beliefs.chance(pool, now + later) > most) FAIL("chance above its bound");
      }
    }
  }
  CHECK(w.beliefs.most_chance(pools[0], model::Stock::kHigh, now) == 0.995);
}

TEST_CASE("chance: a repeat within seconds is almost no news") {
  World once;
  World often;
  const PoolId a = once.pools.intern(key("a"));
  const PoolId b = often.pools.intern(key("a"));
  once.learn(a, LaunchResult::kSoldOut, kStart);
  for (int i = 0; i < 5; ++i) often.learn(b, LaunchResult::kSoldOut, kStart + i * 1s);
  const double p = once.beliefs.chance(a, kStart + 12h);
  const double q = often.beliefs.chance(b, kStart + 12h);
  CHECK(q < p);
  CHECK(q > p - 0.15);
}

TEST_CASE("chance: news of a neighbour is half news, that of strangers is none") {
  World w;
  const PoolId a = w.pools.intern(key("aws", "us-east-1a"));
  const PoolId b = w.pools.intern(key("aws", "us-east-1b"));
  const PoolId west = w.pools.intern(key("aws", "us-west-2a"));
  const PoolId other = w.pools.intern(key("gcp", "us-east1-b"));
  w.learn(a, LaunchResult::kLost, kStart);
  const double near = w.beliefs.chance(b, kStart);
  const double far = w.beliefs.chance(west, kStart);
  const double stranger = w.beliefs.chance(other, kStart);
  CHECK(near < far);
  CHECK(far < stranger);
  CHECK(w.beliefs.chance(a, kStart) < near);
}

TEST_CASE("chance: the seller's word counts if it is newer than his answer") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  const double unknown = w.beliefs.chance(pool, kStart);
  const double low = w.beliefs.chance(pool, model::Stock::kLow, kStart, kStart);
  const double high = w.beliefs.chance(pool, model::Stock::kHigh, kStart, kStart);
  CHECK(unknown < low);
  CHECK(low < high);
  w.learn(pool, LaunchResult::kSoldOut, kStart + 1min);
  CHECK(w.beliefs.chance(pool, model::Stock::kHigh, kStart, kStart + 2min) == w.beliefs.chance(pool, kStart + 2min));
  CHECK(w.beliefs.chance(pool, model::Stock::kHigh, kStart + 90s, kStart + 2min) > 0.9);
}

TEST_CASE("traits: readiness, start and answer are learnt, also from kin") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  const PoolId kin = w.pools.intern(key("a", "elsewhere"));
  CHECK(w.beliefs.traits(pool, kStart).readiness == Approx(0.95));
  CHECK(w.beliefs.traits(pool, kStart).give_up > 180s);
  base::TimePoint t = kStart;
  for (int i = 0; i < 20; ++i) {
    t += 1min;
    w.learn(pool, LaunchResult::kAccepted, t, "pod", 5s);
    w.learn(pool, LaunchResult::kRan, t, "pod", 20s);
    w.learn(pool, LaunchResult::kEnded, t);
  }
  const Traits good = w.beliefs.traits(pool, t + 1min);
  CHECK(good.readiness > 0.97);
  CHECK(good.start_hours * 3600 < 35);
  CHECK(good.answer_hours * 3600 == Approx(5));
  CHECK(good.give_up == 180s);
  const double start_of_kin = w.beliefs.traits(kin, t + 1min).start_hours;
  const double start_of_stranger = w.beliefs.traits(w.pools.intern(key("b")), t + 1min).start_hours;
  CHECK(start_of_kin < start_of_stranger);
  for (int i = 0; i < 20; ++i) w.learn(pool, LaunchResult::kNeverRan, t);
  CHECK(w.beliefs.traits(pool, t + 2min).readiness < 0.75);
}

TEST_CASE("traits: spot is taken back more often, and young pools more often still") {
  World w;
  const PoolId spot = w.pools.intern(key("a", "r", 1, model::CapacityType::kSpot));
  const PoolId on_demand = w.pools.intern(key("a", "r"));
  CHECK(w.beliefs.traits(spot, kStart).hazard == Approx(0.15));
  CHECK(w.beliefs.traits(on_demand, kStart).hazard == Approx(0.0005));
  w.learn(spot, LaunchResult::kSoldOut, kStart);
  CHECK(w.beliefs.traits(spot, kStart + 2min).hazard == Approx(0.45));
  CHECK(w.beliefs.traits(spot, kStart + 24h).hazard == Approx(0.15 * 0.3).epsilon(0.2));
}

TEST_CASE("traits: the same within a minute, whenever they are asked for") {
  World w;
  World v;
  const PoolId a = w.pools.intern(key("a", "r", 1, model::CapacityType::kSpot));
  const PoolId b = v.pools.intern(key("a", "r", 1, model::CapacityType::kSpot));
  w.learn(a, LaunchResult::kSoldOut, kStart);
  v.learn(b, LaunchResult::kSoldOut, kStart);
  w.beliefs.traits(a, kStart + 61s);
  CHECK(w.beliefs.traits(a, kStart + 119s).hazard == v.beliefs.traits(b, kStart + 119s).hazard);
  CHECK(w.beliefs.stamp(a, kStart + 61s) == w.beliefs.stamp(a, kStart + 119s));
  CHECK_FALSE(w.beliefs.stamp(a, kStart + 119s) == w.beliefs.stamp(a, kStart + 120s));
}

// ---- what each result closes

TEST_CASE("sold out closes the pool alone, and one caller probes it") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  const PoolId kin = w.pools.intern(key("a", "elsewhere"));
  CHECK(w.learn(pool, LaunchResult::kSoldOut, kStart) == NextStep::kChooseAgain);
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kCooling);
  CHECK(w.beliefs.opening(pool, 1, kStart).at == kStart + 60s);
  CHECK(w.beliefs.opening(pool, 1, kStart).price == 120s);
  CHECK(w.beliefs.opening(kin, 1, kStart).why == Closed::kNo);
  CHECK_FALSE(w.begin(pool, kStart + 59s));
  int callers = 0;
  for (int i = 0; i < 1000; ++i) callers += w.begin(pool, kStart + 60s, std::to_string(i)) ? 1 : 0;
  CHECK(callers == 1);
  CHECK(w.beliefs.opening(pool, 1, kStart + 60s).why == Closed::kProbed);
  CHECK(w.learn(pool, LaunchResult::kAccepted, kStart + 62s, "0") == NextStep::kGoOn);
  CHECK(w.beliefs.opening(pool, 1, kStart + 62s).why == Closed::kNo);
}

TEST_CASE("a lost instance closes its pool") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  CHECK(w.learn(pool, LaunchResult::kLost, kStart) == NextStep::kChooseAgain);
  CHECK(w.beliefs.opening(pool, 1, kStart).at == kStart + 60s);
}

TEST_CASE("a quota closes what shares it, until something ends or its time has come") {
  World w;
  const PoolId pool = w.pools.intern(key("a", "us-east-1a", 2));
  const PoolId zone = w.pools.intern(key("a", "us-east-1b", 1));
  const PoolId region = w.pools.intern(key("a", "us-west-1a", 1));
  w.learn(pool, LaunchResult::kAccepted, kStart, "first");
  CHECK(w.learn(pool, LaunchResult::kQuota, kStart, "second") == NextStep::kChooseAgain);
  CHECK(w.beliefs.opening(pool, 2, kStart).why == Closed::kQuota);
  CHECK(w.beliefs.opening(zone, 2, kStart).why == Closed::kQuota);
  CHECK(w.beliefs.opening(zone, 1, kStart).why == Closed::kNo);  // four were too many; nobody said that three are
  CHECK(w.beliefs.opening(region, 2, kStart).why == Closed::kNo);
  CHECK(w.beliefs.opening(zone, 2, kStart).at == kStart + 15min);
  CHECK(w.beliefs.chance(pool, kStart) == 0.995);
  w.learn(pool, LaunchResult::kEnded, kStart + 1min, "first");
  CHECK(w.beliefs.opening(pool, 2, kStart + 1min).why == Closed::kNo);
  CHECK(w.beliefs.opening(pool, 4, kStart + 1min).why == Closed::kQuota);
}

TEST_CASE("a quota of the whole provider closes the family everywhere") {
  World w;
  const PoolId pool = w.pools.intern(key("a", "us-east-1a"));
  const PoolId region = w.pools.intern(key("a", "us-west-1a"));
  Beliefs::Report report;
  report.pool = pool;
  report.result = LaunchResult::kQuota;
  report.whole_provider = true;
  w.beliefs.learn(report, kStart);
  CHECK(w.beliefs.opening(region, 1, kStart).why == Closed::kQuota);
}

TEST_CASE("a rate limit closes the provider for as long as it asks, and halves the rate") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  const PoolId kin = w.pools.intern(key("a", "elsewhere"));
  const PoolId other = w.pools.intern(key("b"));
  const base::ProviderName a("a");
  CHECK(w.beliefs.rate_share(a, kStart) == 1);
  Beliefs::Report report;
  report.pool = pool;
  report.result = LaunchResult::kRateLimited;
  report.at_least = 20s;
  CHECK(w.beliefs.learn(report, kStart) == NextStep::kQueue);
  CHECK(w.beliefs.opening(kin, 1, kStart).why == Closed::kRateLimited);
  CHECK(w.beliefs.opening(kin, 1, kStart).at == kStart + 20s);
  CHECK(w.beliefs.opening(other, 1, kStart).why == Closed::kNo);
  CHECK(w.beliefs.rate_share(a, kStart) == 0.5);
  w.beliefs.learn(report, kStart + 100ms);
  CHECK(w.beliefs.rate_share(a, kStart) == 0.5);
  CHECK(w.beliefs.rate_share(a, kStart + 2min) == Approx(0.7));
  CHECK(w.beliefs.rate_share(a, kStart + 10min) == 1);
  CHECK(w.beliefs.chance(pool, kStart) == Approx(0.7));
}

TEST_CASE("refused credentials close the provider until they were replaced, or for five minutes") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  CHECK(w.learn(pool, LaunchResult::kCredentials, kStart) == NextStep::kChooseAgain);
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kCredentials);
  CHECK(w.beliefs.opening(pool, 1, kStart).at == kStart + 5min);
  w.beliefs.credentials_changed(base::ProviderName("a"));
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kNo);
}

TEST_CASE("five failures within a minute open the breaker of a provider, four do not") {
  for (const LaunchResult result : {LaunchResult::kBroken, LaunchResult::kUnanswered}) {
    World w;
    const PoolId pool = w.pools.intern(key("a"));
    for (int i = 0; i < 4; ++i) {
      CHECK(w.learn(pool, result, kStart + i * 10s) ==
            (result == LaunchResult::kBroken ? NextStep::kChooseAgain : NextStep::kLookUp));
    }
    CHECK(w.beliefs.opening(pool, 1, kStart + 30s).why == Closed::kNo);
    w.learn(pool, result, kStart + 61s);
    CHECK(w.beliefs.opening(pool, 1, kStart + 61s).why == Closed::kNo);
    for (int i = 0; i < 2; ++i) w.learn(pool, result, kStart + 62s);
    CHECK(w.beliefs.opening(pool, 1, kStart + 62s).why == Closed::kProviderSick);
    CHECK(w.beliefs.opening(pool, 1, kStart + 62s).at == kStart + 92s);
    CHECK(w.beliefs.chance(pool, kStart + 62s) == Approx(0.7));
    // Then one probe; when it fails it is twice as long.
    REQUIRE(w.begin(pool, kStart + 92s, "probe"));
    CHECK_FALSE(w.begin(pool, kStart + 92s, "second"));
    w.learn(pool, result, kStart + 93s, "probe");
    CHECK(w.beliefs.opening(pool, 1, kStart + 93s).at == kStart + 93s + 60s);
  }
}

TEST_CASE("an offer that changed is left alone until it was listed again") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  const model::Offer offer = offer_of("a");
  CHECK_FALSE(w.beliefs.outdated(offer, kStart));
  CHECK(w.learn(pool, LaunchResult::kOfferChanged, kStart) == NextStep::kListAgain);
  CHECK(w.beliefs.outdated(offer, kStart - 10s));
  CHECK(w.beliefs.outdated(offer, kStart));
  CHECK_FALSE(w.beliefs.outdated(offer, kStart + 1s));
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kNo);
}

TEST_CASE("an offer that refuses a pod is left alone by such pods, until it is another offer") {
  World w;
  model::Offer offer = offer_of("a");
  Beliefs::Report report;
  report.pool = w.pools.intern(pool_of(offer));
  report.offer = offer.id;
  report.result = LaunchResult::kUnsupported;
  report.pods = 7;
  report.message = "no";
  report.digest = digest_of(offer);
  CHECK(w.beliefs.learn(report, kStart) == NextStep::kChooseAgain);
  REQUIRE(w.beliefs.refusal(offer, 7) != nullptr);
  CHECK(*w.beliefs.refusal(offer, 7) == "no");
  CHECK(w.beliefs.refusal(offer, 8) == nullptr);
  offer.price_per_hour = base::Money::from_micros(5);
  CHECK(w.beliefs.refusal(offer, 7) != nullptr);
  offer.cuda_version = 1300;
  CHECK(w.beliefs.refusal(offer, 7) == nullptr);
}

TEST_CASE("a machine that never starts is left alone for a day, its pool when that happens often") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  Beliefs::Report report;
  report.pool = pool;
  report.host = "host-1";
  report.result = LaunchResult::kNeverRan;
  CHECK(w.beliefs.learn(report, kStart) == NextStep::kChooseAgain);
  CHECK(w.beliefs.host_blocked("host-1", kStart + 23h));
  CHECK_FALSE(w.beliefs.host_blocked("host-1", kStart + 24h));
  CHECK_FALSE(w.beliefs.host_blocked("host-2", kStart));
  CHECK_FALSE(w.beliefs.host_blocked("", kStart));
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kNo);
  for (int i = 0; i < 6; ++i) w.beliefs.learn(report, kStart);
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kCooling);
}

TEST_CASE("the pod's own fault teaches nothing") {
  World w;
  const PoolId pool = w.pools.intern(key("a"));
  CHECK(w.learn(pool, LaunchResult::kPodFault, kStart) == NextStep::kKeep);
  CHECK(w.beliefs.chance(pool, kStart) == Approx(0.7));
  CHECK(w.beliefs.traits(pool, kStart).readiness == Approx(0.95));
  CHECK(w.beliefs.opening(pool, 1, kStart).why == Closed::kNo);
}

}  // namespace spillway::core
