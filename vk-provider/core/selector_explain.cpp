// The same decision with every offer accounted for: what stands next, by what it lost, and what never fitted.
#include <algorithm>
#include <array>
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

bool better(const Candidate& a, const Candidate& b) {
  if (a.index != b.index) return a.index < b.index;
  if (a.offer.provider != b.offer.provider) return a.offer.provider < b.offer.provider;
  return a.offer.id < b.offer.id;
}

void keep_best(std::vector<Candidate>& kept, Candidate candidate) {
  kept.insert(std::ranges::upper_bound(kept, candidate, better), std::move(candidate));
  if (kept.size() > kRunnersUp) kept.pop_back();
}

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
  }
  return "";
}

Explanation Selector::explain(const Query& query, base::TimePoint now) {
  Explanation out;
  out.decision = choose(query, now);
  const OfferTable& table = book_.table();
  Limits limits = limits_of(query, now);
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
      if (filter != Filter::kCount) {
        ++out.rejected.at(static_cast<size_t>(filter));
        continue;
      }
      const std::optional<Candidate>& best = out.decision.best;
      if (best && best->offer.provider == row.offer->provider && best->offer.id == row.offer->id) continue;
      keep_best(out.next, candidate(row, limits));
    }
  }
  for (const OfferBook::Entry& entry : book_.entries(now)) {
    if (entry.offer->price_per_hour) continue;
    ++out.offers;
    ++out.rejected.at(static_cast<size_t>(Filter::kNoPrice));
  }
  if (out.decision.best) {
    for (Candidate& c : out.next) c.lost_by = lost_by(c.parts, out.decision.best->parts);
  }
  return out;
}

}  // namespace spillway::core
