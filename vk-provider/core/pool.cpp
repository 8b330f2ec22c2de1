#include "vk-provider/core/pool.hpp"

#include <functional>

namespace spillway::core {
namespace {

/// The region of a zone: what stands before the letter in `us-east-1a` and `europe-west4-b`.
base::SharedText region_of(const base::SharedText& place) {
  std::string_view text = place.str();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() < 3 || text.back() < 'a' || text.back() > 'z') return place;
  text.remove_suffix(1);
  if (text.back() == '-') text.remove_suffix(1);
  return is_digit(text.back()) ? base::SharedText(text) : place;
}

std::uint32_t number_of(std::unordered_map<PoolKey, std::uint32_t, PoolKeyHash>& known, const PoolKey& key) {
  return known.try_emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
}

}  // namespace

PoolKey pool_of(const model::Offer& offer) {
  PoolKey key;
  key.provider = offer.provider;
  key.region = offer.region;
  key.gpu_model = offer.gpu_model;
  key.gpu_count = offer.gpu_count;
  key.cpu_milli = offer.gpu_count == 0 ? offer.cpu_milli : 0;
  key.capacity_type = offer.capacity_type;
  key.trust = offer.trust;
  return key;
}

std::uint64_t digest_of(const model::Offer& offer) {
  std::uint64_t hash = PoolKeyHash{}(pool_of(offer));
  for (const std::int64_t value : {offer.gpu_memory, std::int64_t{offer.cuda_version}, offer.cpu_milli, offer.memory}) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
  }
  return hash;
}

size_t PoolKeyHash::operator()(const PoolKey& key) const {
  size_t hash = 0;
  const auto mix = [&](size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15U; };
  mix(std::hash<base::ProviderName>{}(key.provider));
  mix(std::hash<base::SharedText>{}(key.region));
  mix(std::hash<std::string>{}(key.gpu_model));
  mix(static_cast<size_t>(key.gpu_count) << 8U | static_cast<size_t>(key.capacity_type) << 4U |
      static_cast<size_t>(key.trust));
  mix(static_cast<size_t>(key.cpu_milli));
  return hash;
}

std::uint32_t PoolIndex::provider(const base::ProviderName& name) {
  return providers_.try_emplace(name, static_cast<std::uint32_t>(providers_.size())).first->second;
}

std::optional<std::uint32_t> PoolIndex::find_provider(const base::ProviderName& name) const {
  const auto it = providers_.find(name);
  return it == providers_.end() ? std::nullopt : std::optional(it->second);
}

PoolId PoolIndex::intern(const PoolKey& key) {
  const auto known = ids_.find(key);
  if (known != ids_.end()) return known->second;
  const PoolId id{static_cast<std::uint32_t>(pools_.size())};
  PoolKey kin = key;
  kin.gpu_count = 0;
  kin.cpu_milli = 0;
  kin.region = region_of(key.region);
  Kin numbers;
  numbers.provider = provider(key.provider);
  numbers.place = number_of(places_, kin);
  kin.region = base::SharedText();
  numbers.family = number_of(families_, kin);
  pools_.push_back({key, numbers});
  ids_.emplace(key, id);
  return id;
}

}  // namespace spillway::core
