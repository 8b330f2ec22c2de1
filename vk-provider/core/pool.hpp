// A pool is an offer without its price: what can be sold out, come back, be slow or be taken back. What is learnt is
// learnt of pools, and of their kin.
//
// PoolIndex gives each pool that was ever seen a small number. It never forgets one: there are as many as places,
// models and tiers, however often a market's single offers come and go. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/model/offer.hpp"

namespace spillway::core {

enum class PoolId : std::uint32_t {};

struct PoolKey {
  base::ProviderName provider;
  base::SharedText region;
  std::string gpu_model;
  int gpu_count = 0;
  std::int64_t cpu_milli = 0;  // without GPUs only: of those, the size of the machine tells pools apart
  model::CapacityType capacity_type{};
  model::Trust trust{};

  bool operator==(const PoolKey&) const = default;
};

PoolKey pool_of(const model::Offer& offer);
/// Of all of an offer but its price, its stock and its age.
std::uint64_t digest_of(const model::Offer& offer);

struct PoolKeyHash {
  size_t operator()(const PoolKey& key) const;
};

/// Whom a pool belongs to, as numbers from 0.
struct Kin {
  std::uint32_t provider = 0;
  std::uint32_t family = 0;  // same provider, model and tier
  std::uint32_t place = 0;   // same family, and same region; zones of one region are one place
};

class PoolIndex {
 public:
  PoolId intern(const PoolKey& key);

  const PoolKey& key(PoolId pool) const { return pools_[static_cast<size_t>(pool)].key; }
  const Kin& kin(PoolId pool) const { return pools_[static_cast<size_t>(pool)].kin; }
  /// A provider's number; gives it one if it has none.
  std::uint32_t provider(const base::ProviderName& name);
  /// Empty if nothing of it was ever seen.
  std::optional<std::uint32_t> find_provider(const base::ProviderName& name) const;
  size_t size() const { return pools_.size(); }
  size_t providers() const { return providers_.size(); }
  size_t families() const { return families_.size(); }
  size_t places() const { return places_.size(); }

 private:
  struct Pool {
    PoolKey key;
    Kin kin;
  };
  std::vector<Pool> pools_;
  std::unordered_map<PoolKey, PoolId, PoolKeyHash> ids_;
  std::unordered_map<base::ProviderName, std::uint32_t> providers_;
  std::unordered_map<PoolKey, std::uint32_t, PoolKeyHash> families_;
  std::unordered_map<PoolKey, std::uint32_t, PoolKeyHash> places_;
};

}  // namespace spillway::core
