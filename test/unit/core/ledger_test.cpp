#include "vk-provider/core/ledger.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using base::Money;
using base::WallTime;
using model::InstanceState;

Money dollars(const char* text) { return *Money::from_dollars(text); }

/// Noon of 10 March 2026, and a steady clock that has run for a while.
const base::Now kNoon{base::TimePoint(50h), std::chrono::sys_days(std::chrono::year(2026) / 3 / 10) + 12h};
base::Now after(base::Duration d) {
  return {kNoon.steady + d, kNoon.wall + std::chrono::duration_cast<std::chrono::microseconds>(d)};
}

model::Instance instance(const char* per_hour, InstanceState state = InstanceState::kRunning) {
  model::Instance out;
  out.ref = model::InstanceRef(base::ProviderName("cloud"), base::InstanceId("i-1"));
  out.tag = base::InstanceTag("tag-1");
  out.state = state;
  if (*per_hour != '\0') out.price_per_hour = dollars(per_hour);
  out.billing.from = kNoon.wall;
  return out;
}

model::InstanceContainer ran(base::Duration from, base::Duration to) {
  model::InstanceContainer out;
  out.started_at = after(from).wall;
  out.finished_at = after(to).wall;
  return out;
}

LedgerOwner team() {
  LedgerOwner of;
  of.ns = "team";
  of.pod = "web";
  of.owner_kind = "ReplicaSet";
  of.owner_name = "web";
  of.node = "burst";
  return of;
}

/// One ledger and the one instance of it.
struct Book {
  bool see(const model::Instance& i, base::Now now, bool unbilled_stopped = true) {
    return !ledger.see(i, base::PodUid("uid-1"), team(), unbilled_stopped, {}, now).empty();
  }
  const Ledger::Item& item() const { return ledger.items().begin()->second; }
  Money cost(base::Now now) const { return cost_of(item().entry, Ledger::time_of(item(), now)); }
  bool gone(base::Now now) { return !ledger.gone(instance("1").ref, now).empty(); }
  Ledger ledger;
};

TEST_CASE("ledger: billed from the accept until it is gone, in whole seconds, rounded up to a micro-dollar") {
  Book book;
  CHECK(book.see(instance("2.39"), after(200ms)));
  CHECK_FALSE(book.see(instance("2.39"), after(10s)));
  CHECK(book.cost(after(100ms)) == Money::from_micros(664));  // one second at least
  CHECK(book.gone(after(100s + 1ms)));
  CHECK_FALSE(book.gone(after(200s)));
  // 101 s at 2.39 per hour are 0.0670527...
  CHECK(book.cost(after(300s)) == Money::from_micros(67'053));
}

TEST_CASE("ledger: the grain and the minimum of each period") {
  Book book;
  model::Instance i = instance("3.60");
  i.billing.grain = 60s;
  i.billing.minimum = 100s;
  book.see(i, kNoon);
  CHECK(book.cost(after(1s)) == dollars("0.10"));
  CHECK(book.cost(after(61s)) == dollars("0.12"));
  book.gone(after(120s));
  CHECK(book.cost(after(1h)) == dollars("0.12"));
}

TEST_CASE("ledger: what is kept stopped costs nothing, and each run is a period of its own") {
  Book book;
  book.see(instance("3.60"), kNoon);
  model::Instance stopped = instance("3.60", InstanceState::kExited);
  stopped.containers = {ran(1s, 10s)};
  CHECK(book.see(stopped, after(14s)));
  CHECK(book.cost(after(1h)) == dollars("0.01"));
  CHECK_FALSE(book.see(stopped, after(20s)));

  model::Instance again = instance("3.60");
  again.containers = {ran(30s, 0s)};
  again.containers[0].finished_at.reset();
  CHECK(book.see(again, after(33s)));
  CHECK(book.cost(after(40s)) == dollars("0.02"));
  stopped.containers = {ran(30s, 50s)};
  book.see(stopped, after(51s));
  CHECK(book.cost(after(1h)) == dollars("0.03"));

  // A run of which nobody saw anything but the end.
  stopped.containers = {ran(100s, 105s)};
  CHECK(book.see(stopped, after(110s)));
  CHECK(book.cost(after(1h)) == dollars("0.035"));
  book.gone(after(2h));
  CHECK(book.cost(after(3h)) == dollars("0.035"));
}

TEST_CASE("ledger: what was told to run again costs money, whether or not a claim comes") {
  Book book;
  const auto told = [&](base::Duration at) {
    return !book.ledger.may_run(instance("1").ref, after(at).steady, after(at + 200ms)).empty();
  };
  book.see(instance("3.60"), kNoon);
  CHECK_FALSE(told(1s));  // it runs
  model::Instance stopped = instance("3.60", InstanceState::kExited);
  stopped.containers = {ran(1s, 10s)};
  book.see(stopped, after(14s));

  // A claim that is older than the order says nothing of it; one that names the run says all.
  CHECK(told(20s));
  CHECK_FALSE(book.see(stopped, after(21s)));
  CHECK(book.cost(after(25s)) == dollars("0.015"));
  stopped.containers = {ran(22s, 24s)};
  CHECK(book.see(stopped, after(26s)));
  CHECK(book.cost(after(1h)) == dollars("0.012"));

  // It was told, and did not run.
  CHECK(told(100s));
  CHECK(book.see(stopped, after(131s)));
  CHECK(book.cost(after(1h)) == dollars("0.012"));

  // Nobody ever heard of it again.
  CHECK(told(200s));
  CHECK(book.gone(after(210s)));
  CHECK(book.cost(after(1h)) == dollars("0.022"));
  CHECK_FALSE(told(220s));
}

TEST_CASE("ledger: where a stopped instance is billed, it is") {
  Book book;
  book.see(instance("3.60"), kNoon);
  model::Instance stopped = instance("3.60", InstanceState::kExited);
  stopped.containers = {ran(1s, 10s)};
  CHECK_FALSE(book.see(stopped, after(14s), false));
  CHECK(book.cost(after(20s)) == dollars("0.02"));
}

TEST_CASE("ledger: a price that changes is paid from then on, and the steps of the bill go on") {
  Book book;
  model::Instance i = instance("3.60");
  i.billing.grain = 100s;
  book.see(i, kNoon);
  i.price_per_hour = dollars("7.20");
  CHECK(book.see(i, after(50s)));
  // 50 s at 0.001 a second, and the 50 s that are left of the step at 0.002.
  CHECK(book.cost(after(51s)) == dollars("0.15"));
  book.gone(after(101s));
  CHECK(book.cost(after(1h)) == dollars("0.35"));
}

TEST_CASE("ledger: a price that only the offer told, and that is known later, holds from the beginning") {
  Book book;
  book.ledger.see(instance(""), base::PodUid("uid-1"), {}, true, {}, kNoon);
  CHECK(book.cost(after(100s)) == Money());
  LedgerOwner of = team();
  of.price = dollars("3.60");
  CHECK(book.ledger.see(instance(""), base::PodUid("uid-1"), of, true, {}, after(100s)).size() == 1);
  CHECK(book.cost(after(100s)) == dollars("0.10"));
}

TEST_CASE("ledger: a restart changes nothing") {
  Book book;
  book.see(instance("3.60"), kNoon);
  Book next;
  next.ledger.restore(book.item().entry, {base::TimePoint(7h), after(60s).wall});
  CHECK(next.cost({base::TimePoint(7h + 40s), after(100s).wall}) == dollars("0.10"));
  CHECK_FALSE(next.see(instance("3.60"), {base::TimePoint(7h + 41s), after(101s).wall}));
  next.gone({base::TimePoint(7h + 40s), after(100s).wall});
  CHECK(next.item().entry.opened == kNoon.wall);
  CHECK(next.item().entry.gone);
}

TEST_CASE("ledger: a clock that jumps changes nothing while the process lives") {
  for (const base::Duration jump : {-24h, 24h}) {
    Book book;
    const auto jumped = [&](base::Duration d) {
      base::Now now = after(d);
      now.wall += std::chrono::duration_cast<std::chrono::microseconds>(jump);
      return now;
    };
    // Also when the instance is bought with a wrong clock: it cannot have begun before the call.
    book.ledger.see(instance("3.60"), base::PodUid("uid-1"), team(), true, kNoon.steady, jumped(0s));
    book.see(instance("3.60"), jumped(50s));
    book.gone(jumped(100s));
    CHECK(book.cost(jumped(100s)) == dollars("0.10"));
  }
}

TEST_CASE("ledger: what was not found and is there all the same was billed all the time") {
  Book book;
  book.see(instance("3.60"), kNoon);
  book.gone(after(50s));
  CHECK(book.see(instance("3.60"), after(80s)));
  book.gone(after(100s));
  CHECK(book.cost(after(1h)) == dollars("0.10"));
}

TEST_CASE("ledger: two instances under one tag are two entries") {
  Book book;
  book.see(instance("3.60"), kNoon);
  model::Instance twin = instance("3.60");
  twin.ref.id = base::InstanceId("i-2");
  book.see(twin, kNoon);
  CHECK(book.ledger.items().size() == 2);
}

TEST_CASE("ledger: whoever had the id of another instance before is gone") {
  Book book;
  book.see(instance("3.60"), kNoon);
  model::Instance other = instance("3.60");
  other.tag = base::InstanceTag("tag-2");
  CHECK(book.ledger.see(other, base::PodUid("uid-2"), team(), true, {}, after(10s)).size() == 2);
  REQUIRE(book.ledger.items().size() == 2);
  CHECK(book.item().entry.gone);
  CHECK(book.cost(after(1h)) == dollars("0.01"));
  CHECK_FALSE(book.ledger.items().rbegin()->second.entry.gone);
}

TEST_CASE("ledger: parts of a time add up to the whole") {
  Book book;
  book.see(instance("2.39"), kNoon);
  book.gone(after(36h + 7s));
  const LedgerEntry& e = book.item().entry;
  const WallTime end = after(40h).wall;
  const Money whole = cost_of(e, end);
  CHECK(cost_since(e, kNoon.wall - 1h, end) == whole);
  CHECK(cost_since(e, after(36h + 7s).wall, end) == Money());
  Money sum;
  for (int h = 0; h < 37; ++h)
    sum = sum + (cost_since(e, after(1h * h).wall, end) - cost_since(e, after(1h * (h + 1)).wall, end));
  CHECK(sum == whole);
}

TEST_CASE("ledger: counters are told each micro-dollar once, and nothing of an earlier process") {
  Book book;
  book.see(instance("3.60"), kNoon);
  Money told;
  const auto tell = [&](const LedgerEntry&, Money cost) { told = told + cost; };
  book.ledger.accrue(after(10s), tell);
  book.ledger.accrue(after(10s), tell);
  book.gone(after(20s));
  book.ledger.accrue(after(60s), tell);
  CHECK(told == dollars("0.02"));
  Book next;
  next.ledger.restore(book.item().entry, after(60s));
  next.ledger.accrue(after(70s), tell);
  CHECK(told == dollars("0.02"));
}

TEST_CASE("ledger: the guard takes up the day and the month where they stood") {
  SpentSums sums(kNoon);
  Book book;
  model::Instance i = instance("1.00");
  i.billing.from = kNoon.wall - 24h;
  book.see(i, after(-24h));
  book.gone(after(-2h));
  sums.add(book.item().entry);  // 22 hours, of which 12 were yesterday
  LedgerEntry runs = book.item().entry;
  runs.ref.id = base::InstanceId("i-2");
  runs.tag = base::InstanceTag("tag-2");
  runs.begin = kNoon.wall - 1h;
  runs.billed = 0us;
  runs.opened = runs.until = runs.since = *runs.begin;
  runs.gone = false;
  sums.add(runs);
  SpendPolicy policy;
  policy.installation.per_day = dollars("12");
  SpendGuard guard(policy, sums.take(), kNoon);
  CHECK(guard.spent(SpendScope::kInstallation, "", SpendSpan::kDay, kNoon) == dollars("11"));
  CHECK(guard.spent(SpendScope::kNamespace, "team", SpendSpan::kMonth, kNoon) == dollars("23"));
  CHECK(guard.burn(SpendScope::kProvider, "cloud") == dollars("1"));
  CHECK(guard.release(base::InstanceTag("tag-2"), kNoon));
}

}  // namespace
}  // namespace spillway::core
