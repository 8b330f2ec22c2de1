#include "vk-provider/core/spend_guard.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace spillway::core {
namespace {

using Amount = __int128;

constexpr Amount kNanosPerHour = 3'600'000'000'000;
constexpr std::array<SpendScope, 4> kScopes{SpendScope::kInstallation, SpendScope::kNamespace, SpendScope::kProvider,
                                            SpendScope::kNode};
constexpr std::array<SpendSpan, 2> kSpans{SpendSpan::kDay, SpendSpan::kMonth};

Amount amount(base::Money money) { return Amount{money.micros()} * kNanosPerHour; }
/// Rounded up: a fraction of a micro-dollar is spent.
base::Money money(Amount a) {
  const Amount whole = (a + kNanosPerHour - 1) / kNanosPerHour;
  constexpr Amount kEnd = std::numeric_limits<std::int64_t>::max();
  return base::Money::from_micros(static_cast<std::int64_t>(std::min(whole, kEnd)));
}

/// In whole steps of `grain`, at least `minimum`.
base::Duration billed(const Purchase& p, base::Duration ran) {
  const base::Duration grain = std::max<base::Duration>(p.grain, std::chrono::seconds(1));
  const base::Duration span = std::max<base::Duration>({ran, p.minimum, base::Duration(0)});
  return (span + grain - base::Duration(1)) / grain * grain;
}

std::optional<base::Money> cap_of(const SpendCaps& caps, SpendSpan span) {
  switch (span) {
    case SpendSpan::kHour: return caps.per_hour;
    case SpendSpan::kDay: return caps.per_day;
    case SpendSpan::kMonth: return caps.per_month;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(SpendScope scope) {
  switch (scope) {
    case SpendScope::kPod: return "pod";
    case SpendScope::kInstallation: return "installation";
    case SpendScope::kNamespace: return "namespace";
    case SpendScope::kProvider: return "provider";
    case SpendScope::kNode: return "node";
  }
  return "";
}

std::string_view to_string(SpendSpan span) {
  switch (span) {
    case SpendSpan::kHour: return "hour";
    case SpendSpan::kDay: return "day";
    case SpendSpan::kMonth: return "month";
  }
  return "";
}

std::string OverCap::message() const {
  return fmt::format("{}{}{}: ${} of at most ${} per {}", to_string(scope), name.empty() ? "" : " ", name,
                     with_it.to_dollars(), cap.to_dollars(), to_string(span));
}

bool is_capped(const SpendPolicy& policy, const base::ProviderName& provider) {
  const auto own = policy.providers.find(provider);
  return policy.installation.per_hour || (own != policy.providers.end() && own->second.per_hour);
}

// ---- accounts

const SpendCaps& SpendGuard::caps_of(SpendScope scope, const std::string& name) const {
  static const SpendCaps none;
  const auto find = [&](const auto& map, const auto& key, const SpendCaps& other) -> const SpendCaps& {
    const auto it = map.find(key);
    return it == map.end() ? other : it->second;
  };
  switch (scope) {
    case SpendScope::kPod: return none;
    case SpendScope::kInstallation: return policy_.installation;
    case SpendScope::kNamespace: return find(policy_.namespaces, name, policy_.each_namespace);
    case SpendScope::kProvider: return find(policy_.providers, base::ProviderName(name), none);
    case SpendScope::kNode: return find(policy_.nodes, name, none);
  }
  return none;
}

SpendGuard::Account& SpendGuard::account(SpendScope scope, const std::string& name) {
  const auto [it, added] = accounts_.try_emplace({scope, name});
  if (added) it->second.caps = caps_of(scope, name);
  return it->second;
}

std::array<SpendGuard::Account*, 4> SpendGuard::accounts_of(const Purchase& p) {
  return {&account(SpendScope::kInstallation, {}), &account(SpendScope::kNamespace, p.ns),
          &account(SpendScope::kProvider, p.provider.str()), &account(SpendScope::kNode, p.node)};
}

/// What the reservation comes to between two times if nothing happens.
Amount SpendGuard::in_window(const Reserved& r, base::TimePoint from, base::TimePoint to) const {
  const base::TimePoint begin = std::max(r.since, from);
  if (begin >= to) return 0;
  base::TimePoint end = to;
  if (r.purchase.ends_within && !r.overdue) end = std::min(end, r.since + *r.purchase.ends_within);
  const base::TimePoint paid_until = r.since + billed(r.purchase, end - r.since);
  return Amount{r.purchase.per_hour.micros()} * std::max<base::Duration>(paid_until - begin, base::Duration(0)).count();
}

/// What it has come to in the window if it is gone at `now`.
Amount SpendGuard::so_far(const Reserved& r, const Window& window, base::TimePoint now) const {
  const base::TimePoint begin = std::max(r.since, window.opened);
  const base::TimePoint paid_until = r.since + billed(r.purchase, now - r.since);
  return Amount{r.purchase.per_hour.micros()} * std::max<base::Duration>(paid_until - begin, base::Duration(0)).count();
}

void SpendGuard::count(Reserved& r, int sign) {
  for (Account* const account : r.accounts) {
    account->rate += sign * r.purchase.per_hour.micros();
    for (size_t w = 0; w < kWindows; ++w) {
      const base::TimePoint ends = windows_[w].ends;
      account->planned[w] += sign * in_window(r, windows_[w].opened, ends);
      account->next[w] += sign * in_window(r, ends, ends + length(w));
    }
  }
}

// ---- windows

base::Duration SpendGuard::length(size_t window) {
  return window == 0 ? std::chrono::hours(24) : std::chrono::hours(24 * 31);
}

std::int64_t SpendGuard::index_of(size_t window, base::WallTime wall) {
  const auto day = std::chrono::floor<std::chrono::days>(wall);
  if (window == 0) return day.time_since_epoch().count();
  const std::chrono::year_month_day date(day);
  return static_cast<int>(date.year()) * 12LL + static_cast<unsigned>(date.month()) - 1;
}

base::WallTime SpendGuard::end_of(size_t window, std::int64_t index) {
  if (window == 0) return std::chrono::sys_days(std::chrono::days(index + 1));
  const std::int64_t next = index + 1;
  return std::chrono::sys_days(std::chrono::year(static_cast<int>(next / 12)) /
                               std::chrono::month(static_cast<unsigned>(next % 12 + 1)) / 1);
}

SpendGuard::Window SpendGuard::open_window(size_t window, std::int64_t index, base::TimePoint opened, base::Now now) {
  Window out;
  out.index = index;
  const base::Duration left =
      std::clamp<base::Duration>(end_of(window, index) - now.wall, std::chrono::seconds(1), length(window));
  out.ends = now.steady + left;
  out.opened = opened;
  return out;
}

void SpendGuard::advance(base::Now now) {
  notice_overdue(now.steady);
  bool rolled = false;
  for (size_t w = 0; w < kWindows; ++w) {
    Window& window = windows_[w];
    if (now.steady < window.ends) continue;
    const std::int64_t today = index_of(w, now.wall);
    rolled = true;
    if (today <= window.index && !window.went_on) {
      // The clock was set back: the same window goes on until it ends by that clock, or has passed once more.
      window.ends = open_window(w, window.index, window.opened, now).ends;
      window.went_on = true;
      continue;
    }
    // Asked after a long sleep, the window that runs now may have begun later than the last one ended.
    Window next = open_window(w, std::max(today, window.index + 1), window.ends, now);
    next.opened = std::max(window.ends, next.ends - length(w));
    window = next;
    for (auto& [key, account] : accounts_) account.closed[w] = 0;
  }
  if (rolled) recount();
}

void SpendGuard::recount() {
  for (auto& [key, account] : accounts_) {
    account.rate = 0;
    account.planned = {};
    account.next = {};
  }
  for (auto& [tag, reserved] : reserved_) count(reserved, 1);
}

void SpendGuard::notice_overdue(base::TimePoint now) {
  while (!expected_ends_.empty() && expected_ends_.begin()->first <= now) {
    const auto it = reserved_.find(expected_ends_.begin()->second);
    expected_ends_.erase(expected_ends_.begin());
    if (it == reserved_.end() || it->second.overdue) continue;
    count(it->second, -1);
    it->second.overdue = true;
    count(it->second, 1);
  }
}

// ---- purchases

SpendGuard::SpendGuard(SpendPolicy policy, base::Now now) : policy_(std::move(policy)) {
  for (size_t w = 0; w < kWindows; ++w) {
    const std::int64_t today = index_of(w, now.wall);
    windows_[w] = open_window(w, today, now.steady - (now.wall - end_of(w, today - 1)), now);
  }
}

SpendGuard::SpendGuard(SpendPolicy policy, const SpendState& state, base::Now now)
    : SpendGuard(std::move(policy), now) {
  resume(state, now);
}

void SpendGuard::resume(const SpendState& state, base::Now now) {
  advance(now);
  const std::array<std::int64_t, kWindows> stored{state.day, state.month};
  for (size_t w = 0; w < kWindows; ++w) {
    // A window that is later than today was opened by a clock that went wrong; its money is spent all the same.
    if (stored[w] > windows_[w].index) windows_[w].index = stored[w];
  }
  for (const SpendState::Spent& spent : state.closed) {
    Account& a = account(spent.scope, spent.name);
    if (state.day == windows_[0].index) a.closed[0] += amount(spent.in_day);
    if (state.month == windows_[1].index) a.closed[1] += amount(spent.in_month);
  }
  for (const SpendState::Open& open : state.open) adopt(open.purchase, now.steady - (now.wall - open.since), now);
}

SpendState SpendGuard::state(base::Now now) {
  advance(now);
  SpendState out;
  out.day = windows_[0].index;
  out.month = windows_[1].index;
  for (const auto& [tag, r] : reserved_) {
    const auto age = std::chrono::ceil<std::chrono::microseconds>(now.steady - r.since);
    out.open.push_back({r.purchase, now.wall - age});
  }
  std::ranges::sort(out.open, {}, [](const SpendState::Open& o) { return o.purchase.tag; });
  for (const auto& [key, a] : accounts_) {
    if (a.closed[0] == 0 && a.closed[1] == 0) continue;
    out.closed.push_back({key.first, key.second, money(a.closed[0]), money(a.closed[1])});
  }
  return out;
}

/// Which cap the accounts are over, as they are counted now.
std::optional<OverCap> SpendGuard::over(const Purchase& p, const std::array<Account*, 4>& accounts) const {
  if (p.pod_cap && p.per_hour > *p.pod_cap) {
    return OverCap{SpendScope::kPod, SpendSpan::kHour, {}, *p.pod_cap, p.per_hour};
  }
  const std::array<std::string, 4> names{"", p.ns, p.provider.str(), p.node};
  for (size_t i = 0; i < accounts.size(); ++i) {
    const Account& a = *accounts[i];
    if (a.caps.per_hour && a.rate > a.caps.per_hour->micros()) {
      return OverCap{kScopes[i], SpendSpan::kHour, names[i], *a.caps.per_hour, base::Money::from_micros(a.rate)};
    }
    for (size_t w = 0; w < kWindows; ++w) {
      const auto cap = cap_of(a.caps, kSpans[w]);
      if (!cap) continue;
      const Amount most = std::max(a.closed[w] + a.planned[w], a.next[w]);
      if (most > amount(*cap)) return OverCap{kScopes[i], kSpans[w], names[i], *cap, money(most)};
    }
  }
  return std::nullopt;
}

std::optional<OverCap> SpendGuard::denies(const Purchase& purchase, base::Now now) {
  advance(now);
  Reserved r;
  r.purchase = purchase;
  r.since = now.steady;
  r.accounts = accounts_of(purchase);
  count(r, 1);
  auto denied = over(purchase, r.accounts);
  count(r, -1);
  return denied;
}

std::optional<OverCap> SpendGuard::reserve(const Purchase& purchase, base::Now now) {
  advance(now);
  if (reserved_.contains(purchase.tag)) return std::nullopt;
  if (auto denied = denies(purchase, now)) return denied;
  return adopt(purchase, now.steady, now);
}

std::optional<OverCap> SpendGuard::adopt(const Purchase& purchase, base::TimePoint since, base::Now now) {
  advance(now);
  const auto [it, added] = reserved_.try_emplace(purchase.tag);
  Reserved& r = it->second;
  if (added) {
    r.purchase = purchase;
    r.since = std::min(since, now.steady);
    r.accounts = accounts_of(purchase);
    count(r, 1);
    if (purchase.ends_within) expected_ends_.emplace(r.since + *purchase.ends_within, purchase.tag);
    notice_overdue(now.steady);
  } else if (r.purchase.node.empty() && !purchase.node.empty()) {
    // It was heard of before its pod was: only now it is known whose it is.
    count(r, -1);
    r.purchase.ns = purchase.ns;
    r.purchase.node = purchase.node;
    if (r.purchase.per_hour == base::Money()) r.purchase.per_hour = purchase.per_hour;
    r.accounts = accounts_of(r.purchase);
    count(r, 1);
  }
  return over(r.purchase, r.accounts);
}

std::optional<OverCap> SpendGuard::reprice(const base::InstanceTag& tag, base::Money per_hour, base::Now now) {
  advance(now);
  const auto it = reserved_.find(tag);
  if (it == reserved_.end()) return std::nullopt;
  count(it->second, -1);
  it->second.purchase.per_hour = per_hour;
  count(it->second, 1);
  return over(it->second.purchase, it->second.accounts);
}

bool SpendGuard::release(const base::InstanceTag& tag, base::Now now) {
  advance(now);
  const auto it = reserved_.find(tag);
  if (it == reserved_.end()) return false;
  Reserved& r = it->second;
  count(r, -1);
  for (Account* const account : r.accounts) {
    for (size_t w = 0; w < kWindows; ++w) account->closed[w] += so_far(r, windows_[w], now.steady);
  }
  reserved_.erase(it);
  return true;
}

// ---- what is left

base::Money SpendGuard::headroom(const Purchase& purchase, base::Now now) {
  advance(now);
  Amount least = purchase.pod_cap ? purchase.pod_cap->micros() : std::numeric_limits<std::int64_t>::max();
  Reserved unit;
  unit.purchase = purchase;
  unit.purchase.per_hour = base::Money::from_micros(1);
  unit.since = now.steady;
  for (const Account* const a : accounts_of(purchase)) {
    if (a->caps.per_hour) least = std::min<Amount>(least, a->caps.per_hour->micros() - a->rate);
    for (size_t w = 0; w < kWindows; ++w) {
      const auto cap = cap_of(a->caps, kSpans[w]);
      if (!cap) continue;
      const base::TimePoint ends = windows_[w].ends;
      const Amount now_each = in_window(unit, windows_[w].opened, ends);
      const Amount next_each = in_window(unit, ends, ends + length(w));
      if (now_each > 0) least = std::min(least, (amount(*cap) - a->closed[w] - a->planned[w]) / now_each);
      if (next_each > 0) least = std::min(least, (amount(*cap) - a->next[w]) / next_each);
    }
  }
  return base::Money::from_micros(static_cast<std::int64_t>(std::max<Amount>(least, 0)));
}

double SpendGuard::price_factor(const Purchase& purchase, base::Now now) {
  advance(now);
  constexpr double kFree = 0.8;
  double used = 0;
  const auto add = [&](Amount part, Amount cap) {
    if (cap > 0) used = std::max(used, static_cast<double>(part) / static_cast<double>(cap));
  };
  for (const Account* const a : accounts_of(purchase)) {
    if (a->caps.per_hour) add(a->rate, a->caps.per_hour->micros());
    for (size_t w = 0; w < kWindows; ++w) {
      if (const auto cap = cap_of(a->caps, kSpans[w])) add(a->closed[w] + a->planned[w], amount(*cap));
    }
  }
  return 1 + std::clamp((used - kFree) / (1 - kFree), 0.0, 1.0);
}

base::Money SpendGuard::burn(SpendScope scope, const std::string& name) const {
  const auto it = accounts_.find({scope, name});
  return base::Money::from_micros(it == accounts_.end() ? 0 : it->second.rate);
}

base::Money SpendGuard::spent(SpendScope scope, const std::string& name, SpendSpan span, base::Now now) {
  advance(now);
  const auto it = accounts_.find({scope, name});
  if (it == accounts_.end() || span == SpendSpan::kHour) return {};
  const size_t w = span == SpendSpan::kDay ? 0 : 1;
  Amount sum = it->second.closed[w];
  for (const auto& [tag, r] : reserved_) {
    if (std::ranges::find(r.accounts, &it->second) != r.accounts.end()) sum += so_far(r, windows_[w], now.steady);
  }
  return money(sum);
}

}  // namespace spillway::core
