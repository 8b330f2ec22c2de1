#include "vk-provider/core/spend_guard.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using base::Money;

Money dollars(const char* text) { return *Money::from_dollars(text); }

/// Noon of 10 March 2026, and a steady clock that has run for a while.
base::Now noon() { return {base::TimePoint(50h), std::chrono::sys_days(std::chrono::year(2026) / 3 / 10) + 12h}; }
base::Now after(base::Duration d, base::Now from = noon()) {
  return {from.steady + d, from.wall + std::chrono::duration_cast<std::chrono::microseconds>(d)};
}

Purchase purchase(int i, const char* per_hour, const std::string& ns = "team", const std::string& provider = "cloud") {
  Purchase p;
  p.tag = base::InstanceTag("tag-" + std::to_string(i));
  p.ns = ns;
  p.provider = base::ProviderName(provider);
  p.node = "burst";
  p.per_hour = dollars(per_hour);
  return p;
}

SpendPolicy hourly(const char* cap) {
  SpendPolicy policy;
  policy.installation.per_hour = dollars(cap);
  return policy;
}

TEST_CASE("spend guard: two hundred pods at one moment, and not a micro-dollar over the cap") {
  SpendGuard guard(hourly("10"), noon());
  int bought = 0;
  for (int i = 0; i < 200; ++i) bought += guard.reserve(purchase(i, "0.333334"), noon()) ? 0 : 1;
  CHECK(bought == 29);
  CHECK(guard.burn(SpendScope::kInstallation, "") == Money::from_micros(29 * 333'334));
  CHECK(guard.headroom(purchase(0, "0"), noon()) == Money::from_micros(10'000'000 - 29 * 333'334));
}

TEST_CASE("spend guard: each cap stops what passes it, and says so") {
  SpendPolicy policy;
  policy.installation.per_hour = dollars("100");
  policy.each_namespace.per_hour = dollars("10");
  policy.namespaces["rich"].per_hour = dollars("50");
  policy.providers[base::ProviderName("cloud")].per_hour = dollars("40");
  policy.nodes["burst"].per_hour = dollars("60");
  SpendGuard guard(policy, noon());
  const auto denied = [&](const Purchase& p) {
    const auto over = guard.reserve(p, noon());
    return over ? over->message() : "";
  };
  Purchase dear = purchase(0, "3");
  dear.pod_cap = dollars("2.99");
  CHECK(denied(dear) == "pod: $3.00 of at most $2.99 per hour");
  CHECK(denied(purchase(1, "10", "team")).empty());
  CHECK(denied(purchase(2, "0.01", "team")) == "namespace team: $10.01 of at most $10.00 per hour");
  CHECK(denied(purchase(3, "30", "rich")).empty());
  CHECK(denied(purchase(4, "1", "other")) == "provider cloud: $41.00 of at most $40.00 per hour");
  CHECK(denied(purchase(5, "20", "rich", "second")).empty());
  CHECK(denied(purchase(6, "1", "other", "second")) == "node burst: $61.00 of at most $60.00 per hour");
  // What was denied has taken nothing.
  CHECK(guard.open() == 3);
  CHECK(guard.burn(SpendScope::kNamespace, "other") == Money());
}

TEST_CASE("spend guard: a tag is reserved once and released once") {
  SpendGuard guard(hourly("10"), noon());
  CHECK_FALSE(guard.reserve(purchase(1, "6"), noon()));
  CHECK_FALSE(guard.reserve(purchase(1, "6"), noon()));
  CHECK(guard.burn(SpendScope::kInstallation, "") == dollars("6"));
  CHECK(guard.release(purchase(1, "6").tag, noon()));
  CHECK_FALSE(guard.release(purchase(1, "6").tag, noon()));
  CHECK(guard.burn(SpendScope::kInstallation, "") == Money());
  CHECK_FALSE(guard.release(base::InstanceTag("nobody"), noon()));
}

TEST_CASE("spend guard: what still ends counts until it is gone") {
  SpendGuard guard(hourly("10"), noon());
  CHECK_FALSE(guard.reserve(purchase(1, "10"), noon()));
  CHECK(guard.reserve(purchase(2, "1"), after(5h)));
  guard.release(purchase(1, "10").tag, after(5h));
  CHECK_FALSE(guard.reserve(purchase(2, "1"), after(5h)));
}

TEST_CASE("spend guard: the real price counts, and too dear is told") {
  SpendGuard guard(hourly("10"), noon());
  CHECK_FALSE(guard.reserve(purchase(1, "6"), noon()));
  CHECK_FALSE(guard.reprice(purchase(1, "6").tag, dollars("10"), noon()));
  const auto over = guard.reprice(purchase(1, "6").tag, dollars("10.000001"), noon());
  REQUIRE(over);
  CHECK(over->message() == "installation: $10.000001 of at most $10.00 per hour");
  CHECK(guard.headroom(purchase(2, "0"), noon()) == Money());
  CHECK_FALSE(guard.reprice(base::InstanceTag("nobody"), dollars("99"), noon()));
}

TEST_CASE("spend guard: an instance that was found counts, whatever the caps say") {
  SpendGuard guard(hourly("1"), noon());
  CHECK(guard.adopt(purchase(1, "5"), noon().steady, noon()));
  CHECK(guard.burn(SpendScope::kInstallation, "") == dollars("5"));
  CHECK(guard.reserve(purchase(2, "0.01"), noon()));
  CHECK(guard.release(purchase(1, "5").tag, noon()));
  CHECK_FALSE(guard.reserve(purchase(2, "0.01"), noon()));
}

TEST_CASE("spend guard: a day's cap counts what was spent and what would be spent until midnight, and the day after") {
  SpendPolicy policy;
  policy.installation.per_day = dollars("24");
  SpendGuard guard(policy, noon());
  // Two dollars for twelve hours fit today, but not tomorrow.
  const auto over = guard.reserve(purchase(1, "2"), noon());
  REQUIRE(over);
  CHECK(over->message() == "installation: $48.00 of at most $24.00 per day");
  CHECK(guard.headroom(purchase(1, "0"), noon()) == dollars("1"));
  CHECK_FALSE(guard.reserve(purchase(1, "1"), noon()));
  CHECK(guard.reserve(purchase(2, "0.000001"), noon()));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(2h)) == dollars("2"));
  // What ends soon may cost more.
  Purchase brief = purchase(3, "10");
  brief.ends_within = 1h;
  guard.release(purchase(1, "1").tag, after(2h));
  CHECK_FALSE(guard.reserve(brief, after(2h)));
  brief.tag = base::InstanceTag("tag-4");
  CHECK_FALSE(guard.reserve(brief, after(2h)));
  brief.tag = base::InstanceTag("tag-5");
  const auto third = guard.reserve(brief, after(2h));
  REQUIRE(third);
  CHECK(third->message() == "installation: $32.00 of at most $24.00 per day");
}

TEST_CASE("spend guard: what should have ended and has not is counted to the end of the window") {
  SpendPolicy policy;
  policy.installation.per_day = dollars("24");
  SpendGuard guard(policy, noon());
  Purchase brief = purchase(1, "2");
  brief.ends_within = 1h;
  CHECK_FALSE(guard.reserve(brief, noon()));
  CHECK_FALSE(guard.reserve(purchase(2, "0.5"), after(30min)));
  guard.release(purchase(2, "0.5").tag, after(31min));
  CHECK(guard.reserve(purchase(3, "0.5"), after(90min)));
  guard.release(brief.tag, after(2h));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(2h)) == Money::from_micros(4'000'000 + 8334));
}

TEST_CASE("spend guard: billing in steps and minima is counted as it is billed") {
  SpendPolicy policy;
  policy.installation.per_day = dollars("100");
  SpendGuard guard(policy, noon());
  Purchase hourly_billed = purchase(1, "1");
  hourly_billed.grain = 3600s;
  hourly_billed.minimum = 7200s;
  CHECK_FALSE(guard.reserve(hourly_billed, noon()));
  CHECK(guard.release(hourly_billed.tag, after(61min)));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(61min)) == dollars("2"));
  hourly_billed.tag = base::InstanceTag("again");
  CHECK_FALSE(guard.reserve(hourly_billed, after(2h)));
  CHECK(guard.release(hourly_billed.tag, after(2h + 121min)));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(5h)) == dollars("5"));
}

TEST_CASE("spend guard: midnight opens a new day, and what runs goes on") {
  SpendPolicy policy;
  policy.installation.per_day = dollars("24");
  policy.installation.per_month = dollars("600");
  SpendGuard guard(policy, noon());
  CHECK_FALSE(guard.reserve(purchase(1, "0.75"), noon()));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(11h)) == dollars("8.25"));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(13h)) == dollars("0.75"));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kMonth, after(13h)) == dollars("9.75"));
  guard.release(purchase(1, "0.75").tag, after(14h));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, after(20h)) == dollars("1.50"));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kMonth, after(24h * 22)) == Money());
}

TEST_CASE("spend guard: a clock that is set opens no day twice and none too early") {
  SpendPolicy policy;
  policy.installation.per_day = dollars("10");
  const auto burnt_out = [&] {
    SpendGuard guard(policy, noon());
    Purchase brief = purchase(1, "9");
    brief.ends_within = 1h;
    CHECK_FALSE(guard.reserve(brief, noon()));
    guard.release(brief.tag, after(1h));
    return guard;
  };
  Purchase next = purchase(2, "9");
  next.ends_within = 1h;
  {
    // Forward by three days, at once: the day that runs has not passed.
    SpendGuard guard = burnt_out();
    base::Now now = after(2h);
    now.wall += 24h * 3;
    CHECK(guard.reserve(next, now));
  }
  {
    // Back by an hour just before midnight: the same day goes on, until it is midnight again.
    SpendGuard guard = burnt_out();
    base::Now now = after(12h + 1min);
    now.wall -= 1h;
    CHECK(guard.reserve(next, now));
    now = after(12h + 45min);  // later most of it would be the next day's
    now.wall -= 1h;
    CHECK(guard.reserve(next, now));
    now = after(13h + 1min);
    now.wall -= 1h;
    CHECK_FALSE(guard.reserve(next, now));
  }
  {
    // Back by a month: after a day by the other clock it is another day.
    SpendGuard guard = burnt_out();
    base::Now now = after(13h);
    now.wall -= 24h * 30;
    CHECK(guard.reserve(next, now));
    now = after(37h);
    now.wall -= 24h * 30;
    CHECK_FALSE(guard.reserve(next, now));
  }
}

TEST_CASE("spend guard: a restart forgets nothing") {
  SpendPolicy policy;
  policy.installation.per_day = dollars("24");
  SpendGuard before(policy, noon());
  CHECK_FALSE(before.reserve(purchase(1, "0.5"), noon()));
  CHECK_FALSE(before.reserve(purchase(2, "0.25"), noon()));
  before.release(purchase(2, "0.25").tag, after(2h));
  const SpendState state = before.state(after(2h));
  CHECK(state.open.size() == 1);
  // Another process: its steady clock begins anew.
  base::Now now = after(3h);
  now.steady = base::TimePoint(5min);
  SpendGuard guard(policy, state, now);
  CHECK(guard.burn(SpendScope::kInstallation, "") == dollars("0.5"));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, now) == dollars("2"));
  CHECK(guard.release(purchase(1, "0.5").tag, now));
  CHECK_FALSE(guard.release(purchase(2, "0.25").tag, now));
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, now) == dollars("2"));
  // The day after, it counts no more.
  base::Now tomorrow = after(20h);
  tomorrow.steady = base::TimePoint(5min);
  SpendGuard late(policy, guard.state(now), tomorrow);
  CHECK(late.spent(SpendScope::kInstallation, "", SpendSpan::kDay, tomorrow) == Money());
  // A state of a day that has not come yet was written by a clock that went wrong: it counts.
  SpendState future = guard.state(now);
  future.day += 5;
  SpendGuard wary(policy, future, now);
  CHECK(wary.spent(SpendScope::kInstallation, "", SpendSpan::kDay, now) == dollars("2"));
}

TEST_CASE("spend guard: the shadow price rises over the last fifth of a cap") {
  SpendGuard guard(hourly("10"), noon());
  CHECK(guard.price_factor(purchase(0, "0"), noon()) == 1);
  CHECK_FALSE(guard.reserve(purchase(1, "8"), noon()));
  CHECK(guard.price_factor(purchase(0, "0"), noon()) == Approx(1));
  CHECK_FALSE(guard.reserve(purchase(2, "1"), noon()));
  CHECK(guard.price_factor(purchase(0, "0"), noon()) == Approx(1.5));
  CHECK_FALSE(guard.reserve(purchase(3, "1"), noon()));
  CHECK(guard.price_factor(purchase(0, "0"), noon()) == Approx(2));
}

TEST_CASE("spend guard: a provider without any cap per hour is known") {
  SpendPolicy policy;
  CHECK_FALSE(is_capped(policy, base::ProviderName("cloud")));
  policy.providers[base::ProviderName("cloud")].per_day = dollars("1");
  CHECK_FALSE(is_capped(policy, base::ProviderName("cloud")));
  policy.providers[base::ProviderName("cloud")].per_hour = dollars("1");
  CHECK(is_capped(policy, base::ProviderName("cloud")));
  CHECK_FALSE(is_capped(policy, base::ProviderName("other")));
  policy.installation.per_hour = dollars("1");
  CHECK(is_capped(policy, base::ProviderName("other")));
}

}  // namespace
}  // namespace spillway::core
