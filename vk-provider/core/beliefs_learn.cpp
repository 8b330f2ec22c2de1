// Learning: what each end of a try teaches (core/launch_result has the table).
#include <algorithm>
#include <cmath>

#include "vk-provider/core/beliefs.hpp"

namespace spillway::core {
namespace {

constexpr base::Duration kStockHalfLife = std::chrono::hours(24);
constexpr base::Duration kReadyHalfLife = std::chrono::hours(24 * 30);
constexpr double kTooSeldomReady = 0.7;
constexpr size_t kFailuresToOpen = 5;
constexpr base::Duration kFailureWindow = std::chrono::seconds(60);
constexpr base::Duration kDay = std::chrono::hours(24);
constexpr double kLeastRate = 1.0 / 64;
constexpr double kRecoverPerMinute = 0.1;
constexpr size_t kMuch = 4096;  // entries of a list before old ones are looked for

}  // namespace

void Beliefs::News::replace(double before, base::Duration age_of_before, double surprise, base::TimePoint now) {
  for (size_t k = 0; k < parts_.size(); ++k) {
    const CorrelationPart& part = kCorrelationParts[k];
    parts_[k] *= std::exp(-hours(now - at_) / hours(part.life));
    parts_[k] -= before * part.share * std::exp(-hours(age_of_before) / hours(part.life));
    parts_[k] += surprise * part.share;
  }
  at_ = now;
}

Beliefs::Known& Beliefs::known(PoolId pool) {
  const auto i = static_cast<size_t>(pool);
  if (known_.size() <= i) known_.resize(i + 1);
  if (!known_[i]) known_[i] = std::make_unique<Known>();
  return *known_[i];
}

void Beliefs::learn_stock(PoolId pool, bool up, base::TimePoint now) {
  Known& own = known(pool);
  // A repeat after a second says almost nothing new.
  const double weight = own.asked ? 1 - 0.9 * correlation(now - own.answered_at) : 1;
  const double surprise = (up ? 1.0 : 0.0) - usual_share(pool, now);
  const base::Duration age = now - own.answered_at;
  for (News* const news : {&place(pool).news, &provider(pool).news}) {
    if (!own.asked) news->joined();
    news->replace(own.surprise, age, surprise, now);
  }
  own.stock.add(up, weight, now, kStockHalfLife);
  family(pool).stock.add(up, weight, now, kStockHalfLife);
  provider(pool).stock.add(up, weight, now, kStockHalfLife);
  all_.add(up, weight, now, kStockHalfLife);
  own.asked = true;
  own.up = up;
  own.surprise = surprise;
  own.answered_at = now;
  if (!up) own.down_at = now;
  ++own.changes;
}

void Beliefs::learn_start(const Report& report, bool ran, base::TimePoint now) {
  Known& own = known(report.pool);
  Provider& all = provider(report.pool);
  own.ready.add(ran, 1, now, kReadyHalfLife);
  all.ready.add(ran, 1, now, kReadyHalfLife);
  if (ran) {
    own.start.add(report.took, now);
    all.start.add(report.took, now);
    own.lost.running(1, now);
  }
  ++own.changes;
  ++all.changes;
}

void Beliefs::learn_answer(PoolId pool, base::Duration took) {
  Known& own = known(pool);
  const double seconds = hours(took) * 3600;
  own.answer_seconds = own.answer_seconds == 0 ? seconds : own.answer_seconds + 0.2 * (seconds - own.answer_seconds);
  ++own.changes;
}

void Beliefs::hold(PoolId pool, int sign) {
  const int units = std::max(pools_.key(pool).gpu_count, 1);
  place(pool).held = std::max(0, place(pool).held + sign * units);
  family(pool).held = std::max(0, family(pool).held + sign * units);
}

void Beliefs::end(const Report& report, base::TimePoint now) {
  hold(report.pool, -1);
  Known& own = known(report.pool);
  if (report.result == LaunchResult::kLost) own.lost.interrupted(now);
  if (report.had_run) own.lost.running(-1, now);
  ++own.changes;
}

/// The create call has ended: whoever held a lease for it holds none any more. What answered sensibly has recovered.
void Beliefs::settle_leases(const Report& report) {
  const bool accepted = report.result == LaunchResult::kAccepted;
  const bool answered = accepted || report.result == LaunchResult::kSoldOut || report.result == LaunchResult::kQuota ||
                        report.result == LaunchResult::kUnsupported || report.result == LaunchResult::kOfferChanged;
  const auto settle = [&](Cooling& cooling, bool good) {
    return good ? cooling.succeeded(report.who) : cooling.given_back(report.who);
  };
  settle(known(report.pool).cooling, accepted);
  settle(place(report.pool).quota.cooling, accepted);
  settle(family(report.pool).quota.cooling, accepted);
  settle(provider(report.pool).sick, answered);
}

double Beliefs::rate_of(const Provider& p, base::TimePoint now) {
  return std::min(1.0, p.rate + kRecoverPerMinute * 60 * std::max(0.0, hours(now - p.rate_at)));
}

void Beliefs::cool_provider(const Report& report, base::TimePoint now) {
  Provider& p = provider(report.pool);
  const base::BackoffPolicy& policy = row_of(report.result).cool_down;
  if (report.result == LaunchResult::kRateLimited) {
    p.paused_until = std::max(p.paused_until, now + std::max(policy.first, report.at_least));
    // Calls that were refused together count once.
    if (now - p.rate_at < std::chrono::seconds(1)) return;
    p.rate = std::max(kLeastRate, rate_of(p, now) / 2);
    p.rate_at = now;
    return;
  }
  if (report.result == LaunchResult::kCredentials) {
    p.locked_until = std::max(p.locked_until, now + policy.first);
    return;
  }
  std::erase_if(p.failures, [&](base::TimePoint t) { return now - t > kFailureWindow; });
  p.failures.push_back(now);
  if (p.failures.size() < kFailuresToOpen && !p.sick.needs_lease()) return;
  p.failures.clear();
  p.sick.failed(report.who, policy, now, report.at_least);
}

void Beliefs::cool(const Report& report, base::TimePoint now) {
  const ResultRow& row = row_of(report.result);
  switch (row.scope) {
    case CoolScope::kNothing: return;
    case CoolScope::kPool: return known(report.pool).cooling.failed(report.who, row.cool_down, now, report.at_least);
    case CoolScope::kQuota: {
      Group& group = report.whole_provider ? family(report.pool) : place(report.pool);
      group.quota.refused = group.held + std::max(pools_.key(report.pool).gpu_count, 1);
      return group.quota.cooling.failed(report.who, row.cool_down, now, report.at_least);
    }
    case CoolScope::kOffer: {
      changed_[{pools_.key(report.pool).provider, report.offer}] = now;
      return;
    }
    case CoolScope::kProvider: return cool_provider(report, now);
    case CoolScope::kOfferForShape: {
      refused_[{pools_.key(report.pool).provider, report.offer, report.pods}] = {report.digest, now, report.message};
      return;
    }
    case CoolScope::kHost: {
      if (!report.host.empty()) blocked_hosts_[report.host] = now + row.cool_down.first;
      if (readiness(report.pool, now) >= kTooSeldomReady) return;
      const base::BackoffPolicy& sold_out = row_of(LaunchResult::kSoldOut).cool_down;
      return known(report.pool).cooling.failed(report.who, sold_out, now);
    }
  }
}

NextStep Beliefs::learn(const Report& report, base::TimePoint now) {
  const ResultRow& row = row_of(report.result);
  const bool ends = report.result == LaunchResult::kEnded || report.result == LaunchResult::kLost ||
                    report.result == LaunchResult::kNeverRan;
  if (!ends && report.result != LaunchResult::kRan) settle_leases(report);
  if (report.result == LaunchResult::kAccepted || report.result == LaunchResult::kSoldOut) {
    learn_answer(report.pool, report.took);
  }
  if (row.stock) learn_stock(report.pool, *row.stock, now);
  if (row.ready) learn_start(report, *row.ready, now);
  if (report.result == LaunchResult::kAccepted) hold(report.pool, 1);
  if (ends) end(report, now);
  cool(report, now);
  forget_old(now);
  return row.next;
}

void Beliefs::forget_old(base::TimePoint now) {
  if (blocked_hosts_.size() > kMuch) std::erase_if(blocked_hosts_, [&](const auto& e) { return e.second <= now; });
  if (refused_.size() > kMuch) std::erase_if(refused_, [&](const auto& e) { return now - e.second.at > kDay; });
  if (changed_.size() > kMuch) std::erase_if(changed_, [&](const auto& e) { return now - e.second > kDay; });
}

bool Beliefs::begin(PoolId pool, const base::InstanceTag& who, base::TimePoint now) {
  const int gpus = pools_.key(pool).gpu_count;
  if (opening(pool, gpus, now).why != Closed::kNo) return false;
  const int units = std::max(gpus, 1);
  const auto lease_quota = [&](Group& group) {
    if (opening_of_quota(group, units, now).why == Closed::kNo &&
        !(group.quota.refused && group.held + units < *group.quota.refused)) {
      group.quota.cooling.begin(who, now);
    }
  };
  if (find(pool) != nullptr) known(pool).cooling.begin(who, now);
  lease_quota(place(pool));
  lease_quota(family(pool));
  provider(pool).sick.begin(who, now);
  return true;
}

void Beliefs::found(PoolId pool, bool running, base::TimePoint now) {
  hold(pool, 1);
  if (running) known(pool).lost.running(1, now);
}

void Beliefs::credentials_changed(const base::ProviderName& name) {
  if (const auto number = pools_.find_provider(name)) at(providers_, *number).locked_until = {};
}

}  // namespace spillway::core
