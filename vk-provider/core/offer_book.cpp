#include "vk-provider/core/offer_book.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::core {

void OfferBook::update(const base::ProviderName& provider, std::vector<model::Offer> offers, base::TimePoint now,
                       bool own_machines) {
  for (model::Offer& offer : offers) {
    offer.provider = provider;  // whatever it says: the listing is this provider's
    offer.seen_at = now;
  }
  CheckedOffers checked = check_offers(std::move(offers), own_machines);
  Listing& listing = listings_[provider];
  listing.offers = std::move(checked.sound);
  listing.flawed = std::move(checked.flawed);
  listing.at = now;
  listing.own_machines = own_machines;
  ++version_;
  built_ = false;
}

std::optional<base::TimePoint> OfferBook::listed_at(const base::ProviderName& provider) const {
  const auto it = listings_.find(provider);
  return it == listings_.end() ? std::nullopt : std::optional(it->second.at);
}

const model::Offer* OfferBook::find(const base::ProviderName& provider, const base::OfferId& offer) const {
  const auto listing = listings_.find(provider);
  if (listing == listings_.end()) return nullptr;
  const auto& offers = listing->second.offers;
  const auto it = std::ranges::lower_bound(offers, offer, {}, &model::Offer::id);
  if (it == offers.end() || it->id != offer) return nullptr;
  rebuild();
  return !listing->second.own_machines && market_.too_cheap(*it) ? nullptr : &*it;
}

std::vector<const model::Offer*> OfferBook::sound() const {
  std::vector<const model::Offer*> out;
  for (const auto& [provider, listing] : listings_) {
    for (const model::Offer& offer : listing.offers) {
      if (listing.own_machines || !market_.too_cheap(offer)) out.push_back(&offer);
    }
  }
  return out;
}

void OfferBook::rebuild() const {
  if (built_) return;
  built_ = true;
  market_ = MarketCheck();
  for (const auto& [provider, listing] : listings_) {
    if (listing.own_machines) continue;
    for (const model::Offer& offer : listing.offers) market_.add(offer);
  }
  market_.finish();
  far_below_.clear();
  listed_times_.clear();
  for (const auto& [provider, listing] : listings_) {
    const std::uint32_t number = pools_.provider(provider);
    if (listed_times_.size() <= number) listed_times_.resize(number + 1);
    listed_times_[number] = listing.at;
    for (const model::Offer& offer : listing.offers) {
      if (!listing.own_machines && market_.too_cheap(offer)) far_below_.push_back({offer, Flaw::kPricePerGpu});
    }
  }
  table_ = OfferTable(sound(), pools_, version_);
}

const OfferTable& OfferBook::table() const {
  rebuild();
  return table_;
}

const std::vector<base::TimePoint>& OfferBook::listed_times() const {
  rebuild();
  return listed_times_;
}

std::vector<const FlawedOffer*> OfferBook::flawed() const {
  rebuild();
  std::vector<const FlawedOffer*> out;
  for (const auto& [provider, listing] : listings_) {
    for (const FlawedOffer& f : listing.flawed) out.push_back(&f);
  }
  for (const FlawedOffer& f : far_below_) out.push_back(&f);
  std::ranges::sort(out, [](const FlawedOffer* a, const FlawedOffer* b) {
    return std::tie(a->offer.provider, a->offer.id, a->offer.price_per_hour) <
           std::tie(b->offer.provider, b->offer.id, b->offer.price_per_hour);
  });
  return out;
}

std::array<int, static_cast<size_t>(Flaw::kCount)> OfferBook::flaws() const {
  std::array<int, static_cast<size_t>(Flaw::kCount)> counts{};
  for (const FlawedOffer* f : flawed()) ++counts.at(static_cast<size_t>(f->flaw));
  return counts;
}

std::vector<OfferBook::Entry> OfferBook::entries(base::TimePoint now) const {
  rebuild();
  std::vector<Entry> all;
  for (const model::Offer* const offer : sound()) {
    Entry entry;
    entry.offer = offer;
    entry.stale = now - offer->seen_at > kStaleAfter;
    all.push_back(entry);
  }
  return all;
}

}  // namespace spillway::core
