// The cheapest offer that fits, and for every other why it lost.
//
// Pure. This is the first engine: price alone. It stands behind the signature that a better one will have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/money.hpp"
#include "vk-provider/core/offer_book.hpp"
#include "vk-provider/core/refusal.hpp"
#include "vk-provider/model/node_profile.hpp"

namespace spillway::core {

struct Selection {
  Selection() = default;
  std::optional<model::Offer> winner;
  /// When the first offer that only cools down may be asked again, if there is one.
  std::optional<base::TimePoint> again_at;
  /// One sentence: "0 of 12 offers fit: 5 too few GPUs, 4 over the price cap of $2.00, 3 sold out".
  std::string why_none;
};

/// `tried` offers failed for this pod and are taken only if nothing else fits.
Selection select_offer(const Requirements& requirements, const model::NodeProfile& profile,
                       const std::vector<ProviderAbility>& providers, const std::vector<OfferBook::Entry>& offers,
                       const std::vector<base::OfferId>& tried, base::TimePoint now);

}  // namespace spillway::core
