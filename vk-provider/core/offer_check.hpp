// Whether an offer can be what it says: what cannot is kept apart with the reason, and never bought.
//
// Pure. Providers are guests, and their clouds make mistakes: a price of one GPU on a machine with eight, one offer
// twice, "free", a GPU that nobody knows.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vk-provider/model/offer.hpp"

namespace spillway::core {

enum class Flaw : std::uint8_t {
  kNoId,
  kDuplicateId,      // and the two differ
  kUnreadablePrice,  // not an amount of money: NaN, 1e30, text
  kNegativePrice,
  kFree,  // costs nothing, and is neither reserved nor the user's own
  kHugePrice,
  kPricePerGpu,  // several GPUs for what one costs: the price of one, most likely
  kUnknownGpu,
  kImpossibleSize,  // negative counts or sizes, GPUs without a name or names without GPUs
  kCount
};
/// A stable word for logs, metrics and explanations: `price_per_gpu`.
std::string_view to_string(Flaw flaw);

struct FlawedOffer {
  model::Offer offer;
  Flaw flaw{};
};

struct CheckedOffers {
  std::vector<model::Offer> sound;  // by id; memory as sold where the catalogue knows it better
  std::vector<FlawedOffer> flawed;
};

/// Offers of one provider. Machines of the user's own may cost nothing and have GPUs of any name. An offer without a
/// price is sound, but nothing that can be bought.
CheckedOffers check_offers(std::vector<model::Offer> offers, bool own_machines);

/// Finds offers of four GPUs and more that are far cheaper per GPU than the market: nobody sells so; somebody forgot to
/// multiply. Points into what was added.
class MarketCheck {
 public:
  void add(const model::Offer& offer);
  void finish();
  bool too_cheap(const model::Offer& offer) const;

 private:
  struct Key {
    std::string_view model;
    model::CapacityType type;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return std::hash<std::string_view>{}(k.model) * 4 + static_cast<size_t>(k.type);
    }
  };
  struct Prices {
    std::vector<std::int64_t> per_gpu;
    std::vector<std::string_view> providers;  // not more than are asked for
    std::int64_t median = 0;                  // 0: too few to judge by
  };

  std::unordered_map<Key, Prices, KeyHash> prices_;
};

}  // namespace spillway::core
