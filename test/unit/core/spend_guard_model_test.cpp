// The spend guard beside a plain model of it: 100,000 random steps, and no cap is passed by a micro-dollar.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "vk-provider/base/random.hpp"
#include "vk-provider/core/spend_guard.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using base::Money;
using base::WallTime;
using Scoped = std::pair<SpendScope, std::string>;

constexpr int kSteps = 100'000;

SpendPolicy policy() {
  const auto caps = [](std::int64_t hour, std::int64_t day, std::int64_t month) {
    SpendCaps c;
    if (hour > 0) c.per_hour = Money::from_micros(hour);
    if (day > 0) c.per_day = Money::from_micros(day);
    if (month > 0) c.per_month = Money::from_micros(month);
    return c;
  };
  SpendPolicy p;
  p.installation = caps(20'000'001, 300'000'007, 7'000'000'003);
  p.each_namespace = caps(9'000'000, 150'000'001, 0);
  p.namespaces["ns0"] = caps(7'777'777, 0, 2'500'000'001);
  p.providers[base::ProviderName("p0")] = caps(11'000'000, 0, 0);
  p.nodes["n1"] = caps(0, 120'000'001, 0);
  return p;
}

struct Rented {
  Purchase purchase;
  WallTime since;
  std::optional<WallTime> until;  // gone
};

/// What is really billed, by the calendar.
class Model {
 public:
  explicit Model(const SpendPolicy& p) : policy_(p) {}

  std::map<base::InstanceTag, Rented> open;

  static std::vector<Scoped> accounts(const Purchase& p) {
    return {{SpendScope::kInstallation, ""},
            {SpendScope::kNamespace, p.ns},
            {SpendScope::kProvider, p.provider.str()},
            {SpendScope::kNode, p.node}};
  }
  SpendCaps caps(const Scoped& account) const {
    if (account.first == SpendScope::kInstallation) return policy_.installation;
    if (account.first == SpendScope::kNamespace) {
      const auto it = policy_.namespaces.find(account.second);
      return it == policy_.namespaces.end() ? policy_.each_namespace : it->second;
    }
    if (account.first == SpendScope::kProvider) {
      const auto it = policy_.providers.find(base::ProviderName(account.second));
      return it == policy_.providers.end() ? SpendCaps() : it->second;
    }
    const auto it = policy_.nodes.find(account.second);
    return it == policy_.nodes.end() ? SpendCaps() : it->second;
  }
  std::map<Scoped, std::int64_t> rates() const {
    std::map<Scoped, std::int64_t> out;
    for (const auto& [tag, r] : open) {
      for (const Scoped& a : accounts(r.purchase)) out[a] += r.purchase.per_hour.micros();
    }
    return out;
  }
  /// The bill of an instance that is gone, spread over days and months as time passed.
  void close(const Rented& r, WallTime gone) {
    auto ran = std::max<std::chrono::microseconds>(gone - r.since, r.purchase.minimum);
    const std::chrono::microseconds grain = r.purchase.grain;
    ran = (ran + grain - 1us) / grain * grain;
    const WallTime end = r.since + ran;
    for (WallTime t = r.since; t < end;) {
      const auto day = std::chrono::floor<std::chrono::days>(t);
      // What is rounded up is billed with the last moment in which it ran.
      const bool last = std::chrono::floor<std::chrono::days>(gone) == day || gone <= WallTime(day);
      const WallTime stop = last ? end : std::min<WallTime>(end, day + std::chrono::days(1));
      const std::chrono::year_month_day date(day);
      const __int128 amount = __int128{r.purchase.per_hour.micros()} * (stop - t).count();
      for (const Scoped& a : accounts(r.purchase)) {
        days_[{a, day.time_since_epoch().count()}] += amount;
        months_[{a, static_cast<int>(date.year()) * 12 + static_cast<int>(static_cast<unsigned>(date.month()))}] +=
            amount;
      }
      t = stop;
    }
  }
  void check() const {
    constexpr __int128 kHour = 3'600'000'000;
    for (const auto& [key, amount] : days_) {
      const auto cap = caps(key.first).per_day;
      CAPTURE(to_string(key.first.first), key.first.second, key.second);
      if (cap) CHECK(amount <= cap->micros() * kHour);
    }
    for (const auto& [key, amount] : months_) {
      const auto cap = caps(key.first).per_month;
      CAPTURE(to_string(key.first.first), key.first.second, key.second);
      if (cap) CHECK(amount <= cap->micros() * kHour);
    }
    CHECK(days_.size() > 100);
  }

 private:
  const SpendPolicy& policy_;
  std::map<std::pair<Scoped, std::int64_t>, __int128> days_;
  std::map<std::pair<Scoped, std::int64_t>, __int128> months_;
};

class Run {
 public:
  explicit Run(std::uint64_t seed) : random_(seed), model_(policy_), guard_(policy_, now_) {}

  void step() {
    const std::uint64_t dice = random_.next() % 100;
    if (dice < 50) {
      reserve();
    } else if (dice < 72) {
      release();
    } else if (dice < 77) {
      reserve_again();
    } else if (dice < 99) {
      wait();
    } else {
      restart();
    }
    compare();
  }
  void finish() {
    while (!model_.open.empty()) release();
    model_.check();
  }
  int bought() const { return bought_; }
  int denied() const { return denied_; }

 private:
  void reserve() {
    Purchase p;
    p.tag = base::InstanceTag("t" + std::to_string(++count_));
    p.ns = "ns" + std::to_string(random_.next() % 3);
    p.provider = base::ProviderName("p" + std::to_string(random_.next() % 2));
    p.node = "n" + std::to_string(random_.next() % 2);
    p.per_hour = Money::from_micros(1 + static_cast<std::int64_t>(random_.next() % 3'000'000));
    p.grain = random_.next() % 4 == 0 ? 3600s : 1s;
    p.minimum = random_.next() % 4 == 0 ? 600s : 0s;
    if (random_.next() % 2 == 0) p.ends_within = std::chrono::minutes(1 + random_.next() % 600);
    const Money headroom = guard_.headroom(p, now_);
    const bool taken = !guard_.reserve(p, now_);
    // What there is room for is taken, and nothing else.
    CHECK(taken == (p.per_hour <= headroom));
    (taken ? bought_ : denied_) += 1;
    if (taken) model_.open[p.tag] = {p, now_.wall, {}};
  }
  void reserve_again() {
    if (model_.open.empty()) return;
    CHECK_FALSE(guard_.reserve(pick()->second.purchase, now_));
  }
  void release() {
    if (model_.open.empty()) return;
    end(pick());
  }
  void end(std::map<base::InstanceTag, Rented>::iterator it) {
    model_.close(it->second, now_.wall);
    CHECK(guard_.release(it->first, now_));
    CHECK_FALSE(guard_.release(it->first, now_));
    model_.open.erase(it);
  }
  std::map<base::InstanceTag, Rented>::iterator pick() {
    return std::next(model_.open.begin(), static_cast<std::ptrdiff_t>(random_.next() % model_.open.size()));
  }
  void wait() {
    const WallTime target = now_.wall + std::chrono::seconds(random_.next() % 1200);
    // What has a latest end is ended by then.
    for (;;) {
      auto first = model_.open.end();
      WallTime when = target;
      for (auto it = model_.open.begin(); it != model_.open.end(); ++it) {
        const auto& within = it->second.purchase.ends_within;
        if (!within) continue;
        const WallTime by = it->second.since + std::chrono::duration_cast<std::chrono::microseconds>(*within);
        if (by < when) {
          when = by;
          first = it;
        }
      }
      now_.steady += when - now_.wall;
      now_.wall = when;
      if (first == model_.open.end()) return;
      end(first);
    }
  }
  void restart() {
    const SpendState state = guard_.state(now_);
    now_.steady = base::TimePoint(std::chrono::seconds(random_.next() % 100'000));
    guard_ = SpendGuard(policy_, state, now_);
  }
  void compare() {
    for (const auto& [account, rate] : model_.rates()) {
      CHECK(guard_.burn(account.first, account.second).micros() == rate);
      const auto cap = model_.caps(account).per_hour;
      if (cap) CHECK(rate <= cap->micros());
    }
    CHECK(guard_.open() == model_.open.size());
  }

  base::SeededRandom random_;
  SpendPolicy policy_ = policy();
  base::Now now_{base::TimePoint(7h), std::chrono::sys_days(std::chrono::year(2026) / 1 / 30) + 22h};
  Model model_;
  SpendGuard guard_;
  int count_ = 0;
  int bought_ = 0;
  int denied_ = 0;
};

}  // namespace

TEST_CASE("spend guard: in any interleaving no cap is passed, and every reservation is released once") {
  Run run(20260310);
  for (int i = 0; i < kSteps; ++i) run.step();
  run.finish();
  // It was worth the while: much was bought, and much denied.
  CHECK(run.bought() > 5'000);
  CHECK(run.denied() > 5'000);
}

}  // namespace spillway::core
