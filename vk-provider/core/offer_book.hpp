// The newest offers of each provider, and which of them to leave alone for a while. Pure; owned by offer_controller.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::core {

class OfferBook {
 public:
  /// Older offers are not used for a decision about money.
  static constexpr base::Duration kStaleAfter = std::chrono::minutes(5);

  void update(const base::ProviderName& provider, std::vector<model::Offer> offers, base::TimePoint now);
  /// Nobody takes the offer (or, with an empty id, anything of the provider) before `until`.
  void cool_down(const base::ProviderName& provider, const base::OfferId& offer, base::TimePoint until);

  struct Entry {
    const model::Offer* offer = nullptr;
    bool stale = false;
    base::TimePoint cooled_until{};
  };
  /// All offers of all providers, in the order of provider and offer name. Valid until the next update.
  std::vector<Entry> entries(base::TimePoint now) const;

  bool knows(const base::ProviderName& provider) const { return offers_.contains(provider); }

 private:
  struct Listing {
    std::vector<model::Offer> offers;
    base::TimePoint at{};
  };
  std::map<base::ProviderName, Listing> offers_;
  std::map<std::pair<base::ProviderName, base::OfferId>, base::TimePoint> cooled_;
};

}  // namespace spillway::core
