#include "vk-provider/core/offer_check.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "vk-provider/core/pool.hpp"
#include "vk-provider/model/gpu_catalog.hpp"

namespace spillway::core {
namespace {

constexpr base::Money kMostPerHour = base::Money::from_micros(10'000'000'000);  // $10,000
constexpr int kMostGpus = 1024;
// The market is judged by so many prices of so many providers; and nobody sells for less than a fifth of it.
constexpr size_t kEnoughPrices = 5;
constexpr size_t kEnoughProviders = 3;
constexpr int kManyGpus = 4;
constexpr std::int64_t kFarBelow = 5;

std::optional<Flaw> flaw_of_price(const model::Offer& offer, bool own_machines) {
  if (offer.price_unreadable) return Flaw::kUnreadablePrice;
  if (offer.setup_price.micros() < 0) return Flaw::kNegativePrice;
  if (offer.setup_price > kMostPerHour) return Flaw::kHugePrice;
  if (!offer.price_per_hour) return std::nullopt;
  if (offer.price_per_hour->micros() < 0) return Flaw::kNegativePrice;
  if (*offer.price_per_hour > kMostPerHour) return Flaw::kHugePrice;
  const bool may_be_free = own_machines || offer.capacity_type == model::CapacityType::kReserved;
  if (offer.price_per_hour->micros() == 0 && !may_be_free) return Flaw::kFree;
  return std::nullopt;
}

std::optional<Flaw> flaw_of(const model::Offer& offer, bool own_machines) {
  if (offer.id.empty()) return Flaw::kNoId;
  const bool sane = offer.gpu_count >= 0 && offer.gpu_count <= kMostGpus && offer.gpu_memory >= 0 &&
                    offer.cpu_milli >= 0 && offer.memory >= 0 && offer.cuda_version >= 0 &&
                    offer.billing_grain.count() >= 1 && offer.billing_minimum.count() >= 0 &&
                    offer.gpu_model.empty() == (offer.gpu_count == 0);
  if (!sane) return Flaw::kImpossibleSize;
  if (offer.gpu_count > 0 && !own_machines && model::gpu_named(offer.gpu_model) == nullptr) return Flaw::kUnknownGpu;
  return flaw_of_price(offer, own_machines);
}

/// Drivers report a little less than what is sold, and clouds round: one model has one memory.
void tell_memory_as_sold(model::Offer& offer) {
  const model::GpuModel* const gpu = model::gpu_named(offer.gpu_model);
  if (gpu == nullptr) return;
  const std::int64_t off =
      offer.gpu_memory > gpu->memory ? offer.gpu_memory - gpu->memory : gpu->memory - offer.gpu_memory;
  if (offer.gpu_memory == 0 || off <= gpu->memory / 100 * 7) offer.gpu_memory = gpu->memory;
}

bool same(const model::Offer& a, const model::Offer& b) {
  return digest_of(a) == digest_of(b) && a.price_per_hour == b.price_per_hour && a.available == b.available &&
         a.host == b.host;
}

/// Which offers have a twin that says something else. `offers` is sorted by id.
std::vector<bool> contradicted(const std::vector<model::Offer>& offers) {
  std::vector<bool> out(offers.size(), false);
  for (size_t first = 0; first < offers.size();) {
    size_t end = first + 1;
    while (end < offers.size() && offers[end].id == offers[first].id) ++end;
    bool differ = false;
    for (size_t i = first + 1; i < end; ++i) differ = differ || !same(offers[first], offers[i]);
    for (size_t i = first; i < end; ++i) out[i] = differ;
    first = end;
  }
  return out;
}

/// The cheapest offer for each number of GPUs, of what else would be the same.
using Ladder = std::map<int, std::int64_t>;
using Ladders = std::map<std::tuple<std::string, model::CapacityType, model::Trust, std::string>, Ladder>;

/// n GPUs for less than half of what they cost one by one.
bool price_of_one(const model::Offer& offer, const Ladder& ladder) {
  for (const auto& [gpus, price] : ladder) {
    if (gpus >= offer.gpu_count) return false;
    if (offer.price_per_hour->micros() * 2 * gpus <= price * offer.gpu_count) return true;
  }
  return false;
}

void set_aside_prices_of_one(CheckedOffers& checked) {
  Ladders ladders;
  const auto key = [](const model::Offer& o) {
    return std::tuple(o.gpu_model, o.capacity_type, o.trust, o.region.str());
  };
  const auto judged = [](const model::Offer& o) {
    return o.gpu_count > 0 && o.price_per_hour && o.price_per_hour->micros() > 0;
  };
  for (const model::Offer& o : checked.sound) {
    if (!judged(o)) continue;
    const auto [it, added] = ladders[key(o)].try_emplace(o.gpu_count, o.price_per_hour->micros());
    if (!added) it->second = std::min(it->second, o.price_per_hour->micros());
  }
  std::vector<model::Offer> kept;
  for (model::Offer& o : checked.sound) {
    if (judged(o) && price_of_one(o, ladders[key(o)])) {
      checked.flawed.push_back({std::move(o), Flaw::kPricePerGpu});
    } else {
      kept.push_back(std::move(o));
    }
  }
  checked.sound = std::move(kept);
}

}  // namespace

std::string_view to_string(Flaw flaw) {
  switch (flaw) {
    case Flaw::kNoId: return "no_id";
    case Flaw::kDuplicateId: return "duplicate_id";
    case Flaw::kUnreadablePrice: return "unreadable_price";
    case Flaw::kNegativePrice: return "negative_price";
    case Flaw::kFree: return "free";
    case Flaw::kHugePrice: return "huge_price";
    case Flaw::kPricePerGpu: return "price_per_gpu";
    case Flaw::kUnknownGpu: return "unknown_gpu";
    case Flaw::kImpossibleSize: return "impossible_size";
    case Flaw::kCount: break;
  }
  return "";
}

CheckedOffers check_offers(std::vector<model::Offer> offers, bool own_machines) {
  CheckedOffers out;
  std::ranges::sort(offers, [](const model::Offer& a, const model::Offer& b) {
    return std::tie(a.id, a.price_per_hour) < std::tie(b.id, b.price_per_hour);
  });
  const std::vector<bool> twins_differ = contradicted(offers);
  for (size_t i = 0; i < offers.size(); ++i) {
    model::Offer& offer = offers[i];
    std::optional<Flaw> flaw = flaw_of(offer, own_machines);
    if (!flaw && twins_differ[i]) flaw = Flaw::kDuplicateId;
    if (flaw) {
      out.flawed.push_back({std::move(offer), *flaw});
      continue;
    }
    if (!out.sound.empty() && out.sound.back().id == offer.id) continue;  // the same thing twice
    tell_memory_as_sold(offer);
    out.sound.push_back(std::move(offer));
  }
  if (!own_machines) set_aside_prices_of_one(out);
  return out;
}

void MarketCheck::add(const model::Offer& offer) {
  if (offer.gpu_count <= 0 || !offer.price_per_hour || offer.price_per_hour->micros() <= 0) return;
  Prices& prices = prices_[{offer.gpu_model, offer.capacity_type}];
  prices.per_gpu.push_back(offer.price_per_hour->micros() / offer.gpu_count);
  if (prices.providers.size() < kEnoughProviders &&
      std::ranges::find(prices.providers, offer.provider.str()) == prices.providers.end()) {
    prices.providers.push_back(offer.provider.str());
  }
}

void MarketCheck::finish() {
  for (auto& [key, prices] : prices_) {
    if (prices.per_gpu.size() < kEnoughPrices || prices.providers.size() < kEnoughProviders) continue;
    const auto middle = prices.per_gpu.begin() + static_cast<std::ptrdiff_t>(prices.per_gpu.size() / 2);
    std::ranges::nth_element(prices.per_gpu, middle);
    prices.median = *middle;
  }
}

bool MarketCheck::too_cheap(const model::Offer& offer) const {
  if (offer.gpu_count < kManyGpus || !offer.price_per_hour || offer.price_per_hour->micros() <= 0) return false;
  const auto it = prices_.find({offer.gpu_model, offer.capacity_type});
  return it != prices_.end() && it->second.median > 0 &&
         offer.price_per_hour->micros() / offer.gpu_count <= it->second.median / kFarBelow;
}

}  // namespace spillway::core
