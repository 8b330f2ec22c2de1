// What a pod asks of the machine that is rented for it, beyond what its containers need: its annotations, read.
//
// A value, made by core/wishes. An empty list and an empty optional mean that the pod says nothing; then the node's
// profile and the kind of the pod's owner decide.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::model {

/// How much waiting hurts: each stands for a value of time.
enum class Tier : std::uint8_t { kBatch, kStandard, kInteractive, kCritical };
std::string_view to_string(Tier tier);

struct Wishes {
  Wishes() = default;
  std::vector<std::string> gpu_models;       // canonical names of model/gpu_catalog
  std::int64_t min_vram = 0;                 // bytes of one GPU
  int cuda_min = 0;                          // 12.4 is 1204
  std::optional<base::Money> max_price;      // per hour, of the whole instance
  std::optional<base::Money> value_of_time;  // per hour of delay
  std::optional<base::Duration> expected_runtime;
  std::vector<CapacityType> capacity_types;
  /// Work is saved so often; 0: nothing is ever lost (a stateless server).
  std::optional<base::Duration> checkpoint_interval;
  std::int64_t image_size = 0;         // bytes that a new machine has to fetch
  std::vector<std::string> regions;    // providers' words
  std::vector<std::string> countries;  // ISO 3166-1 alpha-2, capitals
  std::vector<base::ProviderName> providers;
  std::optional<Tier> tier;
  std::optional<Trust> trust;  // kCommunity: machines of strangers are welcome, too

  bool operator==(const Wishes&) const = default;
};

}  // namespace spillway::model
