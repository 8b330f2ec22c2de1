// Something that can be bought now, at a price.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/base/shared_text.hpp"

namespace spillway::model {

enum class CapacityType : std::uint8_t { kOnDemand, kSpot, kReserved };
std::string_view to_string(CapacityType type);

/// Whom the machine belongs to: a data centre with a contract, or a stranger of a marketplace.
enum class Trust : std::uint8_t { kDatacenter, kCommunity };
std::string_view to_string(Trust trust);

/// How much of it there is, as the seller says. A hint: a full shelf still answers "sold out".
enum class Stock : std::uint8_t { kUnknown, kLow, kMedium, kHigh };

struct Offer {
  Offer() = default;
  base::ProviderName provider;
  base::OfferId id;
  base::SharedText region;      // the provider's word; empty if it has none
  base::SharedText country;     // ISO 3166-1 alpha-2 in capitals, of the machine itself; empty = unknown
  base::SharedText host;        // the machine, where the seller tells machines apart; otherwise empty
  std::string gpu_model;        // canonical name of model/gpu_catalog; empty without GPUs
  int gpu_count = 0;            // GPUs of the whole instance
  std::int64_t gpu_memory = 0;  // bytes of one GPU; 0 = unknown
  int cuda_version = 0;         // the newest that the driver can run; 12.4 is 1204; 0 = unknown
  std::int64_t cpu_milli = 0;   // 0 = unknown
  std::int64_t memory = 0;      // bytes; 0 = unknown
  CapacityType capacity_type = CapacityType::kOnDemand;
  Trust trust = Trust::kDatacenter;
  /// Per hour, for the whole instance. Empty: the provider has no price data; such an offer is never taken for free.
  std::optional<base::Money> price_per_hour;
  bool price_unreadable = false;  // the provider named a price that is no amount of money (NaN, 1e30, "free")
  base::Money setup_price;        // once per instance
  /// Billed in steps of `billing_grain`, at least `billing_minimum`; while it boots only if `boot_billed`.
  std::chrono::seconds billing_grain{1};
  std::chrono::seconds billing_minimum{0};
  bool boot_billed = true;
  bool available = true;  // false: sold here, but none now
  Stock stock = Stock::kUnknown;
  base::TimePoint seen_at;
};

}  // namespace spillway::model
