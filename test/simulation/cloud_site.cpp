#include "test/simulation/cloud_site.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::simulation {
namespace {

namespace fake = providers::fake;

/// What simulated clouds sell of the catalogue: enough for a choice, few enough to try them all.
bool is_sold(const fake::CloudOffer& sold) {
  constexpr std::array<std::string_view, 6> kSold{"cpu-4", "t4", "l4", "rtx4090-community", "a6000", "h100"};
  return std::ranges::find(kSold, sold.offer.id.str()) != kSold.end();
}

fake::CloudSettings settings_of(std::uint64_t seed, const CloudTraits& traits,
                                std::function<void(const fake::Sight&)> seen) {
  fake::CloudSettings settings;
  std::erase_if(settings.offers, [](const fake::CloudOffer& sold) { return !is_sold(sold); });
  settings.seed = seed;
  settings.boot_time = std::chrono::milliseconds(traits.boot);
  settings.price_step = std::chrono::milliseconds(traits.step);
  settings.price_permille = static_cast<int>(traits.permille);
  settings.bills_stopped = traits.keeps == 0;
  settings.unique_tags = traits.unique != 0;
  if (traits.stock > 0) {
    for (fake::CloudOffer& offer : settings.offers) offer.stock = static_cast<int>(traits.stock);
  }
  settings.observer = std::move(seen);
  return settings;
}

}  // namespace

CloudSite::CloudSite(std::uint64_t seed, int number, const CloudTraits& t, base::Now start,
                     std::function<void(const fake::Sight&)> seen)
    : index(number),
      name("cloud" + std::to_string(number)),
      traits(t),
      cloud(settings_of(mix(seed, name), t, std::move(seen)), start),
      latencies(seed, name + " latency") {
  apply_traits(start.steady);
}

void CloudSite::apply_traits(base::TimePoint now) {
  if (traits.lag == 0) return;
  fake::FaultRule lag;
  lag.effect = fake::Effect::kLaggingList;
  lag.duration = std::chrono::milliseconds(traits.lag);
  (void)cloud.add_fault(lag, now);
}

}  // namespace spillway::simulation
