#include "vk-provider/control/placer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/base/log.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

bool is_capped(const core::SpendPolicy& policy) {
  const auto any = [](const core::SpendCaps& caps) { return caps != core::SpendCaps(); };
  const auto any_of = [&](const auto& map) {
    return std::ranges::any_of(map, [&](const auto& entry) { return any(entry.second); });
  };
  return any(policy.installation) || any(policy.each_namespace) || any_of(policy.namespaces) ||
         any_of(policy.providers) || any_of(policy.nodes);
}

/// What the pod stands for at a provider now, or may stand for; null if nothing of it can cost anything. What is kept
/// stopped is not billed (model/capability: keep_stopped).
const model::Placement* costing(const model::PodRecord& r) {
  const model::StateAnnotation& state = r.observed.state;
  // Dropped once the pod is under way.
  const bool has_record = state.kind == model::StateAnnotation::Kind::kRecord && state.record;
  const model::Placement* const written = has_record ? &state.record->placement : nullptr;
  const model::Placement* const known = r.placement ? &*r.placement : nullptr;
  if (r.placeholder) return nullptr;
  if (std::holds_alternative<model::Admitted>(r.stage)) return written;
  if (const auto* waiting = std::get_if<model::Waiting>(&r.stage)) {
    return waiting->why == model::WaitReason::kUnreadableState ? written : nullptr;
  }
  if (std::holds_alternative<model::Choosing>(r.stage) || std::holds_alternative<model::Finished>(r.stage)) {
    return nullptr;
  }
  return known;
}

/// The same manifest meets the same refusal; a mended one has another owner, or another shape.
std::uint64_t pods_like(const PodEntry& entry, const core::Shape& shape) {
  return shape.hash ^ std::hash<std::string>{}(entry.record.spec->owner_key());
}

/// Nothing but what refused the pod is left, today or later.
bool only_refusals(const core::Explanation& all, core::Decision::Kind decided) {
  using core::Filter;
  const auto count = [&](Filter filter) { return all.rejected.at(static_cast<size_t>(filter)); };
  return decided == core::Decision::Kind::kNone && count(Filter::kRefused) > 0 &&
         std::ranges::all_of(std::array{Filter::kNoPrice, Filter::kSoldOut, Filter::kStale, Filter::kBudget,
                                        Filter::kHost, Filter::kChanged, Filter::kCredentials, Filter::kProviderSick},
                             [&](Filter filter) { return count(filter) == 0; });
}

std::optional<base::Money> lower(const std::optional<base::Money>& a, const std::optional<base::Money>& b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

}  // namespace

Placer::Placer(const core::OfferBook& offers, const ProviderSet& providers, core::SpendPolicy caps,
               base::Metrics& metrics, base::Now now)
    : offers_(offers),
      providers_(providers),
      beliefs_(offers.pools()),
      selector_(offers, beliefs_),
      capped_(is_capped(caps)),
      spend_(std::move(caps), now),
      metrics_(metrics) {
  selector_.set_abilities(providers.abilities());
}

// ---- choosing

core::Purchase Placer::purchase_of(const PodEntry& entry, const base::ProviderName& provider) const {
  core::Purchase out;
  out.ns = entry.record.key().ns;
  out.provider = provider;
  out.node = entry.profile->name;
  return out;
}

core::Query Placer::query_of(const PodEntry& entry, const core::Shape& shape, base::Now now) {
  core::Query query;
  query.shape = &shape;
  query.pods = pods_like(entry, shape);
  query.avoid = entry.record.tried;
  if (!capped_) return query;
  for (const auto& provider : providers_.all()) {
    const core::Purchase purchase = purchase_of(entry, provider->info().name);
    query.budgets.push_back({purchase.provider, spend_.headroom(purchase, now), spend_.price_factor(purchase, now)});
  }
  return query;
}

Placer::Answer Placer::choose(PodEntry& entry, const core::Requirements& needs, base::Now now) {
  const core::Shape& shape = shape_of(entry, needs);
  const core::Query query = query_of(entry, shape, now);
  core::Decision decision = selector_.choose(query, now.steady);
  count(decision.kind);
  if (log_ != nullptr) log_->decided(query, decision, now.steady);
  Answer answer;
  if (decision.kind == core::Decision::Kind::kBuy) {
    answer.best = std::move(decision.best);
    return answer;
  }
  const core::Explanation& all = look(query, decision.kind, now.steady);
  answer.again_at = decision.again_at;
  answer.refused = only_refusals(all, decision.kind);
  if (answer.refused) {
    answer.message = all.refusal;
    return answer;
  }
  answer.message = why_none(all, decision, shape);
  // Money is what stands in the way only if nothing else does.
  const bool waits = decision.kind == core::Decision::Kind::kWait;
  const bool over = all.rejected.at(static_cast<size_t>(core::Filter::kBudget)) > 0;
  if (waits || !over) return answer;
  answer.why = model::WaitReason::kBudget;
  // Which cap it is, told of the cheapest offer that nothing else keeps from the pod.
  const auto near = std::ranges::find(all.near, core::Filter::kBudget, &core::NearMiss::filter);
  if (near == all.near.end()) return answer;
  core::Purchase purchase = purchase_of(entry, near->offer.provider);
  purchase.per_hour = near->offer.price_per_hour.value_or(base::Money());
  purchase.grain = near->offer.billing_grain;
  purchase.minimum = near->offer.billing_minimum;
  if (const auto cap = spend_.denies(purchase, now)) answer.message += "; " + cap->message();
  return answer;
}

std::optional<base::Money> Placer::price_cap(const PodEntry& entry) {
  return lower(entry.profile->max_price_per_hour, entry.shape->pod.max_price);
}

std::optional<Placer::Denial> Placer::reserve(PodEntry& entry, const core::Candidate& best,
                                              const base::InstanceTag& tag, base::Now now) {
  const model::Offer& offer = best.offer;
  core::Purchase purchase = purchase_of(entry, offer.provider);
  purchase.tag = tag;
  purchase.per_hour = *offer.price_per_hour;
  purchase.pod_cap = price_cap(entry);
  purchase.grain = offer.billing_grain;
  purchase.minimum = offer.billing_minimum;
  if (const auto over = spend_.reserve(purchase, now)) return Denial{model::WaitReason::kBudget, over->message()};
  if (log_ != nullptr) log_->asked(beliefs_.pools().key(best.pool), tag, now.steady);
  if (!beliefs_.begin(best.pool, tag, now.steady)) {
    spend_.release(tag, now);
    return Denial{model::WaitReason::kNoCapacity, fmt::format("offer {} of provider {} is being tried for another pod",
                                                              offer.id.str(), offer.provider.str())};
  }
  Launch& launch = *(entry.launch = std::make_unique<Launch>());
  launch.tag = tag;
  launch.provider = offer.provider;
  launch.pool = best.pool;
  launch.offer = offer.id;
  launch.host = offer.host;
  launch.pods = pods_like(entry, *entry.shape);
  launch.digest = core::digest_of(offer);
  launch.reserved = launch.asked = now.steady;
  show(offer.provider);
  return std::nullopt;
}

// ---- what became of it

void Placer::asked(PodEntry& entry, base::TimePoint now) {
  if (entry.launch) entry.launch->asked = now;
}

void Placer::answered(PodEntry& entry, const base::Error* error, base::TimePoint now) {
  Launch* const launch = entry.launch.get();
  // Of an accepted purchase that is carried on again nothing new is learnt.
  if (launch == nullptr || launch->accepted) return;
  launch->unanswered = false;
  if (error == nullptr) {
    launch->accepted = now;
    return learn(*launch, core::LaunchResult::kAccepted, now - launch->asked, now);
  }
  learn(*launch, core::result_of(error->kind), now - launch->asked, now, error->message);
}

std::optional<base::Money> Placer::priced(PodEntry& entry, base::Money per_hour, base::Now now) {
  if (!entry.launch) return std::nullopt;
  const auto over = spend_.reprice(entry.launch->tag, per_hour, now);
  show(entry.launch->provider);
  const std::optional<model::Placement>& placement = entry.record.placement;
  if (!over || !placement || per_hour <= placement->price_per_hour) return std::nullopt;
  log::warn("an instance is dearer than offered, and passes a cap", {{"pod", entry.record.key().to_string()},
                                                                     {"provider", entry.launch->provider},
                                                                     {"price", per_hour.to_dollars()},
                                                                     {"over", over->message()}});
  return placement->price_per_hour;
}

void Placer::learn(const Launch& launch, core::LaunchResult result, base::Duration took, base::TimePoint now,
                   std::string message) {
  metrics_
      .counter("spillway_launches_total", "What became of purchases, by provider.",
               {{"provider", launch.provider.str()}, {"result", std::string(to_string(result))}})
      .add();
  if (!launch.pool) return;
  core::Beliefs::Report report;
  report.pool = *launch.pool;
  report.offer = launch.offer;
  report.host = launch.host;
  report.who = launch.tag;
  // A machine of the user's own was not sold to somebody else: what broke there may be started there again at once.
  const bool ours = providers_.find(launch.provider)->info().own_machines;
  report.result = ours && result == core::LaunchResult::kLost ? core::LaunchResult::kEnded : result;
  report.took = took;
  report.had_run = launch.ran;
  report.pods = launch.pods;
  report.digest = launch.digest;
  report.message = std::move(message);
  if (log_ != nullptr) log_->learnt(beliefs_.pools().key(report.pool), report, now);
  beliefs_.learn(report, now);
}

/// What the record tells of a purchase that goes on.
void Placer::learn_course(PodEntry& entry, base::TimePoint now) {
  using core::LaunchResult;
  Launch& l = *entry.launch;
  const model::PodRecord& r = entry.record;
  const auto* const stopping = std::get_if<model::Stopping>(&r.stage);
  const bool there = core::instance_of(r) != nullptr || stopping != nullptr;
  if (there && !l.accepted) answered(entry, nullptr, now);  // found by its tag, after an answer that was lost
  if (std::holds_alternative<model::Running>(r.stage) && !l.ran) {
    learn(l, LaunchResult::kRan, now - *l.accepted, now);
    l.ran = true;
  }
  if (stopping == nullptr || std::exchange(l.stopped, true)) return;
  // What was listed is not what it costs: it is left alone until it is listed anew.
  if (stopping->why == model::StopReason::kTooDear) learn(l, LaunchResult::kOfferChanged, {}, now);
  const bool lost = stopping->why == model::StopReason::kLost || r.preempted;
  const bool never =
      stopping->why == model::StopReason::kStartTimeout || stopping->why == model::StopReason::kBootFailed;
  if (!lost && !(never && !l.ran)) return;
  l.told = true;
  learn(l, lost && l.ran ? LaunchResult::kLost : LaunchResult::kNeverRan, {}, now);
}

/// Nothing is left of it.
void Placer::learn_end(const PodEntry& entry, base::TimePoint now) {
  using core::LaunchResult;
  const Launch& l = *entry.launch;
  if (!l.accepted) {
    // It was given up before anybody answered: whoever waits for the lease may go.
    if (l.unanswered) learn(l, LaunchResult::kPodFault, {}, now);
    return;
  }
  if (l.told) return;
  const auto& outcome = entry.record.outcome;
  const bool lost = outcome && (outcome->reason == "InstanceLost" || outcome->reason == "Preempted");
  if (l.ran) return learn(l, lost ? LaunchResult::kLost : LaunchResult::kEnded, {}, now);
  learn(l, l.stopped ? LaunchResult::kEnded : LaunchResult::kNeverRan, {}, now);
}

core::Purchase Placer::adopted(const PodEntry& entry, const model::Placement& placement) const {
  core::Purchase purchase = purchase_of(entry, placement.provider);
  purchase.tag = placement.tag;
  purchase.per_hour = placement.price_per_hour;
  return purchase;
}

std::optional<core::OverCap> Placer::still_denied(const PodEntry& entry, base::Now now) {
  if (!entry.launch || entry.launch->reserved) return std::nullopt;
  return spend_.adopt(adopted(entry, *entry.record.placement), now.steady, now);
}

void Placer::adopt(PodEntry& entry, const model::Placement& placement, base::Now now) {
  Launch& launch = *(entry.launch = std::make_unique<Launch>());
  launch.tag = placement.tag;
  launch.provider = placement.provider;
  launch.chosen = true;
  launch.unanswered = false;
  resumed_.erase(placement.tag);
  if (const auto over = spend_.adopt(adopted(entry, placement), now.steady, now)) {
    log::warn("what an earlier process bought passes a cap; nothing more is bought there",
              {{"pod", entry.record.key().to_string()}, {"over", over->message()}});
  }
  show(launch.provider);
}

void Placer::end(PodEntry& entry, base::Now now) {
  if (entry.launch->pool) learn_end(entry, now.steady);
  const std::unique_ptr<Launch> launch = std::move(entry.launch);
  spend_.release(launch->tag, now);
  show(launch->provider);
}

void Placer::follow(PodEntry& entry, bool chosen, base::Now now) {
  const model::Placement* const placement = costing(entry.record);
  if (entry.launch) {
    entry.launch->chosen = entry.launch->chosen || chosen;
    if (!entry.launch->chosen) return;
    if (placement == nullptr || placement->tag != entry.launch->tag) end(entry, now);
  }
  if (placement == nullptr) return;
  if (!entry.launch) adopt(entry, *placement, now);
  const model::Instance* const instance = core::instance_of(entry.record);
  if (instance != nullptr && instance->price_per_hour) priced(entry, *instance->price_per_hour, now);
  if (entry.launch->pool) learn_course(entry, now.steady);
}

void Placer::forget(PodEntry& entry, base::Now now) {
  if (entry.launch) end(entry, now);
}

void Placer::resume(const core::SpendState& state, base::Now now) {
  spend_.resume(state, now);
  for (const core::SpendState::Open& open : state.open) {
    resumed_.insert(open.purchase.tag);
    show(open.purchase.provider);
  }
}

void Placer::found(const core::SpendState::Open& open, base::Now now) {
  const core::Purchase& purchase = open.purchase;
  if (spend_.counts(purchase.tag)) return;
  resumed_.insert(purchase.tag);
  if (const auto over = spend_.adopt(purchase, now.steady - (now.wall - open.since), now)) {
    log::warn("an instance without a pod passes a cap; nothing more is bought there",
              {{"provider", purchase.provider}, {"tag", purchase.tag}, {"over", over->message()}});
  }
  show(purchase.provider);
}

void Placer::stopped(const base::ProviderName& provider, const base::InstanceTag& tag, base::Now now) {
  if (resumed_.erase(tag) == 0) return;
  spend_.release(tag, now);
  show(provider);
}

void Placer::show(const base::ProviderName& provider) {
  metrics_
      .gauge("spillway_burn_dollars_per_hour", "What runs, is bought, ends or may be there, by provider.",
             {{"provider", provider.str()}})
      .set(static_cast<double>(spend_.burn(core::SpendScope::kProvider, provider.str()).micros()) / 1e6);
}

}  // namespace spillway::control
