#include "vk-provider/core/selector.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "vk-provider/core/decay.hpp"

namespace spillway::core {
namespace {

constexpr size_t kMostShapes = 1024;
// Offers that cost about the same: the one with the smaller GPU leaves the big one free.
constexpr double kAboutTheSame = 1.01;

/// Whether a kind's next offer stands behind another's: cheapest first, then by name, so that the order is total.
bool dearer(const OfferRow& a, const OfferRow& b) {
  if (a.price != b.price) return a.price > b.price;
  if (a.offer->provider != b.offer->provider) return a.offer->provider > b.offer->provider;
  return a.offer->id > b.offer->id;
}

/// When the next try takes place. Just after a failure there is hardly a chance; but nobody asks then.
base::TimePoint asked_at(const Opening& opening, base::TimePoint now) {
  return opening.why == Closed::kNo ? now : std::max(opening.at, now);
}

bool several_memories(const std::vector<const OfferKind*>& kinds) {
  return std::ranges::any_of(
      kinds, [&](const OfferKind* k) { return k->sample->gpu_memory != kinds.front()->sample->gpu_memory; });
}

}  // namespace

void Selector::set_abilities(std::vector<ProviderAbility> abilities) {
  abilities_ = std::move(abilities);
  shortlists_.clear();
}

Filter Selector::filter_of_provider_named(const base::ProviderName& provider, const Shape& shape) const {
  const auto it = std::ranges::find(abilities_, provider.str(), &ProviderAbility::name);
  return filter_of_provider(provider, shape, it == abilities_.end() ? nullptr : &*it);
}

Selector::Limits Selector::limits_of(const Query& query, base::TimePoint now) const {
  Limits limits;
  limits.query = &query;
  limits.now = now;
  limits.listed = &book_.listed_times();
  for (const ProviderBudget& budget : query.budgets) {
    const auto number = beliefs_.pools().find_provider(budget.provider);
    if (!number) continue;
    if (limits.by_provider.size() <= *number) limits.by_provider.resize(*number + 1);
    limits.by_provider[*number] = budget;
  }
  return limits;
}

Selector::Shortlist& Selector::shortlist(const Shape& shape) {
  if (shortlists_.size() > kMostShapes) shortlists_.clear();
  std::unique_ptr<Shortlist>& list = shortlists_[shape.hash];
  // Two shapes with one hash take turns.
  if (!list || list->shape != shape) list = std::make_unique<Shortlist>(shape);
  if (list->version != book_.table().version()) build(*list);
  return *list;
}

void Selector::build(Shortlist& list) const {
  const OfferTable& table = book_.table();
  list.version = table.version();
  list.entries.clear();
  list.cursors.clear();
  list.last_winner = 0;
  list.providers.assign(beliefs_.pools().providers(), false);
  for (const ProviderAbility& ability : abilities_) {
    const base::ProviderName name(ability.name);
    const auto number = beliefs_.pools().find_provider(name);
    if (number) list.providers[*number] = filter_of_provider(name, list.shape, &ability) == Filter::kCount;
  }
  std::vector<const OfferKind*> kinds;
  for (const OfferKind& kind : table.kinds()) {
    if (filter_of_kind(*kind.sample, list.shape) != Filter::kCount) continue;
    kinds.push_back(&kind);
    list.cursors.push_back({&table.rows()[kind.begin], table.rows().data() + kind.end});
  }
  list.several_memories = several_memories(kinds);
  std::ranges::make_heap(list.cursors, [](const auto& a, const auto& b) { return dearer(*a.next, *b.next); });
}

/// Reads one more offer. False if there is none.
bool Selector::extend(Shortlist& list) {
  const auto order = [](const Shortlist::Cursor& a, const Shortlist::Cursor& b) { return dearer(*a.next, *b.next); };
  while (!list.cursors.empty()) {
    std::ranges::pop_heap(list.cursors, order);
    Shortlist::Cursor& cursor = list.cursors.back();
    const OfferRow* const row = cursor.next++;
    const Filter filter = list.providers[row->provider] ? filter_of_offer(*row->offer, list.shape) : Filter::kProvider;
    const bool too_dear = filter == Filter::kNodePrice || filter == Filter::kPodPrice;
    // What follows in its kind is dearer still.
    if (too_dear || cursor.next == cursor.end) {
      list.cursors.pop_back();
    } else {
      std::ranges::push_heap(list.cursors, order);
    }
    if (filter != Filter::kCount) continue;
    list.entries.emplace_back().row = row;
    return true;
  }
  return false;
}

IndexInput Selector::input(const OfferRow& row, const Limits& limits) const {
  const ProviderBudget* const budget = limits.budget(row.provider);
  IndexInput in;
  in.offer = row.offer;
  in.traits = &beliefs_.traits(row.pool, limits.now);
  in.shape = limits.query->shape;
  in.price_factor = budget == nullptr ? 1 : std::max(1.0, budget->price_factor);
  in.has_run = limits.query->has_run;
  return in;
}

const Score& Selector::score(Entry& entry, const Limits& limits) const {
  const Beliefs::Stamp stamp = beliefs_.stamp(entry.row->pool, limits.now);
  const ProviderBudget* const budget = limits.budget(entry.row->provider);
  const double factor = budget == nullptr ? 1 : budget->price_factor;
  if (entry.stamp != stamp || entry.factor != factor || entry.has_run != limits.query->has_run) {
    entry.score = score_of(input(*entry.row, limits));
    entry.stamp = stamp;
    entry.factor = factor;
    entry.has_run = limits.query->has_run;
  }
  return entry.score;
}

Filter Selector::filter_of_moment(const OfferRow& row, const Limits& limits, const Opening& opening,
                                  Filter lifted) const {
  const std::uint32_t provider = row.provider;
  const base::TimePoint listed = (*limits.listed)[provider];
  const ProviderBudget* const budget = limits.budget(provider);
  const auto is_asked = [&](Filter filter) { return filter != lifted; };
  if (limits.now - listed > OfferBook::kStaleAfter && is_asked(Filter::kStale)) return Filter::kStale;
  if (budget != nullptr && row.price > budget->at_most.micros() && is_asked(Filter::kBudget)) return Filter::kBudget;
  if (beliefs_.host_blocked(row.offer->host, limits.now) && is_asked(Filter::kHost)) return Filter::kHost;
  if (beliefs_.refusal(*row.offer, limits.query->pods) != nullptr) return Filter::kRefused;
  if (beliefs_.outdated(*row.offer, listed)) return Filter::kChanged;
  if (opening.why == Closed::kCredentials && is_asked(Filter::kCredentials)) return Filter::kCredentials;
  // To wait for a provider that is down would be to wait for nobody knows how long.
  if (opening.why == Closed::kProviderSick && is_asked(Filter::kProviderSick)) return Filter::kProviderSick;
  return Filter::kCount;
}

std::optional<Selector::Found> Selector::look_at(Shortlist& list, size_t i, Limits& limits, double cutoff) const {
  Entry& entry = list.entries[i];
  const OfferRow& row = *entry.row;
  const Score& s = score(entry, limits);
  if (s.least() > cutoff) return std::nullopt;
  const std::vector<base::OfferId>& avoid = limits.query->avoid;
  if (limits.avoiding && std::ranges::find(avoid, row.offer->id) != avoid.end()) return std::nullopt;
  Found found;
  found.entry = i;
  found.opening = beliefs_.opening(row.pool, row.offer->gpu_count, limits.now);
  const Filter filter = filter_of_moment(row, limits, found.opening);
  if (filter == Filter::kCredentials || filter == Filter::kProviderSick) {
    limits.reopens = limits.reopens ? std::min(*limits.reopens, found.opening.at) : found.opening.at;
  }
  if (filter != Filter::kCount) return std::nullopt;
  const base::TimePoint asked = asked_at(found.opening, limits.now);
  const double wait = hours(found.opening.price);
  // What cannot win even with the best chance that it may have: what it really is costs more to find out than all else.
  if (s.at(beliefs_.most_chance(row.pool, row.offer->stock, asked), wait) > cutoff) return std::nullopt;
  found.chance = beliefs_.chance(row.pool, row.offer->stock, (*limits.listed)[row.provider], asked);
  found.index = whole_micros(s.at(found.chance, wait));
  return found;
}

bool Selector::before(const Shortlist& list, const Found& a, const Found& b) {
  if (a.index != b.index) return a.index < b.index;
  const model::Offer& x = *list.entries[a.entry].row->offer;
  const model::Offer& y = *list.entries[b.entry].row->offer;
  if (x.provider != y.provider) return x.provider < y.provider;
  return x.id < y.id;
}

Selector::Found Selector::prefer_small(const Shortlist& list, const std::vector<Found>& seen, const Found& best) {
  const auto memory = [&](const Found& f) { return list.entries[f.entry].row->offer->gpu_memory; };
  const double limit = static_cast<double>(best.index) * kAboutTheSame;
  Found out = best;
  for (const Found& f : seen) {
    if (static_cast<double>(f.index) > limit || (f.opening.why == Closed::kNo) != (best.opening.why == Closed::kNo)) {
      continue;
    }
    if (memory(f) < memory(out) || (memory(f) == memory(out) && before(list, f, out))) out = f;
  }
  return out;
}

std::optional<Selector::Found> Selector::best_of(Shortlist& list, Limits& limits) const {
  const double run = rest_hours(list.shape.worth, limits.query->has_run);
  std::optional<Found> best;
  std::vector<Found> seen;
  double cutoff = std::numeric_limits<double>::infinity();
  const auto consider = [&](size_t i) {
    const std::optional<Found> found = look_at(list, i, limits, cutoff);
    if (!found) return;
    if (list.several_memories) seen.push_back(*found);
    if (best && !before(list, *found, *best)) return;
    best = found;
    cutoff = static_cast<double>(found->index) * (list.several_memories ? kAboutTheSame : 1.0) + 1;
  };
  // Who won last has a good chance again; what cannot beat him is not looked at more closely.
  constexpr size_t kNobody = std::numeric_limits<size_t>::max();
  const size_t first = list.last_winner < list.entries.size() ? list.last_winner : kNobody;
  if (first != kNobody) consider(first);
  for (size_t i = 0; i < list.entries.size() || extend(list); ++i) {
    if (static_cast<double>(list.entries[i].row->price) * run > cutoff) break;
    if (i != first) consider(i);
  }
  if (!best) return best;
  list.last_winner = best->entry;
  return list.several_memories ? prefer_small(list, seen, *best) : *best;
}

Candidate Selector::candidate(const OfferRow& row, const Limits& limits) const {
  const IndexInput in = input(row, limits);
  Candidate out;
  out.offer = *row.offer;
  out.pool = row.pool;
  out.opening = beliefs_.opening(row.pool, row.offer->gpu_count, limits.now);
  out.chance =
      beliefs_.chance(row.pool, row.offer->stock, (*limits.listed)[row.provider], asked_at(out.opening, limits.now));
  const double wait = hours(out.opening.price);
  out.parts = parts_of(in, out.chance, wait);
  out.index = base::Money::from_micros(whole_micros(score_of(in).at(out.chance, wait)));
  out.readiness = in.traits->readiness;
  out.hazard = in.traits->hazard;
  out.start = from_hours(in.traits->start_hours);
  return out;
}

Decision Selector::choose(const Query& query, base::TimePoint now) {
  Shortlist& list = shortlist(*query.shape);
  Limits limits = limits_of(query, now);
  std::optional<Found> best = best_of(list, limits);
  if (!best && !query.avoid.empty()) {
    limits.avoiding = false;
    best = best_of(list, limits);
  }
  Decision decision;
  if (!best) {
    decision.again_at = limits.reopens;
    return decision;
  }
  decision.best = candidate(*list.entries[best->entry].row, limits);
  decision.kind = best->opening.why == Closed::kNo ? Decision::Kind::kBuy : Decision::Kind::kWait;
  if (decision.kind == Decision::Kind::kWait) decision.again_at = best->opening.at;
  return decision;
}

}  // namespace spillway::core
