#include "vk-provider/core/hedge.hpp"

#include <algorithm>

#include "vk-provider/core/decay.hpp"

namespace spillway::core {
namespace {

constexpr base::Duration kDay = std::chrono::hours(24);
constexpr double kTokensPerCreate = 0.05;
constexpr double kMostTokens = 5;

double dollars(base::Money money) { return static_cast<double>(money.micros()) / 1e6; }

}  // namespace

base::Duration hedge_after(const Traits& first) { return first.start.quantile95(); }

bool other_domain(const model::Offer& first, const model::Offer& second) {
  return first.provider != second.provider || first.region != second.region;
}

bool worth_hedging(const HedgeQuestion& q) {
  const Traits& t = *q.first;
  // It may still come, or it is one of those that never do: the longer it takes, the likelier the latter.
  const double may_come = t.readiness * t.start.chance_longer(q.waited);
  const double never = 1 - t.readiness;
  const double comes = may_come + never > 0 ? may_come / (may_come + never) : 0;
  const double rest = t.start.mean_rest_hours(q.waited);
  const double until_given_up = std::max(0.0, hours(t.give_up - q.waited));
  const double second = q.second_answer_hours + q.second_start_hours;
  // Whoever runs first wins, so the second one can only gain time: where the first comes sooner, nothing is lost but
  // the rent of both until then.
  const double won = comes * std::max(0.0, rest - second) + (1 - comes) * until_given_up;
  const double together = comes * std::min(rest, second) + (1 - comes) * second;
  const double both = std::max(together, hours(q.second->offer.billing_minimum));
  const double cost = dollars(q.second->offer.price_per_hour.value_or(base::Money())) * both + kCallMicros / 1e6;
  return dollars(q.value_of_time) * won > cost;
}

void HedgeBudget::forget(base::TimePoint now) {
  while (!hedges_.empty() && now - hedges_.front().at > kDay) hedges_.pop_front();
}

void HedgeBudget::note_create() { tokens_ = std::min(tokens_ + kTokensPerCreate, kMostTokens); }

bool HedgeBudget::take(const std::string& ns, base::Money at_most, base::TimePoint now) {
  forget(now);
  if (tokens_ < 1) return false;
  base::Money spent;
  for (const Spent& s : hedges_) {
    if (s.ns == ns) spent = spent + s.money;
  }
  if (cap_ && spent + at_most > *cap_) return false;
  tokens_ -= 1;
  hedges_.push_back({now, ns, at_most});
  return true;
}

}  // namespace spillway::core
