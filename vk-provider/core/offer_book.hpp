// The newest offers of each provider: what is sound of them, and what is not and why.
//
// Pure; owned by the daemon, filled by provider_controller. A listing replaces the one before: what is not in it has
// vanished. Also gives every pool its number.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/offer_check.hpp"
#include "vk-provider/core/offer_table.hpp"
#include "vk-provider/core/pool.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::core {

class OfferBook {
 public:
  /// Older offers are not used for a decision about money.
  static constexpr base::Duration kStaleAfter = std::chrono::minutes(5);

  /// `own_machines`: they may cost nothing (offer_check).
  void update(const base::ProviderName& provider, std::vector<model::Offer> offers, base::TimePoint now,
              bool own_machines = false);

  struct Entry {
    const model::Offer* offer = nullptr;
    bool stale = false;
  };
  /// All sound offers of all providers, in the order of provider and offer name. Valid until the next update.
  std::vector<Entry> entries(base::TimePoint now) const;

  bool knows(const base::ProviderName& provider) const { return listings_.contains(provider); }
  /// When the provider was listed; empty if it never was.
  std::optional<base::TimePoint> listed_at(const base::ProviderName& provider) const;
  /// Null if the offer has vanished, or is flawed. Valid until the next update.
  const model::Offer* find(const base::ProviderName& provider, const base::OfferId& offer) const;

  /// Of the newest listings, by provider and id; those of update() and those that the market shows up.
  std::vector<const FlawedOffer*> flawed() const;
  std::array<int, static_cast<size_t>(Flaw::kCount)> flaws() const;

  /// What can be bought, for placement. Valid until the next update.
  const OfferTable& table() const;
  const PoolIndex& pools() const { return pools_; }
  /// By number of the provider: when it was listed. Valid until the next update.
  const std::vector<base::TimePoint>& listed_times() const;

 private:
  struct Listing {
    std::vector<model::Offer> offers;
    std::vector<FlawedOffer> flawed;
    base::TimePoint at{};
    bool own_machines = false;
  };
  void rebuild() const;
  std::vector<const model::Offer*> sound() const;

  std::map<base::ProviderName, Listing> listings_;
  std::uint64_t version_ = 0;
  // Made when asked for: listings come more often than pods.
  mutable PoolIndex pools_;
  mutable OfferTable table_;
  mutable MarketCheck market_;
  mutable std::vector<FlawedOffer> far_below_;  // sound by themselves, not beside the market
  mutable std::vector<base::TimePoint> listed_times_;
  mutable bool built_ = false;
};

}  // namespace spillway::core
