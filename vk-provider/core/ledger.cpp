#include "vk-provider/core/ledger.hpp"

#include <algorithm>
#include <utility>

namespace spillway::core {
namespace {

using base::Money;
using base::WallTime;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr __int128 kMicrosPerHour = 3'600'000'000;
// A claim that is younger shows what an order has done.
constexpr base::Duration kOrderWorks = std::chrono::seconds(30);

/// Rounded up: a fraction of a micro-dollar is charged.
Money price_of(microseconds time, Money per_hour) {
  const __int128 exact = static_cast<__int128>(per_hour.micros()) * time.count();
  return Money::from_micros(static_cast<std::int64_t>((exact + kMicrosPerHour - 1) / kMicrosPerHour));
}

/// Until when a period is paid that ends at `at`.
WallTime paid_until(const LedgerEntry& e, WallTime at) {
  const std::int64_t grain = std::max<std::int64_t>(e.grain.count(), 1);
  const auto whole = std::max(std::chrono::ceil<seconds>(at - *e.begin), seconds(1)).count();
  return *e.begin + std::max(seconds((whole + grain - 1) / grain * grain), e.minimum);
}

/// The part of `whole` that lies at or after `from`, if it came evenly from `begin` to `end`.
Money part_since(Money whole, WallTime begin, WallTime end, WallTime from) {
  if (from <= begin) return whole;
  if (from >= end) return {};
  const auto before = static_cast<__int128>(whole.micros()) * (from - begin).count() / (end - begin).count();
  return Money::from_micros(whole.micros() - static_cast<std::int64_t>(before));
}

/// When the last of its containers ended; what the provider stopped to bill at.
std::optional<WallTime> ended_at(const model::Instance& instance) {
  std::optional<WallTime> out;
  for (const auto& c : instance.containers) {
    if (c.finished_at && (!out || *c.finished_at > *out)) out = c.finished_at;
  }
  return out;
}

/// When the first container began to run that did so at or after `from`.
std::optional<WallTime> started_after(const model::Instance& instance, WallTime from) {
  std::optional<WallTime> out;
  for (const auto& c : instance.containers) {
    if (c.started_at && *c.started_at >= from && (!out || *c.started_at < *out)) out = c.started_at;
  }
  return out;
}

microseconds whole_micros(base::Duration d) { return std::chrono::ceil<microseconds>(d); }

void fill(LedgerOwner& known, const LedgerOwner& told) {
  const auto take = [](base::SharedText& to, const base::SharedText& from) {
    if (to.empty()) to = from;
  };
  take(known.ns, told.ns);
  take(known.pod, told.pod);
  take(known.owner_kind, told.owner_kind);
  take(known.owner_name, told.owner_name);
  take(known.node, told.node);
  take(known.offer, told.offer);
  if (known.price == Money()) known.price = told.price;
}

}  // namespace

Money cost_of(const LedgerEntry& e, WallTime at) {
  const microseconds running = e.begin ? std::max(paid_until(e, at) - e.since, microseconds(0)) : microseconds(0);
  return e.settled + price_of(e.billed + running, e.per_hour);
}

Money cost_since(const LedgerEntry& e, WallTime from, WallTime at) {
  return part_since(cost_of(e, at), e.opened, e.begin ? std::max(at, *e.begin) : e.until, from);
}

WallTime Ledger::time_of(const Item& item, base::Now now) {
  if (!item.entry.begin) return item.entry.until;
  return *item.entry.begin + whole_micros(now.steady - item.begun);
}

void Ledger::start(Item& item, WallTime begin, std::optional<base::TimePoint> earliest, base::Now now) {
  item.entry.begin = item.entry.since = begin;
  // The provider's clock may differ from ours: not by more than is possible.
  const base::TimePoint begun = now.steady - std::max<base::Duration>(now.wall - begin, base::Duration(0));
  item.begun = earliest ? std::max(begun, *earliest) : begun;
  item.presumed = false;
}

void Ledger::end(Item& item, WallTime at) {
  LedgerEntry& e = item.entry;
  e.billed += std::max(paid_until(e, at) - e.since, microseconds(0));
  e.until = std::max(at, *e.begin);
  e.begin.reset();
}

/// Periods begin and end with its containers, where what is stopped costs nothing. True if one did.
bool Ledger::follow_state(Item& item, const model::Instance& instance, bool unbilled_stopped, base::Now now) {
  LedgerEntry& e = item.entry;
  const bool stopped = unbilled_stopped && instance.state == model::InstanceState::kExited;
  if (item.presumed) {
    const auto started = started_after(instance, e.until);
    if (started) start(item, *started, item.begun, now);
    if (started && !stopped) return true;
    if (!stopped) item.presumed = false;  // it runs, whenever it began
    if (!started && stopped) {
      // A claim may be older than the order.
      if (now.steady - item.begun <= kOrderWorks) return false;
      item.presumed = false;
      e.begin.reset();
      return true;
    }
  }
  if (e.begin && stopped) {
    end(item, std::max(*e.begin, ended_at(instance).value_or(time_of(item, now))));
    return true;
  }
  if (e.begin) return false;
  const auto started = started_after(instance, e.until);
  if (!stopped) {
    start(item, started.value_or(std::max(e.until, now.wall)), {}, now);
    return true;
  }
  // A run between two claims, of which only its end was seen.
  const auto ended = ended_at(instance);
  if (!started || !ended || *ended <= e.until) return false;
  start(item, *started, {}, now);
  end(item, *ended);
  return true;
}

/// What was used so far costs what it cost then; the steps of the bill go on. A price that was not known holds from the
/// beginning.
bool Ledger::reprice(Item& item, Money per_hour, base::Now now) {
  LedgerEntry& e = item.entry;
  if (per_hour == e.per_hour) return false;
  if (e.per_hour != Money()) {
    const WallTime at = time_of(item, now);
    const microseconds used = e.begin ? std::max(at - e.since, microseconds(0)) : microseconds(0);
    e.settled = e.settled + price_of(e.billed + used, e.per_hour);
    e.billed = microseconds(0);
    e.since = at;
  }
  e.per_hour = per_hour;
  return true;
}

Ledger::Changed Ledger::see(const model::Instance& instance, const base::PodUid& uid, const LedgerOwner& of,
                            bool unbilled_stopped, std::optional<base::TimePoint> earliest, base::Now now) {
  const LedgerKey key{instance.ref, instance.tag};
  const auto [it, added] = items_.try_emplace(key);
  Item& item = it->second;
  LedgerEntry& e = item.entry;
  if (added) {
    e.ref = instance.ref;
    e.tag = instance.tag;
    e.uid = uid;
    e.of = of;
    e.grain = instance.billing.grain;
    e.minimum = instance.billing.minimum;
    e.per_hour = instance.price_per_hour.value_or(of.price);
    item.learnt = now.steady;
    const WallTime begin = instance.billing.from.value_or(instance.created_at.value_or(now.wall));
    e.opened = e.until = begin;
    start(item, begin, earliest, now);
    follow_state(item, instance, unbilled_stopped, now);
    // Whoever had its id before has it no more.
    Changed changed = gone(instance.ref, now, &key);
    changed.push_back(key);
    return changed;
  }
  const LedgerOwner before = e.of;
  fill(e.of, of);
  bool changed = e.of != before;
  if (std::exchange(e.gone, false)) {
    // "Not found" was not the truth: it was billed all the time.
    start(item, e.until, {}, now);
    changed = true;
  }
  if (instance.price_per_hour || e.per_hour == Money()) {
    changed = reprice(item, instance.price_per_hour.value_or(e.of.price), now) || changed;
  }
  changed = follow_state(item, instance, unbilled_stopped, now) || changed;
  return changed ? Changed{key} : Changed();
}

Ledger::Changed Ledger::may_run(const model::InstanceRef& ref, base::TimePoint asked, base::Now now) {
  Changed changed;
  for (auto it = items_.lower_bound({ref, base::InstanceTag()}); it != items_.end() && it->first.first == ref; ++it) {
    Item& item = it->second;
    if (item.entry.gone || item.entry.begin) continue;
    start(item, std::max(item.entry.until, now.wall - whole_micros(now.steady - asked)), asked, now);
    item.presumed = true;
    changed.push_back(it->first);
  }
  return changed;
}

Ledger::Changed Ledger::gone(const model::InstanceRef& ref, base::Now now, const LedgerKey* but) {
  Changed changed;
  for (auto it = items_.lower_bound({ref, base::InstanceTag()}); it != items_.end() && it->first.first == ref; ++it) {
    Item& item = it->second;
    if (item.entry.gone || (but != nullptr && it->first == *but)) continue;
    if (item.entry.begin) end(item, time_of(item, now));
    item.entry.gone = true;
    changed.push_back(it->first);
  }
  return changed;
}

void Ledger::restore(LedgerEntry entry, base::Now now) {
  Item& item = items_[key_of(entry)];
  item.entry = std::move(entry);
  item.learnt = now.steady;
  if (item.entry.begin) {
    item.begun = now.steady - std::max<base::Duration>(now.wall - *item.entry.begin, base::Duration(0));
  }
  item.told = cost_of(item.entry, time_of(item, now));
}

void Ledger::forget(const LedgerKey& key) { items_.erase(key); }

const Ledger::Item* Ledger::find(const LedgerKey& key) const {
  const auto it = items_.find(key);
  return it == items_.end() ? nullptr : &it->second;
}

void Ledger::accrue(base::Now now, const std::function<void(const LedgerEntry&, Money)>& tell) {
  for (auto& [key, item] : items_) {
    const Money cost = cost_of(item.entry, time_of(item, now));
    if (cost <= item.told) continue;
    tell(item.entry, cost - item.told);
    item.told = cost;
  }
}

// ---- what the spend guard goes on with

SpendState::Open open_of(const LedgerEntry& e) {
  SpendState::Open open;
  open.purchase.tag = e.tag;
  open.purchase.ns = e.of.ns;
  open.purchase.provider = e.ref.provider;
  open.purchase.node = e.of.node;
  open.purchase.per_hour = e.per_hour;
  open.purchase.grain = e.grain;
  open.purchase.minimum = e.minimum;
  open.since = e.begin.value_or(e.until);
  return open;
}

SpentSums::SpentSums(base::Now now) : now_(now) {
  const auto day = std::chrono::floor<std::chrono::days>(now.wall);
  const std::chrono::year_month_day date(day);
  day_began_ = day;
  month_began_ = std::chrono::sys_days(date.year() / date.month() / 1);
  state_.day = day.time_since_epoch().count();
  state_.month = static_cast<int>(date.year()) * 12LL + static_cast<unsigned>(date.month()) - 1;
}

void SpentSums::add(const LedgerEntry& e) {
  LedgerEntry ended = e;
  if (e.begin) {
    // The period that runs is taken up as a purchase; what was before it is spent.
    state_.open.push_back(open_of(e));
    ended.begin.reset();
    ended.until = std::max(e.until, e.opened);
  }
  const Money day = cost_since(ended, day_began_, now_.wall);
  const Money month = cost_since(ended, month_began_, now_.wall);
  const std::pair<SpendScope, std::string> scopes[] = {{SpendScope::kInstallation, ""},
                                                       {SpendScope::kNamespace, e.of.ns.str()},
                                                       {SpendScope::kProvider, e.ref.provider.str()},
                                                       {SpendScope::kNode, e.of.node.str()}};
  for (const auto& scope : scopes) {
    auto& [in_day, in_month] = sums_[scope];
    in_day = in_day + day;
    in_month = in_month + month;
  }
}

SpendState SpentSums::take() {
  for (const auto& [scope, sums] : sums_) {
    if (sums.second == Money() && sums.first == Money()) continue;
    state_.closed.push_back({scope.first, scope.second, sums.first, sums.second});
  }
  return std::move(state_);
}

}  // namespace spillway::core
