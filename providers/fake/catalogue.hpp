// What the fake cloud sells unless it is configured otherwise: a dozen offers as they were found in the market.
//
// Values. Prices are real ones of 2025 and 2026, rounded; regions and stock are invented.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vk-provider/model/offer.hpp"

namespace spillway::providers::fake {

/// An offer, and what only the cloud knows of it.
struct CloudOffer {
  CloudOffer() = default;
  model::Offer offer;        // provider and seen_at are left empty: they are the reader's
  std::optional<int> stock;  // instances; empty: without limit
  std::chrono::seconds grain{1};
  std::chrono::seconds minimum{0};
};

std::vector<CloudOffer> default_catalogue();

}  // namespace spillway::providers::fake
