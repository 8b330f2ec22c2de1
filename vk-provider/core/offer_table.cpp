#include "vk-provider/core/offer_table.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace spillway::core {
namespace {

/// What is equal for all offers of a kind: all that core/offer_filter's `filter_of_kind` looks at.
struct KindKey {
  std::string_view gpu_model;
  int gpu_count = 0;
  std::int64_t gpu_memory = 0;
  int cuda_version = 0;
  model::CapacityType capacity_type{};
  model::Trust trust{};
  bool operator==(const KindKey&) const = default;
};
struct KindHash {
  size_t operator()(const KindKey& k) const {
    size_t hash = std::hash<std::string_view>{}(k.gpu_model);
    for (const auto value :
         {static_cast<size_t>(k.gpu_count), static_cast<size_t>(k.gpu_memory), static_cast<size_t>(k.cuda_version),
          static_cast<size_t>(k.capacity_type), static_cast<size_t>(k.trust)}) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
    }
    return hash;
  }
};

}  // namespace

OfferTable::OfferTable(const std::vector<const model::Offer*>& offers, PoolIndex& pools, std::uint64_t version)
    : version_(version) {
  std::unordered_map<KindKey, std::uint32_t, KindHash> numbers;
  rows_.reserve(offers.size());
  for (const model::Offer* const offer : offers) {
    if (!offer->price_per_hour) continue;
    OfferRow row;
    row.price = offer->price_per_hour->micros();
    row.offer = offer;
    row.pool = pools.intern(pool_of(*offer));
    row.provider = pools.kin(row.pool).provider;
    const KindKey key{offer->gpu_model,    offer->gpu_count,     offer->gpu_memory,
                      offer->cuda_version, offer->capacity_type, offer->trust};
    row.kind = numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second;
    rows_.push_back(row);
  }
  std::ranges::sort(rows_, [](const OfferRow& a, const OfferRow& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    if (a.price != b.price) return a.price < b.price;
    if (a.provider != b.provider) return a.offer->provider < b.offer->provider;
    return a.offer->id < b.offer->id;
  });
  kinds_.resize(numbers.size());
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    OfferKind& kind = kinds_[rows_[i].kind];
    if (kind.sample == nullptr) {
      kind.sample = rows_[i].offer;
      kind.begin = i;
    }
    kind.end = i + 1;
  }
}

}  // namespace spillway::core
