#include "test/bench/placebench/storm_cloud.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "test/bench/placebench/draw.hpp"

namespace spillway::placebench {
namespace {

constexpr int kOffers = 5;
constexpr int kQuota = 50;  // instances of one provider
constexpr int kStock = 30;  // of one offer
constexpr int kCallsPerSecond = 10;
constexpr Seconds kDownFrom = 300;
constexpr Seconds kDownUntil = 2100;
constexpr Seconds kListedAfter = 8;  // what was bought shows up so much later
constexpr Seconds kGoneAfter = 5;

}  // namespace

bool StormCloud::down(int provider, Seconds t) { return provider == kStormDown && t >= kDownFrom && t < kDownUntil; }

std::int64_t StormCloud::price(int provider, int offer, Seconds t) const {
  const std::int64_t list = 1'000'000 + 90'000 * provider + 210'000 * offer;
  if (provider != kStormMoving) return list;
  const auto minute = static_cast<std::uint64_t>(t / 60);
  return list + static_cast<std::int64_t>(mixed_all(seed_, 1U, offer, minute) % 100'000);
}

std::vector<model::Offer> StormCloud::offers(int provider, Seconds t) const {
  std::vector<model::Offer> out;
  for (int i = 0; i < kOffers; ++i) {
    model::Offer& offer = out.emplace_back();
    offer.id = base::OfferId(fmt::format("o{}", i));
    offer.region = base::SharedText(fmt::format("r{}", i % 2));
    offer.gpu_model = i < 3 ? "H100" : "A100-80GB";
    offer.gpu_count = 1;
    offer.gpu_memory = std::int64_t{80} << 30U;
    offer.price_per_hour = base::Money::from_micros(price(provider, i, t));
  }
  return out;
}

int StormCloud::held(int provider, int offer, Seconds t) const {
  return static_cast<int>(std::ranges::count_if(instances_, [&](const auto& entry) {
    const Instance& i = entry.second;
    return i.provider == provider && (offer < 0 || i.offer == offer) && (i.gone == 0 || i.gone > t);
  }));
}

std::optional<StormCloud::Answer> StormCloud::refusal(int provider, int offer, base::Money at_most, Seconds t) {
  std::vector<Seconds>& recent = recent_[provider];
  std::erase_if(recent, [&](Seconds s) { return s <= t - 1; });
  if (down(provider, t)) return Answer{base::ErrorKind::kUnavailable, false, {}};
  if (static_cast<int>(recent.size()) >= kCallsPerSecond) {
    ++rate_limited_;
    return Answer{base::ErrorKind::kRateLimited, false, std::chrono::seconds(1)};
  }
  recent.push_back(t);
  if (held(provider, -1, t) >= kQuota) return Answer{base::ErrorKind::kQuota, false, {}};
  const bool out =
      provider == kStormScarce && unit(mixed_all(seed_, 2U, offer, static_cast<std::uint64_t>(t / 600))) < 0.6;
  if (out || held(provider, offer, t) >= kStock) return Answer{base::ErrorKind::kNoCapacity, false, {}};
  if (price(provider, offer, t) > at_most.micros()) return Answer{base::ErrorKind::kConflict, false, {}};
  return std::nullopt;
}

StormCloud::Answer StormCloud::create(int provider, int offer, const std::string& tag, base::Money at_most, Seconds t) {
  ++calls_;
  std::erase_if(instances_, [&](const auto& e) { return e.second.gone != 0 && e.second.gone <= t; });
  if (const auto refused = refusal(provider, offer, at_most, t)) return *refused;
  const std::uint64_t luck = mixed_all(seed_, 3U, calls_);
  const bool breaks = provider == kStormGhosts && luck % 2 == 0;
  if (breaks && luck % 4 == 0) return {base::ErrorKind::kUnknownOutcome, false, {}};
  instances_[tag] = {provider, offer, t, 0, price(provider, offer, t)};
  if (!breaks) return {{}, true, {}};
  ++ghosts_;
  return {base::ErrorKind::kUnknownOutcome, false, {}};
}

std::optional<bool> StormCloud::holds(int provider, const std::string& tag, Seconds t) const {
  if (down(provider, t)) return std::nullopt;
  const auto it = instances_.find(tag);
  return it != instances_.end() && (it->second.gone == 0 || it->second.gone > t) &&
         t - it->second.since >= kListedAfter;
}

bool StormCloud::terminate(int provider, const std::string& tag, Seconds t) {
  if (down(provider, t)) return false;
  const auto it = instances_.find(tag);
  if (it != instances_.end() && it->second.gone == 0) it->second.gone = t + kGoneAfter;
  return true;
}

std::int64_t StormCloud::burn(Seconds t) const {
  std::int64_t sum = 0;
  for (const auto& [tag, i] : instances_) {
    if (i.gone == 0 || i.gone > t) sum += i.price;
  }
  return sum;
}

size_t StormCloud::alive(Seconds t) const {
  return static_cast<size_t>(
      std::ranges::count_if(instances_, [&](const auto& e) { return e.second.gone == 0 || e.second.gone > t; }));
}

int StormCloud::alive_of(const std::string& pod, Seconds t) const {
  int count = 0;
  for (auto it = instances_.lower_bound(pod + "."); it != instances_.end() && it->first.starts_with(pod + "."); ++it) {
    if (it->second.gone == 0 || it->second.gone > t) ++count;
  }
  return count;
}

}  // namespace spillway::placebench
