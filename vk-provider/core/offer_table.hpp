// All sound offers, in the order in which placement reads them: by kind, and within a kind by price.
//
// A kind is what machines have in common that decides whether a pod can run on them, whoever sells them; so a pod's
// filter looks at some hundreds of kinds instead of fifty thousand offers, and meets the cheapest of each first.
// Immutable once built, made anew by offer_book when something was listed. Points into the book's listings.
#pragma once

#include <cstdint>
#include <vector>

#include "vk-provider/core/pool.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::core {

struct OfferRow {
  std::int64_t price = 0;  // micro-dollars per hour
  const model::Offer* offer = nullptr;
  PoolId pool{};
  std::uint32_t provider = 0;  // its number in the PoolIndex
  std::uint32_t kind = 0;
};

struct OfferKind {
  const model::Offer* sample = nullptr;  // any of its offers
  std::uint32_t begin = 0;               // rows [begin, end)
  std::uint32_t end = 0;
};

class OfferTable {
 public:
  OfferTable() = default;
  /// Offers without a price are left out; whoever asks why gets them from the book.
  OfferTable(const std::vector<const model::Offer*>& offers, PoolIndex& pools, std::uint64_t version);

  std::uint64_t version() const { return version_; }
  const std::vector<OfferRow>& rows() const { return rows_; }
  const std::vector<OfferKind>& kinds() const { return kinds_; }

 private:
  std::uint64_t version_ = 0;
  std::vector<OfferRow> rows_;
  std::vector<OfferKind> kinds_;
};

}  // namespace spillway::core
