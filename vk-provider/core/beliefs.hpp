// What is believed of pools, learnt from what became of all pods: does a create succeed, does the machine start and how
// soon, how long does it stay, and may it be asked just now.
//
// Pure: one owner, times are arguments, the same reports in the same order give the same beliefs. It knows pools, not
// prices. docs/placement.md derives the formulas.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "vk-provider/core/cooling.hpp"
#include "vk-provider/core/decay.hpp"
#include "vk-provider/core/evidence.hpp"
#include "vk-provider/core/launch_result.hpp"
#include "vk-provider/core/pool.hpp"

namespace spillway::core {

/// What changes slowly: the same for a whole minute, unless something is reported of the pool or its provider.
struct Traits {
  double readiness = 0;      // chance that an accepted instance gets to run
  TimeBelief start;          // from accepted to Running
  double start_hours = 0;    // its mean
  double answer_hours = 0;   // mean time of a create call
  double hazard = 0;         // interruptions per hour of one instance
  base::Duration give_up{};  // an instance that has not started by then never will
};

/// May the pool be asked now, and if not, what is in the way.
enum class Closed : std::uint8_t { kNo, kCooling, kProbed, kQuota, kRateLimited, kProviderSick, kCredentials };
std::string_view to_string(Closed why);

struct Opening {
  Closed why = Closed::kNo;
  base::TimePoint at{};    // when to ask again
  base::Duration price{};  // what waiting for it counts in the index: what is left, or what another failure would add
};

class Beliefs {
 public:
  explicit Beliefs(const PoolIndex& pools) : pools_(pools) {}

  // ---- Learning

  struct Report {
    PoolId pool{};
    base::OfferId offer;
    base::SharedText host;  // empty: unknown
    base::InstanceTag who;  // the purchase
    LaunchResult result{};
    base::Duration took{};        // kAccepted, kSoldOut: of the create call; kRan: since it was accepted
    base::Duration at_least{};    // how long the provider asked to be left alone
    bool had_run = false;         // kEnded, kLost
    bool whole_provider = false;  // kQuota: the quota is not of the region alone
    std::uint64_t pods = 0;       // kUnsupported: of which pods (Query::pods)
    std::uint64_t digest = 0;     // kUnsupported: digest_of(offer)
    std::string message{};        // kUnsupported: what the provider said
  };
  NextStep learn(const Report& report, base::TimePoint now);

  /// The pool is about to be asked. False if it may not be: somebody else holds the lease, or it cools.
  bool begin(PoolId pool, const base::InstanceTag& who, base::TimePoint now);
  /// After a restart: an instance that is already there.
  void found(PoolId pool, bool running, base::TimePoint now);
  /// Credentials of the provider were replaced: it may be asked at once.
  void credentials_changed(const base::ProviderName& provider);

  // ---- Believing

  /// Chance that a create succeeds now.
  double chance(PoolId pool, base::TimePoint now) const;
  /// The same with what the seller said of his stock at `said_at`.
  double chance(PoolId pool, model::Stock stock, base::TimePoint said_at, base::TimePoint now) const;
  /// What `chance` cannot be above, for little work; `now` and `said_at` as there.
  double most_chance(PoolId pool, model::Stock stock, base::TimePoint now) const;
  /// Valid until the next call; `stamp` tells whether it is still the same.
  const Traits& traits(PoolId pool, base::TimePoint now) const;
  /// Two equal stamps of a pool: its traits are the same.
  struct Stamp {
    std::uint32_t changes = 0;
    std::int64_t minute = -1;
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp(PoolId pool, base::TimePoint now) const;
  /// Chance of any create, over all that was tried lately.
  double usual_chance(base::TimePoint now) const;

  Opening opening(PoolId pool, int gpus, base::TimePoint now) const;
  bool host_blocked(const base::SharedText& host, base::TimePoint now) const;
  /// What the provider said when it refused such pods (Query::pods) the offer, if that is still what it was; or null.
  const std::string* refusal(const model::Offer& offer, std::uint64_t pods) const;
  bool any_refusal() const { return !refused_.empty(); }
  /// The offer changed since it was listed at `listed`.
  bool outdated(const model::Offer& offer, base::TimePoint listed) const;
  /// Calls per second of a provider, as a share of what it is configured for: halved by each 429, +10 % a minute.
  double rate_share(const base::ProviderName& provider, base::TimePoint now) const;

  const PoolIndex& pools() const { return pools_; }

 private:
  /// Of a pool that was asked at least once.
  struct Known {
    Evidence stock;
    Evidence ready;
    Measurements start;
    Interruptions lost;
    Cooling cooling;
    double answer_seconds = 0;  // 0: never measured
    bool asked = false;
    bool up = false;      // the last answer
    double surprise = 0;  // that answer, less what was believed before
    base::TimePoint answered_at{};
    std::optional<base::TimePoint> down_at;
    std::uint32_t changes = 0;
  };
  /// Surprises of kin, each weighed by how much it still says.
  class News {
   public:
    void replace(double before, base::Duration age_of_before, double surprise, base::TimePoint now);
    void joined() { ++pools_; }
    double sum(base::TimePoint now) const;
    int pools() const { return pools_; }

   private:
    std::array<double, kCorrelationParts.size()> parts_{};  // fading each at its own rate
    int pools_ = 0;
    base::TimePoint at_{};
  };
  struct Quota {
    Cooling cooling;
    std::optional<int> refused;  // GPUs (or instances without any) that would have been held: so many are too many
  };
  struct Group {
    Evidence stock;
    News news;
    Quota quota;
    int held = 0;  // GPUs, or instances without any
  };
  struct Provider {
    Evidence stock;
    Evidence ready;
    Measurements start;
    News news;
    Cooling sick;
    std::vector<base::TimePoint> failures;  // the last ones
    base::TimePoint paused_until{};
    base::TimePoint locked_until{};
    double rate = 1;
    base::TimePoint rate_at{};
    std::uint32_t changes = 0;
  };
  struct CachedTraits {
    Traits traits;
    Stamp stamp;
  };

  Known& known(PoolId pool);
  const Known* find(PoolId pool) const;
  Group& place(PoolId pool) { return at(places_, pools_.kin(pool).place); }
  Group& family(PoolId pool) { return at(families_, pools_.kin(pool).family); }
  Provider& provider(PoolId pool) { return at(providers_, pools_.kin(pool).provider); }
  template <class T>
  static T& at(std::vector<T>& list, std::uint32_t i) {
    if (list.size() <= i) list.resize(i + 1);
    return list[i];
  }
  template <class T>
  static const T& at(const std::vector<T>& list, std::uint32_t i) {
    static const T nothing{};
    return i < list.size() ? list[i] : nothing;
  }

  void learn_stock(PoolId pool, bool up, base::TimePoint now);
  void learn_start(const Report& report, bool ran, base::TimePoint now);
  void learn_answer(PoolId pool, base::Duration took);
  void hold(PoolId pool, int sign);
  void end(const Report& report, base::TimePoint now);
  void cool(const Report& report, base::TimePoint now);
  void cool_provider(const Report& report, base::TimePoint now);
  void settle_leases(const Report& report);
  void forget_old(base::TimePoint now);
  double usual_share(PoolId pool, base::TimePoint now) const;
  double readiness(PoolId pool, base::TimePoint now) const;
  double kin_says(PoolId pool, const Known* own, base::TimePoint now) const;
  Traits compute_traits(PoolId pool, base::TimePoint now) const;
  static double rate_of(const Provider& provider, base::TimePoint now);
  static Opening opening_of_quota(const Group& group, int units, base::TimePoint now);
  Opening opening_of_provider(PoolId pool, base::TimePoint now) const;

  const PoolIndex& pools_;
  std::vector<std::unique_ptr<Known>> known_;
  std::vector<Group> places_;
  std::vector<Group> families_;
  std::vector<Provider> providers_;
  Evidence all_;
  std::map<base::SharedText, base::TimePoint> blocked_hosts_;
  struct Refused {
    std::uint64_t digest = 0;
    base::TimePoint at;
    std::string message;
  };
  std::map<std::tuple<base::ProviderName, base::OfferId, std::uint64_t>, Refused> refused_;
  std::map<std::pair<base::ProviderName, base::OfferId>, base::TimePoint> changed_;
  mutable std::vector<CachedTraits> traits_;
};

}  // namespace spillway::core
