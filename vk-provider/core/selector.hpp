// Chooses the best offer for a pod, or to wait for one, or says why there is none.
//
// Pure: the same book, beliefs, query and time give the same decision; what is kept between calls only saves work. It
// compares offers by core/offer_index and reads them in the order of their prices until no dearer one can win.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/money.hpp"
#include "vk-provider/core/beliefs.hpp"
#include "vk-provider/core/offer_book.hpp"
#include "vk-provider/core/offer_filter.hpp"
#include "vk-provider/core/offer_index.hpp"
#include "vk-provider/core/refusal.hpp"
#include "vk-provider/model/node_profile.hpp"

namespace spillway::core {

/// What a provider may cost this pod at this moment (core/spend_guard).
struct ProviderBudget {
  base::ProviderName provider;
  base::Money at_most;      // per hour, of one more instance
  double price_factor = 1;  // 1, or more when a budget is nearly used: the cheaper ones win then
  bool operator==(const ProviderBudget&) const = default;
};

struct Query {
  const Shape* shape = nullptr;
  /// Of one owner and shape. What a provider refuses one of them it refuses all.
  std::uint64_t pods = 0;
  /// Providers that are not named have no limit.
  std::vector<ProviderBudget> budgets;
  /// Offers that failed for this pod: taken only if nothing else fits.
  std::vector<base::OfferId> avoid;
  base::Duration has_run{};
};

/// The part of the index by which an offer lost the most against the winner.
enum class LostBy : std::uint8_t { kNothing, kPrice, kSlow, kHazard, kChance, kWait, kTie, kCount };
std::string_view to_string(LostBy lost);

struct Candidate {
  model::Offer offer;
  PoolId pool{};
  IndexParts parts;
  base::Money index;       // their sum
  double chance = 0;       // of a create, now or when it can be asked
  double readiness = 0;    // of what was accepted
  double hazard = 0;       // interruptions per hour
  base::Duration start{};  // mean time from accepted to Running
  Opening opening;
  LostBy lost_by = LostBy::kNothing;
};

struct Decision {
  enum class Kind : std::uint8_t {
    kBuy,   // `best` now
    kWait,  // `best` is worth waiting for: ask again at `again_at`, or when something was learnt
    kNone,  // nothing fits; `again_at` if a provider that is out of reach now might have something
    kCount
  };
  Kind kind = Kind::kNone;
  std::optional<Candidate> best;
  std::optional<base::TimePoint> again_at;
};

/// An offer that one filter alone keeps from the pod.
struct NearMiss {
  Filter filter{};
  model::Offer offer;
  base::Money limit;                     // kBudget: what was left
  std::optional<base::TimePoint> until;  // kCredentials, kProviderSick: when it is asked again
};

/// A stable word for metrics and JSON: `buy`.
std::string_view to_string(Decision::Kind kind);

struct Explanation {
  Decision decision;
  std::vector<Candidate> next;  // see runners_up
  FilterCounts rejected{};
  std::string refusal{};  // what a provider said of the first that is left out as Filter::kRefused
  size_t offers = 0;      // that were looked at
  /// The cheapest of each filter, the cheapest first; with an offer to take or to wait for, only what is cheaper.
  std::vector<NearMiss> near;
};

class Selector {
 public:
  /// Both outlive it. Providers that are not named cannot honour any pod.
  Selector(const OfferBook& book, const Beliefs& beliefs) : book_(book), beliefs_(beliefs) {}
  void set_abilities(std::vector<ProviderAbility> abilities);

  Decision choose(const Query& query, base::TimePoint now);
  /// What stands next to `best`, which choose() gave for this query now, and by what it lost: at most four, the best
  /// first. Costs about what choose() does.
  std::vector<Candidate> runners_up(const Query& query, const Candidate& best, base::TimePoint now);
  /// The same decision, with every offer accounted for. Looks at all of them.
  Explanation explain(const Query& query, base::TimePoint now);

 private:
  struct Entry {
    const OfferRow* row = nullptr;
    Score score;
    Beliefs::Stamp stamp;
    double factor = 1;
    base::Duration has_run{};
  };
  /// The offers that pass all filters but those of the moment, the cheapest first, as far as they were needed.
  struct Shortlist {
    explicit Shortlist(const Shape& s) : shape(s) {}
    Shape shape;
    std::uint64_t version = 0;
    std::vector<Entry> entries;
    std::vector<bool> providers;  // by number: it can honour the pod, and may
    struct Cursor {
      const OfferRow* next;
      const OfferRow* end;
    };
    std::vector<Cursor> cursors;  // a heap of what is not yet read, the cheapest kind first
    bool several_memories = false;
    size_t last_winner = 0;
  };
  struct Found {
    size_t entry = 0;
    std::int64_t index = 0;
    Opening opening;
    double chance = 0;
  };
  /// A query made ready, and what came up while it was answered.
  struct Limits {
    const Query* query = nullptr;
    base::TimePoint now{};
    const std::vector<base::TimePoint>* listed = nullptr;
    std::vector<ProviderBudget> by_provider;  // by number; empty: no limits
    bool avoiding = true;
    std::optional<base::TimePoint> reopens{};  // the first provider that is out of reach

    const ProviderBudget* budget(std::uint32_t provider) const {
      const bool has = provider < by_provider.size() && !by_provider[provider].provider.empty();
      return has ? &by_provider[provider] : nullptr;
    }
  };

  Shortlist& shortlist(const Shape& shape);
  void build(Shortlist& list) const;
  static bool extend(Shortlist& list);
  Filter filter_of_provider_named(const base::ProviderName& provider, const Shape& shape) const;
  Limits limits_of(const Query& query, base::TimePoint now) const;
  IndexInput input(const OfferRow& row, const Limits& limits) const;
  const Score& score(Entry& entry, const Limits& limits) const;
  /// `lifted` is not asked.
  Filter filter_of_moment(const OfferRow& row, const Limits& limits, const Opening& opening,
                          Filter lifted = Filter::kCount) const;
  void note_near_miss(std::vector<NearMiss>& near, const OfferRow& row, Filter filter, const Shape* relaxed,
                      const Limits& limits) const;
  std::optional<Found> look_at(Shortlist& list, size_t i, Limits& limits, double cutoff) const;
  std::optional<Found> best_of(Shortlist& list, Limits& limits) const;
  static Found prefer_small(const Shortlist& list, const std::vector<Found>& seen, const Found& best);
  static bool before(const Shortlist& list, const Found& a, const Found& b);
  Candidate candidate(const OfferRow& row, const Limits& limits) const;

  const OfferBook& book_;
  const Beliefs& beliefs_;
  std::vector<ProviderAbility> abilities_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Shortlist>> shortlists_;  // by Shape::hash
};

}  // namespace spillway::core
