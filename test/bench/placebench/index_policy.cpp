// The production engine as a contestant: book, beliefs, selector, hedge and reconsider, fed with what happens.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "test/bench/placebench/policy.hpp"
#include "vk-provider/core/decay.hpp"
#include "vk-provider/core/hedge.hpp"
#include "vk-provider/core/reconsider.hpp"
#include "vk-provider/core/selector.hpp"

namespace spillway::placebench {
namespace {

using core::LaunchResult;

constexpr Seconds kListEvery = 120;

class IndexPolicy final : public Policy {
 public:
  IndexPolicy(const World& world, bool hedges) : Policy(world), hedges_(hedges) {
    std::vector<core::ProviderAbility> abilities;
    for (size_t i = 0; i < world.size(); ++i) {
      const model::Offer& offer = world.pools()[i].offer;
      index_[{offer.provider, offer.id}] = i;
      if (std::ranges::find(abilities, offer.provider.str(), &core::ProviderAbility::name) != abilities.end()) continue;
      abilities.emplace_back().name = offer.provider.str();
    }
    selector_.set_abilities(std::move(abilities));
    list(0);
    for (size_t i = 0; i < world.size(); ++i) ids_.push_back(id_of(world.pools()[i].offer));
  }

  Choice choose(const JobView& job, Seconds now) override {
    list(now);
    const core::Query query = query_of(job);
    const core::Decision decision = selector_.choose(query, at(now));
    if (decision.kind == core::Decision::Kind::kNone) return WaitUntil{now + 15};
    if (decision.kind == core::Decision::Kind::kWait) {
      return WaitUntil{std::max(now + 0.5, seconds(*decision.again_at))};
    }
    return order(job, *decision.best, now);
  }

  void accepted(const JobView& job, size_t pool, Seconds took, Seconds now) override {
    settle_bet(job, pool, true);
    learn(job, pool, LaunchResult::kAccepted, took, false, now);
  }
  void sold_out(const JobView& job, size_t pool, Seconds took, Seconds now) override {
    moving_.erase(job.id);
    settle_bet(job, pool, false);
    learn(job, pool, LaunchResult::kSoldOut, took, false, now);
  }
  void ran(const JobView& job, size_t pool, Seconds took, Seconds now) override {
    // A try that found nothing was no move: the next one need not wait for hours.
    if (moving_.erase(job.id) > 0) moved_[job.id] = now;
    learn(job, pool, LaunchResult::kRan, took, true, now);
  }
  void never_ran(const JobView& job, size_t pool, Seconds now) override {
    learn(job, pool, LaunchResult::kNeverRan, 0, false, now);
  }
  void lost(const JobView& job, size_t pool, bool had_run, Seconds now) override {
    moved_.erase(job.id);
    moving_.erase(job.id);
    learn(job, pool, LaunchResult::kLost, 0, had_run, now);
  }
  void ended(const JobView& job, size_t pool, bool had_run, Seconds now) override {
    learn(job, pool, LaunchResult::kEnded, 0, had_run, now);
  }

  void given_up(const JobView& job, size_t pool, Seconds now) override {
    open_bets_.erase({job.id, pool});
    learn(job, pool, LaunchResult::kPodFault, 0, false, now);
  }

  Seconds patience(size_t pool, Seconds now) const override {
    return seconds(beliefs_.traits(ids_[pool], at(now)).give_up);
  }

  std::optional<Seconds> hedge_after(const JobView& job, size_t pool, Seconds now) override {
    if (!hedges_ || job.value < 1) return std::nullopt;
    return seconds(core::hedge_after(beliefs_.traits(ids_[pool], at(now))));
  }

  std::optional<size_t> hedge(const JobView& job, size_t pool, Seconds waited, Seconds now) override {
    list(now);
    const core::Query query = query_of(job);
    const core::Explanation all = selector_.explain(query, at(now));
    std::vector<core::Candidate> candidates = all.next;
    if (all.decision.best) candidates.insert(candidates.begin(), *all.decision.best);
    const model::Offer& first = world_.pools()[pool].offer;
    for (const core::Candidate& c : candidates) {
      if (c.opening.why != core::Closed::kNo || !core::other_domain(first, c.offer)) continue;
      core::HedgeQuestion question;
      const core::Traits here = beliefs_.traits(ids_[pool], at(now));
      const core::Traits there = beliefs_.traits(c.pool, at(now));
      question.first = &here;
      question.waited = lasting(waited);
      question.value_of_time = shape(job).worth.value_of_time;
      question.second = &c;
      question.second_start_hours = there.start_hours;
      question.second_answer_hours = there.answer_hours;
      if (!core::worth_hedging(question) || !budget_.take("bench", *c.offer.price_per_hour, at(now)))
        return std::nullopt;
      return std::get<TryPool>(order(job, c, now)).pool;
    }
    return std::nullopt;
  }

  bool moves() const override { return true; }
  std::optional<size_t> move(const JobView& job, size_t pool, double price, Seconds ran, Seconds now) override {
    list(now);
    const core::Query query = query_of(job);
    const core::Decision decision = selector_.choose(query, at(now));
    if (decision.kind != core::Decision::Kind::kBuy || decision.best->pool == ids_[pool]) return std::nullopt;
    core::MoveQuestion question;
    const core::Traits here = beliefs_.traits(ids_[pool], at(now));
    question.price = base::Money::from_micros(static_cast<std::int64_t>(price * 1e6));
    question.here = &here;
    question.ran = lasting(ran);
    const auto moved = moved_.find(job.id);
    if (moved != moved_.end()) question.moved = lasting(now - moved->second);
    question.there = &*decision.best;
    question.worth = shape(job).worth;
    question.overlaps = true;
    if (!core::worth_moving(question)) return std::nullopt;
    moving_.insert(job.id);
    return std::get<TryPool>(order(job, *decision.best, now)).pool;
  }

  std::vector<Bet> bets() const override { return bets_; }

 private:
  using OfferKey = std::pair<base::ProviderName, base::OfferId>;

  core::PoolId id_of(const model::Offer& offer) const {
    for (const core::OfferRow& row : book_.table().rows()) {
      if (row.offer->provider == offer.provider && row.offer->id == offer.id) return row.pool;
    }
    return {};
  }

  void list(Seconds now) {
    if (listed_ && now - *listed_ < kListEvery) return;
    listed_ = now;
    std::map<base::ProviderName, std::vector<model::Offer>> by_provider;
    for (model::Offer& offer : world_.offers(now)) by_provider[offer.provider].push_back(std::move(offer));
    for (auto& [provider, offers] : by_provider) book_.update(provider, std::move(offers), at(now));
  }

  const core::Shape& shape(const JobView& job) {
    const auto key = std::pair(job.value, job.checkpoint);
    const auto known = shapes_.find(key);
    if (known != shapes_.end()) return known->second;
    core::Requirements needs;
    needs.gpu_count = 1;
    needs.gpu_resource = "nvidia.com/gpu";
    needs.wishes.capacity_types = {model::CapacityType::kSpot, model::CapacityType::kOnDemand};
    needs.wishes.value_of_time = base::Money::from_micros(static_cast<std::int64_t>(job.value * 1e6));
    needs.wishes.checkpoint_interval = lasting(job.checkpoint);
    model::NodeProfile profile;
    profile.offers.capacity_types = needs.wishes.capacity_types;
    return shapes_.emplace(key, core::make_shape(needs, profile, "Job")).first->second;
  }

  core::Query query_of(const JobView& job) {
    core::Query query;
    query.shape = &shape(job);
    query.has_run = lasting(job.has_run);
    return query;
  }

  static base::InstanceTag tag(const JobView& job, size_t pool) {
    return base::InstanceTag(fmt::format("{}-{}", job.id, pool));
  }

  Choice order(const JobView& job, const core::Candidate& c, Seconds now) {
    const size_t pool = index_.at({c.offer.provider, c.offer.id});
    if (!beliefs_.begin(c.pool, tag(job, pool), at(now))) return WaitUntil{now + 1};
    budget_.note_create();
    open_bets_[{job.id, pool}] = c.chance;
    return TryPool{pool};
  }

  void settle_bet(const JobView& job, size_t pool, bool won) {
    const auto it = open_bets_.find({job.id, pool});
    if (it == open_bets_.end()) return;
    bets_.push_back({it->second, won});
    open_bets_.erase(it);
  }

  void learn(const JobView& job, size_t pool, LaunchResult result, Seconds took, bool had_run, Seconds now) {
    core::Beliefs::Report report;
    report.pool = ids_[pool];
    report.offer = world_.pools()[pool].offer.id;
    report.who = tag(job, pool);
    report.result = result;
    report.took = lasting(took);
    report.had_run = had_run;
    beliefs_.learn(report, at(now));
  }

  bool hedges_;
  core::OfferBook book_;
  core::Beliefs beliefs_{book_.pools()};
  core::Selector selector_{book_, beliefs_};
  core::HedgeBudget budget_{std::nullopt};
  std::optional<Seconds> listed_;
  std::map<OfferKey, size_t> index_;
  std::vector<core::PoolId> ids_;
  std::map<std::pair<double, Seconds>, core::Shape> shapes_;
  std::map<std::uint64_t, Seconds> moved_;
  std::set<std::uint64_t> moving_;
  std::map<std::pair<std::uint64_t, size_t>, double> open_bets_;
  std::vector<Bet> bets_;
};

}  // namespace

std::unique_ptr<Policy> make_index_policy(const World& world, bool hedges) {
  return std::make_unique<IndexPolicy>(world, hedges);
}

}  // namespace spillway::placebench
