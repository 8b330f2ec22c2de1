// Believing: what follows from what was learnt (beliefs_learn.cpp).
#include "vk-provider/core/beliefs.hpp"

#include <algorithm>
#include <cmath>

namespace spillway::core {
namespace {

constexpr base::Duration kStockHalfLife = std::chrono::hours(24);
constexpr base::Duration kReadyHalfLife = std::chrono::hours(24 * 30);
constexpr double kUnknownChance = 0.7;
constexpr double kReadyPrior = 0.95;
constexpr double kReadyPriorWeight = 20;
constexpr double kLeastChance = 0.004;
constexpr double kMostChance = 0.995;
constexpr double kPlaceKin = 0.4;  // how much of the news of a neighbour is news of one's own
constexpr double kProviderKin = 0.15;
const TimeBelief kStartPrior{std::log(120.0), 0.5};
constexpr double kAnswerSeconds = 3;
constexpr base::Duration kLeastGiveUp = std::chrono::seconds(180);
// Somebody else's try is answered within that, as a rule.
constexpr base::Duration kProbeAnswer = std::chrono::seconds(10);
constexpr base::Duration kMinute = std::chrono::minutes(1);

struct HazardPrior {
  double count;
  double hours;
};
HazardPrior hazard_prior(const PoolKey& key) {
  constexpr double kCount = 0.6;
  if (key.capacity_type == model::CapacityType::kSpot) return {kCount, 4};
  return {kCount, key.trust == model::Trust::kCommunity ? 60.0 : 1200.0};
}

/// How much the seller's word counts beside what is known anyway.
double weight_of(model::Stock stock) {
  switch (stock) {
    case model::Stock::kUnknown: return 0;
    case model::Stock::kLow: return 0.35;
    case model::Stock::kMedium: return 0.7;
    case model::Stock::kHigh: return 0.95;
  }
  return 0;
}

/// By then 199 of 200 run that ever will. To wait for the last one costs the time of all those that never will.
base::Duration nearly_all_started(const TimeBelief& start) {
  constexpr double kZ995 = 2.5758293;
  return from_hours(std::exp(start.mu + kZ995 * start.sigma) / 3600);
}

Opening opening_of(const Cooling& cooling, const base::BackoffPolicy& policy, Closed cooled, base::TimePoint now) {
  const Cooling::Opening opening = cooling.opening(policy, now);
  Opening out;
  if (opening.at <= now) return out;
  out.why = opening.probing ? Closed::kProbed : cooled;
  out.at = opening.probing ? std::min(opening.at, now + kProbeAnswer) : opening.at;
  out.price = std::max(out.at - now, opening.again);
  return out;
}

Opening until(base::TimePoint when, Closed why, base::TimePoint now) {
  Opening out;
  if (when <= now) return out;
  out.why = why;
  out.at = when;
  out.price = when - now;
  return out;
}

/// Both are in the way.
void also(Opening& opening, const Opening& other) {
  if (other.at > opening.at) {
    opening.at = other.at;
    opening.why = other.why;
  }
  opening.price = std::max(opening.price, other.price);
}

}  // namespace

std::string_view to_string(Closed why) {
  switch (why) {
    case Closed::kNo: return "open";
    case Closed::kCooling: return "cooling";
    case Closed::kProbed: return "probed";
    case Closed::kQuota: return "quota";
    case Closed::kRateLimited: return "rate_limited";
    case Closed::kProviderSick: return "provider_broken";
    case Closed::kCredentials: return "credentials";
  }
  return "";
}

double Beliefs::News::sum(base::TimePoint now) const {
  double sum = 0;
  for (size_t k = 0; k < parts_.size(); ++k) {
    if (parts_[k] != 0) sum += parts_[k] * std::exp(-hours(now - at_) / hours(kCorrelationParts[k].life));
  }
  return sum;
}

const Beliefs::Known* Beliefs::find(PoolId pool) const {
  const auto i = static_cast<size_t>(pool);
  return i < known_.size() ? known_[i].get() : nullptr;
}

double Beliefs::usual_chance(base::TimePoint now) const { return all_.share(kUnknownChance, 1, now, kStockHalfLife); }

double Beliefs::usual_share(PoolId pool, base::TimePoint now) const {
  const Kin& kin = pools_.kin(pool);
  const Known* const own = find(pool);
  const auto counts = [&](const Evidence& e) { return e.at(now, kStockHalfLife); };
  const Evidence::Counts all = counts(all_);
  const Evidence::Counts of_provider = counts(at(providers_, kin.provider).stock);
  const Evidence::Counts of_family = counts(at(families_, kin.family).stock);
  const Evidence::Counts of_pool = own == nullptr ? Evidence::Counts() : counts(own->stock);
  // Each level adds what the levels below it do not know: an answer counts once.
  double share = all.without(of_provider).share(kUnknownChance, 1);
  share = of_provider.without(of_family).share(share, 1);
  share = of_family.without(of_pool).share(share, 1);
  return of_pool.share(share, 1);
}

/// What the surprises of others say of this pool, itself left out.
double Beliefs::kin_says(PoolId pool, const Known* own, base::TimePoint now) const {
  const Kin& kin = pools_.kin(pool);
  const News& near = at(places_, kin.place).news;
  const News& far = at(providers_, kin.provider).news;
  if (far.pools() == 0) return 0;
  const bool asked = own != nullptr && own->asked;
  const double self = asked ? own->surprise * correlation(now - own->answered_at) : 0;
  const double all_near = near.sum(now);
  const int neighbours = near.pools() - (asked ? 1 : 0);
  const int others = far.pools() - near.pools();
  double says = 0;
  if (neighbours > 0) says += kPlaceKin * (all_near - self) / neighbours;
  if (others > 0) says += kProviderKin * (far.sum(now) - all_near) / others;
  return says;
}

double Beliefs::chance(PoolId pool, base::TimePoint now) const {
  return chance(pool, model::Stock::kUnknown, now, now);
}

double Beliefs::chance(PoolId pool, model::Stock stock, base::TimePoint said_at, base::TimePoint now) const {
  const Known* const own = find(pool);
  const bool asked = own != nullptr && own->asked;
  const double usual = usual_share(pool, now);
  const double kept = asked ? correlation(now - own->answered_at) : 0;
  double p = usual;
  if (asked) p += ((own->up ? 1.0 : 0.0) - usual) * kept;
  p += (1 - kept) * kin_says(pool, own, now);
  // The seller's word counts only if it is newer than his last answer to us.
  const double word = weight_of(stock);
  if (word > 0 && (!asked || said_at > own->answered_at)) p += (1 - p) * word * correlation(now - said_at);
  return std::clamp(p, kLeastChance, kMostChance);
}

double Beliefs::most_chance(PoolId pool, model::Stock stock, base::TimePoint now) const {
  const Known* const own = find(pool);
  if (own == nullptr || !own->asked || own->up || stock != model::Stock::kUnknown) return kMostChance;
  // Sold out when it was asked: chance() is at most this, were its usual share 1 and all news of its kin the best.
  const double forgotten = 1 - correlation(now - own->answered_at);
  return std::clamp(forgotten * (1 + kPlaceKin + kProviderKin), kLeastChance, kMostChance);
}

double Beliefs::readiness(PoolId pool, base::TimePoint now) const {
  const double usual =
      at(providers_, pools_.kin(pool).provider).ready.share(kReadyPrior, kReadyPriorWeight, now, kReadyHalfLife);
  const Known* const own = find(pool);
  return own == nullptr ? usual : own->ready.share(usual, kReadyPriorWeight, now, kReadyHalfLife);
}

Traits Beliefs::compute_traits(PoolId pool, base::TimePoint now) const {
  const Known* const own = find(pool);
  const PoolKey& key = pools_.key(pool);
  const HazardPrior prior = hazard_prior(key);
  Traits out;
  out.readiness = readiness(pool, now);
  out.start = at(providers_, pools_.kin(pool).provider).start.belief(kStartPrior, now);
  out.hazard = prior.count / prior.hours;
  out.answer_hours = kAnswerSeconds / 3600;
  if (own != nullptr) {
    out.start = own->start.belief(out.start, now);
    out.hazard = own->lost.rate(prior.count, prior.hours, now);
    if (own->down_at && key.capacity_type == model::CapacityType::kSpot) out.hazard *= youth(now - *own->down_at);
    if (own->answer_seconds > 0) out.answer_hours = own->answer_seconds / 3600;
  }
  out.start_hours = out.start.mean_hours();
  out.give_up = std::max(nearly_all_started(out.start), kLeastGiveUp);
  return out;
}

Beliefs::Stamp Beliefs::stamp(PoolId pool, base::TimePoint now) const {
  const Known* const own = find(pool);
  const std::uint32_t changes = at(providers_, pools_.kin(pool).provider).changes + (own == nullptr ? 0 : own->changes);
  return {changes, now.time_since_epoch() / kMinute};
}

const Traits& Beliefs::traits(PoolId pool, base::TimePoint now) const {
  const auto i = static_cast<size_t>(pool);
  if (traits_.size() <= i) traits_.resize(pools_.size());
  CachedTraits& cached = traits_[i];
  const Stamp current = stamp(pool, now);
  if (cached.stamp != current) {
    // As of the beginning of the minute: what is cached when must not matter.
    cached.traits = compute_traits(pool, base::TimePoint(kMinute * current.minute));
    cached.stamp = current;
  }
  return cached.traits;
}

Opening Beliefs::opening_of_quota(const Group& group, int units, base::TimePoint now) {
  if (group.quota.refused && group.held + units < *group.quota.refused) return {};
  return opening_of(group.quota.cooling, row_of(LaunchResult::kQuota).cool_down, Closed::kQuota, now);
}

Opening Beliefs::opening_of_provider(PoolId pool, base::TimePoint now) const {
  const Provider& provider = at(providers_, pools_.kin(pool).provider);
  Opening out = opening_of(provider.sick, row_of(LaunchResult::kBroken).cool_down, Closed::kProviderSick, now);
  also(out, until(provider.paused_until, Closed::kRateLimited, now));
  also(out, until(provider.locked_until, Closed::kCredentials, now));
  return out;
}

Opening Beliefs::opening(PoolId pool, int gpus, base::TimePoint now) const {
  Opening out = opening_of_provider(pool, now);
  const Kin& kin = pools_.kin(pool);
  const int units = std::max(gpus, 1);
  also(out, opening_of_quota(at(places_, kin.place), units, now));
  also(out, opening_of_quota(at(families_, kin.family), units, now));
  if (const Known* const own = find(pool)) {
    also(out, opening_of(own->cooling, row_of(LaunchResult::kSoldOut).cool_down, Closed::kCooling, now));
  }
  return out;
}

bool Beliefs::host_blocked(const base::SharedText& host, base::TimePoint now) const {
  if (host.empty() || blocked_hosts_.empty()) return false;
  const auto it = blocked_hosts_.find(host);
  return it != blocked_hosts_.end() && it->second > now;
}

const std::string* Beliefs::refusal(const model::Offer& offer, std::uint64_t pods) const {
  if (refused_.empty()) return nullptr;
  const auto it = refused_.find({offer.provider, offer.id, pods});
  return it != refused_.end() && it->second.digest == digest_of(offer) ? &it->second.message : nullptr;
}

bool Beliefs::outdated(const model::Offer& offer, base::TimePoint listed) const {
  if (changed_.empty()) return false;
  const auto it = changed_.find({offer.provider, offer.id});
  return it != changed_.end() && listed <= it->second;
}

double Beliefs::rate_share(const base::ProviderName& name, base::TimePoint now) const {
  const auto number = pools_.find_provider(name);
  return number ? rate_of(at(providers_, *number), now) : 1;
}

}  // namespace spillway::core
