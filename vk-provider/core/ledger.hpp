// What each instance has cost: from the moment it was accepted until it is confirmed gone.
//
// Pure; owned by ledger_keeper, times are arguments. Follows instances, not pods: a pod's second attempt, a twin under
// the same tag and what the sweep ends each have an entry of their own, keyed by provider, instance id and tag, so
// that nothing can count twice. Amounts are whole micro-dollars, rounded up once per price, as invoices are.
//
// An instance is billed in periods: one from `billing.from` until it is gone, or, where a stopped instance is kept
// unbilled, one for each time it ran. A period is a second at least, and is billed in whole steps of the grain and for
// at least the minimum. Times of an entry are those of the provider's clock as far as it named them; how long a period
// lasts is measured by our steady clock, so that a wall clock that jumps changes nothing but what a restart finds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/maybe_time.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/core/spend_guard.hpp"
#include "vk-provider/model/instance.hpp"

namespace spillway::core {

/// Whom an instance belongs to. Empty texts: not known (yet).
struct LedgerOwner {
  LedgerOwner() = default;
  base::SharedText ns;
  base::SharedText pod;
  base::SharedText owner_kind;  // of the pod's controller; both empty: a bare pod
  base::SharedText owner_name;
  base::SharedText node;
  base::SharedText offer;
  base::Money price;  // as offered, for providers that do not say what they charge; 0: not known
  bool operator==(const LedgerOwner&) const = default;
};

struct LedgerEntry {
  LedgerEntry() = default;
  model::InstanceRef ref;
  base::InstanceTag tag;
  base::PodUid uid;
  LedgerOwner of;
  base::Money per_hour;
  std::chrono::seconds grain{1};
  std::chrono::seconds minimum{0};
  base::Money settled;                  // at former prices
  std::chrono::microseconds billed{0};  // ended periods, at this price
  base::WallTime opened;
  base::MaybeTime<base::WallTime> begin;  // of the period that runs
  base::WallTime since;                   // begin, or when this price began in this period
  base::WallTime until;                   // end of the last period; `opened` before there was one
  bool gone = false;                      // the provider said "not found"
  bool operator==(const LedgerEntry&) const = default;
};

/// An id alone is not enough: a cloud that begins anew may give it to somebody else.
using LedgerKey = std::pair<model::InstanceRef, base::InstanceTag>;
inline LedgerKey key_of(const LedgerEntry& entry) { return {entry.ref, entry.tag}; }

/// What it has cost if it goes at `at`. A running period counts as if it ended then.
base::Money cost_of(const LedgerEntry& entry, base::WallTime at);
/// The part of that which falls into [from, at): linear over its life, so that parts add up to the whole.
base::Money cost_since(const LedgerEntry& entry, base::WallTime from, base::WallTime at);

class Ledger {
 public:
  struct Item {
    LedgerEntry entry;
    base::TimePoint begun{};   // of the period that runs, by our clock
    base::TimePoint learnt{};  // when it was first heard of
    base::Money told;          // what the counters have seen of it
    bool presumed = false;     // the period that runs was begun by may_run()
  };
  using Items = std::map<LedgerKey, Item>;
  using Changed = std::vector<LedgerKey>;

  /// A claim of the provider. `earliest`: it cannot have begun before (our choice). `unbilled_stopped`: the
  /// provider keeps stopped instances, and bills nothing for them. The entries that are new or other ones now.
  Changed see(const model::Instance& instance, const base::PodUid& uid, const LedgerOwner& of, bool unbilled_stopped,
              std::optional<base::TimePoint> earliest, base::Now now);
  /// A container of it was told at `asked` to run, and may do so: a stopped instance costs money from then on, until a
  /// claim says how it was. The entries that are other ones now.
  Changed may_run(const model::InstanceRef& ref, base::TimePoint asked, base::Now now);
  /// The provider says "not found". The entries that were not gone before.
  Changed gone(const model::InstanceRef& ref, base::Now now) { return gone(ref, now, nullptr); }
  /// An entry that an earlier process wrote. It wins over what was heard meanwhile: later claims bring it up to date.
  void restore(LedgerEntry entry, base::Now now);
  /// It is written for good, and forgotten here.
  void forget(const LedgerKey& key);

  const Item* find(const LedgerKey& key) const;
  const Items& items() const { return items_; }
  /// The entry as of now: `cost_of` counts until the time that this returns.
  static base::WallTime time_of(const Item& item, base::Now now);

  /// Tells what each entry has come to cost since the last time.
  void accrue(base::Now now, const std::function<void(const LedgerEntry&, base::Money)>& tell);

 private:
  Changed gone(const model::InstanceRef& ref, base::Now now, const LedgerKey* but);
  static void start(Item& item, base::WallTime begin, std::optional<base::TimePoint> earliest, base::Now now);
  static void end(Item& item, base::WallTime at);
  static bool reprice(Item& item, base::Money per_hour, base::Now now);
  static bool follow_state(Item& item, const model::Instance& instance, bool unbilled_stopped, base::Now now);

  Items items_;
};

/// The period of an entry that runs, as the spend guard counts it.
SpendState::Open open_of(const LedgerEntry& entry);

/// What was spent in the windows of now by entries of a ledger, as the spend guard takes it up again.
class SpentSums {
 public:
  explicit SpentSums(base::Now now);
  void add(const LedgerEntry& entry);
  SpendState take();

 private:
  base::Now now_;
  base::WallTime day_began_;
  base::WallTime month_began_;
  SpendState state_;
  std::map<std::pair<SpendScope, std::string>, std::pair<base::Money, base::Money>> sums_;
};

}  // namespace spillway::core
