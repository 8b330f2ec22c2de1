#include "vk-provider/core/shape.hpp"

#include <algorithm>
#include <functional>

namespace spillway::core {
namespace {

using model::CapacityType;

// Half of all GPU jobs end within half an hour, the mean is hours: the middle costs least when it is wrong.
constexpr base::Duration kUsualRuntime = std::chrono::hours(2);

class Hash {
 public:
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15U; }
  void mix(std::string_view text) { mix(std::hash<std::string_view>{}(text)); }
  template <class T>
  void mix_list(const std::vector<T>& list) {
    mix(list.size());
    for (const T& item : list) {
      if constexpr (std::is_enum_v<T>) {
        mix(static_cast<std::uint64_t>(item));
      } else if constexpr (std::is_same_v<T, std::string>) {
        mix(std::string_view(item));
      } else {
        mix(std::string_view(item.str()));
      }
    }
  }
  void mix(const std::optional<base::Money>& money) {
    mix(money ? static_cast<std::uint64_t>(money->micros()) : ~0ULL);
  }
  void mix(const std::optional<base::Duration>& d) { mix(d ? static_cast<std::uint64_t>(d->count()) : ~0ULL); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 1;
};

std::uint64_t hash_of(const Shape& s) {
  Hash hash;
  hash.mix(static_cast<std::uint64_t>(s.gpu_count));
  hash.mix(std::string_view(s.gpu_resource));
  hash.mix(static_cast<std::uint64_t>(s.cpu_milli));
  hash.mix(static_cast<std::uint64_t>(s.memory));
  for (size_t c = 0; c < static_cast<size_t>(model::Capability::kCount); ++c) {
    if (s.capabilities.has(static_cast<model::Capability>(c))) hash.mix(c);
  }
  hash.mix_list(s.node.providers);
  hash.mix_list(s.node.regions);
  hash.mix_list(s.node.gpu_models);
  hash.mix_list(s.node.capacity_types);
  hash.mix(static_cast<std::uint64_t>(s.node.min_gpu_memory));
  hash.mix(s.node_cap);
  hash.mix_list(s.pod.gpu_models);
  hash.mix_list(s.pod.capacity_types);
  hash.mix_list(s.pod.regions);
  hash.mix_list(s.pod.countries);
  hash.mix_list(s.pod.providers);
  hash.mix(static_cast<std::uint64_t>(s.pod.min_vram));
  hash.mix(static_cast<std::uint64_t>(s.pod.cuda_min));
  hash.mix(static_cast<std::uint64_t>(s.pod.image_size));
  hash.mix(s.pod.max_price);
  hash.mix(static_cast<std::uint64_t>(s.spot_tolerated) * 2 + static_cast<std::uint64_t>(s.strangers_tolerated));
  hash.mix(static_cast<std::uint64_t>(s.worth.value_of_time.micros()));
  hash.mix(static_cast<std::uint64_t>(s.worth.runtime.count()));
  hash.mix(s.worth.checkpoint);
  return hash.value();
}

bool tolerates_spot(const model::Wishes& wishes, const model::OfferFilter& node, bool job) {
  if (!wishes.capacity_types.empty()) {
    return std::ranges::find(wishes.capacity_types, CapacityType::kSpot) != wishes.capacity_types.end();
  }
  const bool nothing_else =
      std::ranges::all_of(node.capacity_types, [](CapacityType t) { return t == CapacityType::kSpot; });
  return nothing_else || (job && wishes.checkpoint_interval);
}

Worth worth_of(const model::Wishes& wishes, std::string_view owner_kind) {
  const bool job = owner_kind == "Job";
  Worth worth;
  const model::Tier tier = wishes.tier.value_or(job ? model::Tier::kBatch : model::Tier::kStandard);
  worth.value_of_time = wishes.value_of_time.value_or(value_of(tier));
  worth.runtime = wishes.expected_runtime.value_or(kUsualRuntime);
  worth.checkpoint = wishes.checkpoint_interval;
  if (!worth.checkpoint && owner_kind == "ReplicaSet") worth.checkpoint = base::Duration(0);
  return worth;
}

}  // namespace

base::Money value_of(model::Tier tier) {
  switch (tier) {
    case model::Tier::kBatch: return base::Money::from_micros(200'000);
    case model::Tier::kStandard: return base::Money::from_micros(1'000'000);
    case model::Tier::kInteractive: return base::Money::from_micros(5'000'000);
    case model::Tier::kCritical: return base::Money::from_micros(20'000'000);
  }
  return base::Money::from_micros(1'000'000);
}

Shape make_shape(const Requirements& needs, const model::NodeProfile& profile, std::string_view owner_kind) {
  Shape shape;
  shape.gpu_count = needs.gpu_count;
  shape.gpu_resource = needs.gpu_resource;
  shape.cpu_milli = needs.cpu_milli;
  shape.memory = needs.memory;
  shape.capabilities = needs.capabilities;
  shape.node = profile.offers;
  shape.node_cap = profile.max_price_per_hour;
  shape.pod = needs.wishes;
  shape.spot_tolerated = tolerates_spot(needs.wishes, profile.offers, owner_kind == "Job");
  shape.strangers_tolerated =
      needs.wishes.trust ? *needs.wishes.trust == model::Trust::kCommunity : !needs.carries_secrets;
  shape.worth = worth_of(needs.wishes, owner_kind);
  shape.hash = hash_of(shape);
  return shape;
}

}  // namespace spillway::core
