#include "vk-provider/core/offer_book.hpp"

#include <algorithm>

namespace spillway::core {

void OfferBook::update(const base::ProviderName& provider, std::vector<model::Offer> offers, base::TimePoint now) {
  std::sort(offers.begin(), offers.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  offers_[provider] = Listing{std::move(offers), now};
  std::erase_if(cooled_, [&](const auto& entry) { return entry.second <= now; });
}

void OfferBook::cool_down(const base::ProviderName& provider, const base::OfferId& offer, base::TimePoint until) {
  base::TimePoint& current = cooled_[{provider, offer}];
  current = std::max(current, until);
}

std::vector<OfferBook::Entry> OfferBook::entries(base::TimePoint now) const {
  const auto cooled = [&](const base::ProviderName& provider, const base::OfferId& offer) {
    const auto it = cooled_.find({provider, offer});
    return it == cooled_.end() ? base::TimePoint{} : it->second;
  };
  std::vector<Entry> all;
  for (const auto& [provider, listing] : offers_) {
    const base::TimePoint whole = cooled(provider, {});
    for (const model::Offer& offer : listing.offers) {
      Entry entry;
      entry.offer = &offer;
      entry.stale = now - listing.at > kStaleAfter;
      entry.cooled_until = std::max(whole, cooled(provider, offer.id));
      all.push_back(entry);
    }
  }
  return all;
}

}  // namespace spillway::core
