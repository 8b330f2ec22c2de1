// What an offer must have so that a pod can go there at all; and for every offer that has it not, the first reason.
//
// Pure. Filters stand in the order in which they are asked, so that each rejected offer is counted once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/core/refusal.hpp"
#include "vk-provider/core/shape.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::core {

enum class Filter : std::uint8_t {
  // Of its provider.
  kProvider,    // the node, or the pod, does not use it
  kCapability,  // it cannot honour the pod
  // Of the kind of machine.
  kCapacityType,   // on-demand, spot, reserved: not of those that are allowed
  kSpotTolerance,  // spot, which the pod does not tolerate
  kTrust,          // a stranger's machine, for a pod that carries secrets or asks for a data centre
  kGpuCount,       // too few GPUs
  kNoGpuWanted,    // GPUs that the pod does not ask for
  kVendor,         // GPUs of another vendor
  kGpuModel,
  kGpuMemory,
  kCuda,  // too old a driver, or nobody knows
  // Of the offer.
  kRegion,
  kCountry,
  kCpu,
  kMemory,
  kNoPrice,
  kNodePrice,  // over the cap of the node
  kPodPrice,   // over the pod's own
  kSoldOut,
  // Of the moment.
  kStale,         // not confirmed for too long
  kBudget,        // more than a budget has left
  kHost,          // a machine that failed lately
  kRefused,       // refused such pods before
  kChanged,       // changed since it was listed
  kCredentials,   // its provider refuses our credentials, or our balance does not do
  kProviderSick,  // its provider does not answer
  kCount
};
/// A stable word for metrics and JSON: `gpu_memory`.
std::string_view to_string(Filter filter);
/// As it reads after a number of offers: `5 too little GPU memory`.
std::string describe(Filter filter, const Shape& shape);

using FilterCounts = std::array<std::uint32_t, static_cast<size_t>(Filter::kCount)>;
/// "0 of 12 offers fit: 5 too few GPUs, 4 over the price cap of $2.00, 3 sold out"
std::string explain_counts(const FilterCounts& counts, size_t all, const Shape& shape);

// Each returns kCount for what passes.

/// `ability` may be null: the provider is not configured.
Filter filter_of_provider(const base::ProviderName& provider, const Shape& shape, const ProviderAbility* ability);
/// The same for all offers of a kind (core/offer_table).
Filter filter_of_kind(const model::Offer& sample, const Shape& shape);
Filter filter_of_offer(const model::Offer& offer, const Shape& shape);

/// A shape that the filter lets pass, all else as it was. Empty for what no wish of a pod or node can change.
std::optional<Shape> without(Filter filter, const Shape& shape);

}  // namespace spillway::core
