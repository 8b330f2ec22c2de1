// The hard limits on money: what may be rented at once, and what may be spent in a day and in a month.
//
// Pure; one owner, times are arguments. A purchase is reserved before anything is bought, counts until its instance is
// confirmed gone, and is released once: what is still ending, and what nobody knows the fate of, counts. All of it is
// whole micro-dollars; no cap is ever passed by one, except by what was found (adopt, reprice) and is said to be over.
//
// A window counts what was spent in it and what everything that runs would still cost until its end; the next window is
// looked at, too, because pods are not stopped when it begins. So a cap of $24 a day admits one dollar an hour, or more
// of pods that are ended before (`ends_within`). Days and months are those of UTC; a clock that is set back or forth
// never opens a window a second time, nor before the time of the last one has passed.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/money.hpp"

namespace spillway::core {

enum class SpendScope : std::uint8_t { kPod, kInstallation, kNamespace, kProvider, kNode };
enum class SpendSpan : std::uint8_t { kHour, kDay, kMonth };
std::string_view to_string(SpendScope scope);
std::string_view to_string(SpendSpan span);

struct SpendCaps {
  std::optional<base::Money> per_hour;  // of all that runs at once
  std::optional<base::Money> per_day;
  std::optional<base::Money> per_month;
  bool operator==(const SpendCaps&) const = default;
};

struct SpendPolicy {
  SpendCaps installation;
  SpendCaps each_namespace;  // of those that `namespaces` does not name
  std::map<std::string, SpendCaps> namespaces;
  std::map<base::ProviderName, SpendCaps> providers;
  std::map<std::string, SpendCaps> nodes;
  bool operator==(const SpendPolicy&) const = default;
};

/// True if some cap in dollars per hour holds for whatever is rented there.
bool is_capped(const SpendPolicy& policy, const base::ProviderName& provider);

struct Purchase {
  base::InstanceTag tag;
  base::SharedText ns;
  base::ProviderName provider;
  base::SharedText node;
  base::Money per_hour;
  std::optional<base::Money> pod_cap;         // per hour, the lowest of what pod and node say
  std::chrono::seconds grain{1};              // billed in such steps, ...
  std::chrono::seconds minimum{0};            // ... and at least so much
  std::optional<base::Duration> ends_within;  // it is ended by then, whatever happens
};

struct OverCap {
  SpendScope scope{};
  SpendSpan span{};
  std::string name;  // of the namespace, provider or node
  base::Money cap;
  base::Money with_it;  // what it would come to
  /// "namespace team-a: $12.00 of at most $10.00 per hour"
  std::string message() const;
};

/// What has to survive the process. Purchases come back by it; so release what turns out to be gone.
struct SpendState {
  struct Open {
    Purchase purchase;
    base::WallTime since;
  };
  struct Spent {
    SpendScope scope{};
    std::string name;
    base::Money in_day;
    base::Money in_month;
  };
  std::int64_t day = 0;    // since 1970
  std::int64_t month = 0;  // year * 12 + month - 1
  std::vector<Open> open;
  std::vector<Spent> closed;  // of what was released in the current windows
};

class SpendGuard {
 public:
  explicit SpendGuard(SpendPolicy policy, base::Now now);
  /// A guard that goes on where another one stopped.
  SpendGuard(SpendPolicy policy, const SpendState& state, base::Now now);
  SpendGuard(const SpendGuard&) = delete;
  SpendGuard& operator=(const SpendGuard&) = delete;
  SpendGuard(SpendGuard&&) = default;
  SpendGuard& operator=(SpendGuard&&) = default;
  ~SpendGuard() = default;

  SpendState state(base::Now now);
  /// The same after it has begun: what was spent is added, what is open counts unless it does already.
  void resume(const SpendState& state, base::Now now);

  /// The cap that stands in the way of it now, if there is one.
  std::optional<OverCap> denies(const Purchase& purchase, base::Now now);
  /// Takes the money, or takes nothing and says which cap stands in the way. The same tag again takes nothing more.
  std::optional<OverCap> reserve(const Purchase& purchase, base::Now now);
  /// The price read back from what was created, for its whole life. Says what is over now; it counts until released.
  std::optional<OverCap> reprice(const base::InstanceTag& tag, base::Money per_hour, base::Now now);
  /// An instance that exists already: it counts, whatever the caps say. Says what is over now. Of one that was adopted
  /// without a node the owner is learnt.
  std::optional<OverCap> adopt(const Purchase& purchase, base::TimePoint since, base::Now now);
  /// Nothing was bought, or it is confirmed gone. True once for each tag.
  bool release(const base::InstanceTag& tag, base::Now now);

  /// The most that one more instance may cost per hour; `purchase.per_hour` does not matter. 0: nothing.
  base::Money headroom(const Purchase& purchase, base::Now now);
  /// 1 until four fifths of a cap are used, then rising to 2 when all of it is.
  double price_factor(const Purchase& purchase, base::Now now);

  base::Money burn(SpendScope scope, const std::string& name) const;                            // per hour, now
  base::Money spent(SpendScope scope, const std::string& name, SpendSpan span, base::Now now);  // so far, in the window
  bool counts(const base::InstanceTag& tag) const { return reserved_.contains(tag); }
  size_t open() const { return reserved_.size(); }

 private:
  // Micro-dollars per hour times nanoseconds: sums of it are exact.
  using Amount = __int128;
  static constexpr size_t kWindows = 2;  // day, month

  struct Window {
    std::int64_t index = 0;
    base::TimePoint opened;
    base::TimePoint ends;
    bool went_on = false;  // beyond its end, because the clock was set back
  };
  struct Account {
    SpendCaps caps;
    std::int64_t rate = 0;                   // micro-dollars per hour
    std::array<Amount, kWindows> closed{};   // of what was released
    std::array<Amount, kWindows> planned{};  // of what is open, until the window ends
    std::array<Amount, kWindows> next{};     // in the window after it
  };
  using AccountKey = std::pair<SpendScope, std::string>;
  struct Reserved {
    Purchase purchase;
    base::TimePoint since;
    bool overdue = false;  // should have ended, and has not
    std::array<Account*, 4> accounts{};
  };

  Account& account(SpendScope scope, const std::string& name);
  std::array<Account*, 4> accounts_of(const Purchase& purchase);
  const SpendCaps& caps_of(SpendScope scope, const std::string& name) const;
  Amount in_window(const Reserved& r, base::TimePoint from, base::TimePoint to) const;
  Amount so_far(const Reserved& r, const Window& window, base::TimePoint now) const;
  void count(Reserved& r, int sign);
  void advance(base::Now now);
  void recount();
  void notice_overdue(base::TimePoint now);
  std::optional<OverCap> over(const Purchase& purchase, const std::array<Account*, 4>& accounts) const;
  static base::Duration length(size_t window);
  static std::int64_t index_of(size_t window, base::WallTime wall);
  static base::WallTime end_of(size_t window, std::int64_t index);
  static Window open_window(size_t window, std::int64_t index, base::TimePoint opened, base::Now now);

  SpendPolicy policy_;
  std::map<AccountKey, Account> accounts_;
  std::unordered_map<base::InstanceTag, Reserved> reserved_;
  std::multimap<base::TimePoint, base::InstanceTag> expected_ends_;
  std::array<Window, kWindows> windows_{};
};

}  // namespace spillway::core
