// A small market for tests of placement: a book, beliefs and a selector, filled at random from a seed.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/base/random.hpp"
#include "vk-provider/core/selector.hpp"

namespace spillway::core::test_market {

inline constexpr base::TimePoint kStart{std::chrono::hours(100)};

struct Market {
  OfferBook book;
  Beliefs beliefs{book.pools()};
  Selector selector{book, beliefs};
  base::TimePoint now = kStart;

  explicit Market(const std::vector<std::string>& providers = {"a", "b", "c"}) {
    std::vector<ProviderAbility> abilities;
    for (const std::string& name : providers) {
      abilities.emplace_back();
      abilities.back().name = name;
    }
    selector.set_abilities(std::move(abilities));
  }

  void list(const std::vector<model::Offer>& offers) {
    std::map<base::ProviderName, std::vector<model::Offer>> by_provider;
    for (const model::Offer& o : offers) by_provider[o.provider].push_back(o);
    for (auto& [provider, list] : by_provider) book.update(provider, std::move(list), now);
  }

  Decision choose(const Shape& shape) {
    Query query;
    query.shape = &shape;
    query.pods = shape.hash;
    return selector.choose(query, now);
  }

  PoolId pool(const model::Offer& offer) {
    for (const OfferRow& row : book.table().rows()) {
      if (row.offer->provider == offer.provider && row.offer->id == offer.id) return row.pool;
    }
    return {};
  }

  void learn(const model::Offer& offer, LaunchResult result, base::Duration took = std::chrono::seconds(3),
             const std::string& who = "pod") {
    Beliefs::Report report;
    report.pool = pool(offer);
    report.offer = offer.id;
    report.host = offer.host;
    report.who = base::InstanceTag(who);
    report.result = result;
    report.took = took;
    report.pods = 1;  // others
    report.digest = digest_of(offer);
    beliefs.learn(report, now);
  }
};

inline model::Offer an_offer(const std::string& provider, const std::string& id, std::int64_t micros) {
  model::Offer out;
  out.provider = base::ProviderName(provider);
  out.id = base::OfferId(id);
  out.region = base::SharedText("region-" + id);
  out.gpu_model = "H100";
  out.gpu_count = 1;
  out.gpu_memory = std::int64_t{80} << 30U;
  out.price_per_hour = base::Money::from_micros(micros);
  return out;
}

/// One GPU; $1 per hour of delay, unless `value` (micro-dollars) says otherwise.
inline Shape a_shape(std::int64_t value = 1'000'000, bool spot = true) {
  Requirements needs;
  needs.gpu_count = 1;
  needs.gpu_resource = "nvidia.com/gpu";
  needs.wishes.value_of_time = base::Money::from_micros(value);
  model::NodeProfile profile;
  if (spot) {
    needs.wishes.capacity_types = {model::CapacityType::kSpot, model::CapacityType::kOnDemand};
    profile.offers.capacity_types = needs.wishes.capacity_types;
  }
  return make_shape(needs, profile, "Job");
}

/// Different in all that an index looks at.
inline std::vector<model::Offer> random_offers(base::Random& random, int count) {
  std::vector<model::Offer> out;
  for (int i = 0; i < count; ++i) {
    const std::string provider(1, static_cast<char>('a' + random.next() % 3));
    model::Offer o =
        an_offer(provider, "o" + std::to_string(i), 500'000 + static_cast<std::int64_t>(random.next() % 4'000'000));
    o.region = base::SharedText("r" + std::to_string(random.next() % 6));
    o.gpu_model = random.next() % 2 == 0 ? "H100" : "L40S";
    o.gpu_memory = std::int64_t{o.gpu_model == "H100" ? 80 : 48} << 30U;
    o.gpu_count = random.next() % 4 == 0 ? 2 : 1;
    if (o.gpu_count == 2) o.price_per_hour = *o.price_per_hour * 2;
    o.capacity_type = random.next() % 3 == 0 ? model::CapacityType::kSpot : model::CapacityType::kOnDemand;
    o.trust = random.next() % 5 == 0 ? model::Trust::kCommunity : model::Trust::kDatacenter;
    o.stock = static_cast<model::Stock>(random.next() % 4);
    o.billing_minimum = std::chrono::seconds(random.next() % 3 * 600);
    out.push_back(std::move(o));
  }
  return out;
}

/// Outcomes at random over the last hours.
inline void random_past(Market& market, const std::vector<model::Offer>& offers, base::Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    const model::Offer& o = offers[random.next() % offers.size()];
    const auto result = static_cast<LaunchResult>(random.next() % static_cast<std::uint64_t>(LaunchResult::kCount));
    market.learn(o, result, std::chrono::seconds(1 + random.next() % 300));
    market.now += std::chrono::seconds(random.next() % 120);
  }
}

}  // namespace spillway::core::test_market
