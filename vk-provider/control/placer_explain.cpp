// placer, second part: what it says of its choices.
#include <utility>

#include <fmt/format.h>

#include "vk-provider/control/placer.hpp"
#include "vk-provider/core/explain_text.hpp"

namespace spillway::control {

namespace {
constexpr base::Duration kLookLasts = std::chrono::seconds(2);
constexpr size_t kMostLooks = 256;
constexpr size_t kMostDecided = 64;
}  // namespace

const core::Shape& Placer::shape_of(PodEntry& entry, const core::Requirements& needs) {
  if (!entry.shape) {
    entry.shape = std::make_unique<const core::Shape>(
        core::make_shape(needs, *entry.profile, entry.record.spec->owner.kind.str()));
  }
  return *entry.shape;
}

void Placer::count(core::Decision::Kind kind) {
  metrics_
      .counter("spillway_decisions_total", "Choices of an offer for a pod, by what was decided.",
               {{"decision", std::string(to_string(kind))}})
      .add();
}

const core::Explanation& Placer::look(const core::Query& query, core::Decision::Kind kind, base::TimePoint now) {
  const std::uint64_t version = offers_.table().version();
  // What was refused was refused pods of one owner.
  const std::uint64_t key = beliefs_.any_refusal() ? query.pods : query.shape->hash;
  Look& known = looks_[key];
  if (known.version == version && known.kind == kind && now - known.at < kLookLasts && known.shape == *query.shape &&
      known.budgets == query.budgets) {
    return known.all;
  }
  if (looks_.size() > kMostLooks) looks_.clear();
  Look& fresh = looks_[key];
  fresh = {*query.shape, query.budgets, kind, version, now, selector_.explain(query, now)};
  for (size_t i = 0; i < fresh.all.rejected.size(); ++i) {
    if (fresh.all.rejected.at(i) == 0) continue;
    metrics_
        .counter("spillway_offers_rejected_total",
                 "Offers that did not fit a pod that has to wait, by the first reason.",
                 {{"filter", std::string(to_string(static_cast<core::Filter>(i)))}})
        .add(fresh.all.rejected.at(i));
  }
  return fresh.all;
}

std::string Placer::why_none(const core::Explanation& all, const core::Decision& decision, const core::Shape& shape) {
  std::string text = core::explain_counts(all.rejected, all.offers, shape);
  if (!all.refusal.empty()) text += "; " + all.refusal;
  if (decision.kind != core::Decision::Kind::kWait) return text;
  const core::Candidate& best = *decision.best;
  return fmt::format("{}; the best is offer {} of provider {}, which cannot be asked now ({})", text,
                     best.offer.id.str(), best.offer.provider.str(), to_string(best.opening.why));
}

std::string Placer::tell_choice(const PodEntry& entry, const core::Candidate& best, base::Now now) {
  Decided decided{entry.record.key().uid, now.wall, best, {}};
  decided.next = selector_.runners_up(query_of(entry, *entry.shape, now), best, now.steady);
  for (const core::Candidate& next : decided.next) {
    metrics_
        .counter("spillway_offers_lost_total", "Offers that stood next to one that was bought, by what they lost.",
                 {{"by", std::string(to_string(next.lost_by))}})
        .add();
  }
  std::string text = core::describe_choice(best, decided.next);
  decided_.push_back(std::move(decided));
  if (decided_.size() > kMostDecided) decided_.pop_front();
  return text;
}

core::Explanation Placer::explain(const PodEntry& entry, const core::Shape& shape, base::Now now) {
  return selector_.explain(query_of(entry, shape, now), now.steady);
}

void Placer::record_to(DecisionLog& log) {
  log_ = &log;
  log.begin(providers_.abilities());
}

}  // namespace spillway::control
