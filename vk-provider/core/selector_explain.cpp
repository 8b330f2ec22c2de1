// The same decision with every offer accounted for: what stands next, by what it lost, and what never fitted.
#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "vk-provider/core/selector.hpp"

namespace spillway::core {
namespace {

constexpr size_t kRunnersUp = 4;

LostBy lost_by(const IndexParts& loser, const IndexParts& winner) {
  struct Part {
    double more;
    LostBy name;
  };
  const std::array<Part, 5> parts{{{loser.rent - winner.rent, LostBy::kPrice},
                                   {loser.start - winner.start, LostBy::kSlow},
                                   {loser.loss - winner.loss, LostBy::kHazard},
                                   {loser.tries - winner.tries, LostBy::kChance},
                                   {loser.wait - winner.wait, LostBy::kWait}}};
  const auto worst = std::ranges::max_element(parts, {}, &Part::more);
  return worst->more > 0 ? worst->name : LostBy::kTie;
}

/// What passes with time alone, or with more money: no wish stands in its way.
bool is_of_moment(Filter filter) {
  return filter == Filter::kSoldOut || filter == Filter::kStale || filter == Filter::kBudget ||
         filter == Filter::kHost || filter == Filter::kCredentials || filter == Filter::kProviderSick;
}

/// The shape without one of its filters, made when it is first needed: there are many offers.
class Relaxed {
 public:
  explicit Relaxed(const Shape& shape) : shape_(shape) {}
  /// Null if no wish of a pod or node can change it.
  const Shape* without(Filter filter) {
    std::optional<std::optional<Shape>>& made = shapes_.at(static_cast<size_t>(filter));
    if (!made) made = core::without(filter, shape_);
    return *made ? &**made : nullptr;
  }

 private:
  const Shape& shape_;
  std::array<std::optional<std::optional<Shape>>, static_cast<size_t>(Filter::kCount)> shapes_;
};

}  // namespace

std::string_view to_string(LostBy lost) {
  switch (lost) {
    case LostBy::kNothing: return "";
    case LostBy::kPrice: return "price";
    case LostBy::kSlow: return "slow";
    case LostBy::kHazard: return "hazard";
    case LostBy::kChance: return "chance";
    case LostBy::kWait: return "wait";
    case LostBy::kTie: return "tie";
    case LostBy::kCount: break;
  }
  return "";
}

std::string_view to_string(Decision::Kind kind) {
  switch (kind) {
    case Decision::Kind::kBuy: return "buy";
    case Decision::Kind::kWait: return "wait";
    case Decision::Kind::kNone: return "none";
    case Decision::Kind::kCount: break;
  }
  return "";
}

std::vector<Candidate> Selector::runners_up(const Query& query, const Candidate& best, base::TimePoint now) {
  Shortlist& list = shortlist(*query.shape);
  Limits limits = limits_of(query, now);
  limits.avoiding = std::ranges::find(query.avoid, best.offer.id) == query.avoid.end();
  const double run = rest_hours(list.shape.worth, query.has_run);
  double cutoff = std::numeric_limits<double>::infinity();
  std::vector<Found> kept;
  for (size_t i = 0; i < list.entries.size() || extend(list); ++i) {
    const OfferRow& row = *list.entries[i].row;
    if (static_cast<double>(row.price) * run > cutoff) break;
    if (row.offer->id == best.offer.id && row.offer->provider == best.offer.provider) continue;
    const std::optional<Found> found = look_at(list, i, limits, cutoff);
    if (!found) continue;
    const auto order = [&](const Found& a, const Found& b) { return before(list, a, b); };
    kept.insert(std::ranges::upper_bound(kept, *found, order), *found);
    if (kept.size() > kRunnersUp) kept.pop_back();
    if (kept.size() == kRunnersUp) cutoff = static_cast<double>(kept.back().index) + 1;
  }
  std::vector<Candidate> out;
  for (const Found& found : kept) {
    Candidate& c = out.emplace_back(candidate(*list.entries[found.entry].row, limits));
    c.lost_by = lost_by(c.parts, best.parts);
  }
  return out;
}

/// Keeps the row if it is the cheapest that this filter alone rejects. `relaxed`: the shape without it, if there is
/// one.
void Selector::note_near_miss(std::vector<NearMiss>& near, const OfferRow& row, Filter filter, const Shape* relaxed,
                              const Limits& limits) const {
  if (relaxed == nullptr && !is_of_moment(filter)) return;
  const auto known = std::ranges::find(near, filter, &NearMiss::filter);
  if (known != near.end() && known->offer.price_per_hour->micros() <= row.price) return;
  if (relaxed != nullptr && (filter_of_kind(*row.offer, *relaxed) != Filter::kCount ||
                             filter_of_offer(*row.offer, *relaxed) != Filter::kCount ||
                             filter_of_provider_named(row.offer->provider, *relaxed) != Filter::kCount)) {
    return;
  }
  const Opening opening = beliefs_.opening(row.pool, row.offer->gpu_count, limits.now);
  if (filter_of_moment(row, limits, opening, filter) != Filter::kCount) return;
  NearMiss miss;
  miss.filter = filter;
  miss.offer = *row.offer;
  if (filter == Filter::kBudget) miss.limit = limits.budget(row.provider)->at_most;
  if (filter == Filter::kCredentials || filter == Filter::kProviderSick) miss.until = opening.at;
  if (known != near.end()) {
    *known = std::move(miss);
  } else {
    near.push_back(std::move(miss));
  }
}

Explanation Selector::explain(const Query& query, base::TimePoint now) {
  Explanation out;
  out.decision = choose(query, now);
  const std::optional<Candidate>& best = out.decision.best;
  if (best) out.next = runners_up(query, *best, now);
  const std::int64_t cheaper_than =
      best ? best->offer.price_per_hour->micros() : std::numeric_limits<std::int64_t>::max();
  const OfferTable& table = book_.table();
  const Limits limits = limits_of(query, now);
  Relaxed relaxed(*query.shape);
  std::vector<std::optional<Filter>> providers(beliefs_.pools().providers());
  const auto of_provider = [&](const OfferRow& row) {
    std::optional<Filter>& known = providers[row.provider];
    if (!known) known = filter_of_provider_named(row.offer->provider, *query.shape);
    return *known;
  };
  for (const OfferKind& kind : table.kinds()) {
    const Filter of_kind = filter_of_kind(*kind.sample, *query.shape);
    out.offers += kind.end - kind.begin;
    for (std::uint32_t i = kind.begin; i < kind.end; ++i) {
      const OfferRow& row = table.rows()[i];
      Filter filter = of_provider(row);
      if (filter == Filter::kCount) filter = of_kind;
      if (filter == Filter::kCount) filter = filter_of_offer(*row.offer, *query.shape);
      if (filter == Filter::kCount) {
        filter = filter_of_moment(row, limits, beliefs_.opening(row.pool, row.offer->gpu_count, now));
      }
      if (filter == Filter::kRefused && out.refusal.empty()) {
        out.refusal =
            "provider " + row.offer->provider.str() + " refuses the pod: " + *beliefs_.refusal(*row.offer, query.pods);
      }
      if (filter == Filter::kCount) continue;
      ++out.rejected.at(static_cast<size_t>(filter));
      if (row.price < cheaper_than) note_near_miss(out.near, row, filter, relaxed.without(filter), limits);
    }
  }
  for (const OfferBook::Entry& entry : book_.entries(now)) {
    if (entry.offer->price_per_hour) continue;
    ++out.offers;
    ++out.rejected.at(static_cast<size_t>(Filter::kNoPrice));
  }
  std::ranges::sort(out.near, {}, [](const NearMiss& miss) {
    return std::tuple(*miss.offer.price_per_hour, miss.offer.provider, miss.offer.id, miss.filter);
  });
  return out;
}

}  // namespace spillway::core
