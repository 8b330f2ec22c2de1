#include "test/bench/placebench/storm.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <vector>

#include <fmt/format.h>

#include "test/bench/placebench/draw.hpp"
#include "test/bench/placebench/storm_cloud.hpp"
#include "vk-provider/base/token_bucket.hpp"
#include "vk-provider/core/selector.hpp"
#include "vk-provider/core/spend_guard.hpp"

namespace spillway::placebench {
namespace {

using core::LaunchResult;

constexpr Seconds kArriveWithin = 60;
constexpr Seconds kRunsFor = 600;
constexpr Seconds kAnswer = 2;
constexpr Seconds kStart = 60;
constexpr Seconds kSettle = 10;
constexpr Seconds kRetry = 15;
constexpr Seconds kConfirm = 6;
constexpr Seconds kListEvery = 30;
constexpr Seconds kSpread = 1;  // of those who wait for a call's token
constexpr Seconds kHorizon = 24 * 3600;
constexpr std::int64_t kCap = 150'000'000;  // dollars per hour, of all
constexpr std::int64_t kNamespaceCap = 60'000'000;

enum class What : std::uint8_t { kChoose, kAnswer, kLookUp, kRuns, kEnds, kConfirm };

struct Event {
  Seconds when = 0;
  std::uint64_t order = 0;
  What what{};
  int pod = 0;
  bool operator>(const Event& o) const { return when != o.when ? when > o.when : order > o.order; }
};

struct Pod {
  int attempt = 0;
  int provider = 0;
  int offer = 0;
  core::PoolId pool{};
  base::Money price;
  bool finished = false;
  bool ran = false;
};

class Storm {
 public:
  Storm(std::uint64_t seed, int pods)
      : seed_(seed), cloud_(seed), guard_(policy(), now_both()), pods_(static_cast<size_t>(pods)) {
    std::vector<core::ProviderAbility> abilities(kStormProviders);
    for (int p = 0; p < kStormProviders; ++p) abilities[static_cast<size_t>(p)].name = name_of(p);
    selector_.set_abilities(std::move(abilities));
    core::Requirements needs;
    needs.gpu_count = 1;
    needs.gpu_resource = "nvidia.com/gpu";
    shape_ = core::make_shape(needs, {}, "Job");
    result_.pods = pods;
    result_.cap = static_cast<double>(kCap) / 1e6;
    buckets_.assign(kStormProviders, base::TokenBucket(9, 9));
    for (int i = 0; i < pods; ++i) plan(kArriveWithin * unit(mixed_all(seed, 8U, i)), What::kChoose, i);
  }

  StormResult run() {
    while (!events_.empty() && events_.top().when < kHorizon) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      handle(event);
      check(event.pod);
    }
    result_.calls = cloud_.calls();
    result_.rate_limited = cloud_.rate_limited();
    result_.ghosts = cloud_.ghosts();
    result_.leaked = static_cast<int>(cloud_.alive(now_ + 3600));
    return result_;
  }

 private:
  static core::SpendPolicy policy() {
    core::SpendPolicy p;
    p.installation.per_hour = base::Money::from_micros(kCap);
    p.each_namespace.per_hour = base::Money::from_micros(kNamespaceCap);
    return p;
  }
  static std::string name_of(int provider) { return fmt::format("p{}", provider); }
  std::string tag_of(int i) const { return fmt::format("pod{}.{}", i, pods_[static_cast<size_t>(i)].attempt); }
  base::Now now_both() const {
    return {at(now_), base::WallTime(std::chrono::microseconds(static_cast<std::int64_t>(now_ * 1e6)))};
  }
  void plan(Seconds when, What what, int pod) { events_.push({when, ++planned_, what, pod}); }

  void list() {
    if (listed_ && now_ - *listed_ < kListEvery) return;
    listed_ = now_;
    for (int p = 0; p < kStormProviders; ++p)
      book_.update(base::ProviderName(name_of(p)), cloud_.offers(p, now_), at(now_));
  }

  core::Purchase purchase_of(int i) const {
    const Pod& pod = pods_[static_cast<size_t>(i)];
    core::Purchase out;
    out.tag = base::InstanceTag(tag_of(i));
    out.ns = fmt::format("ns{}", i % 4);
    out.provider = base::ProviderName(name_of(pod.provider));
    out.node = "node";
    out.per_hour = pod.price;
    return out;
  }

  void handle(const Event& event) {
    switch (event.what) {
      case What::kChoose: return choose(event.pod);
      case What::kAnswer: return answer(event.pod);
      case What::kLookUp: return look_up(event.pod);
      case What::kRuns: return runs(event.pod);
      case What::kEnds: return ends(event.pod);
      case What::kConfirm: return confirm(event.pod);
    }
  }

  void choose(int i) {
    list();
    Pod& pod = pods_[static_cast<size_t>(i)];
    core::Query query;
    query.shape = &shape_;
    for (int p = 0; p < kStormProviders; ++p) {
      pod.provider = p;
      const core::Purchase asked = purchase_of(i);
      query.budgets.push_back(
          {asked.provider, guard_.headroom(asked, now_both()), guard_.price_factor(asked, now_both())});
    }
    const core::Decision decision = selector_.choose(query, at(now_));
    const Seconds again = kRetry * (0.8 + 0.4 * unit(mixed_all(seed_, 9U, i, planned_)));
    if (decision.kind != core::Decision::Kind::kBuy) {
      const Seconds until = decision.again_at ? std::max(seconds(*decision.again_at), now_ + 0.5) : now_ + again;
      return plan(std::min(until, now_ + again), What::kChoose, i);
    }
    buy(i, *decision.best);
  }

  void buy(int i, const core::Candidate& best) {
    Pod& pod = pods_[static_cast<size_t>(i)];
    pod.provider = best.offer.provider.str().back() - '0';
    pod.offer = best.offer.id.str().back() - '0';
    pod.pool = best.pool;
    pod.price = *best.offer.price_per_hour;
    base::TokenBucket& bucket = buckets_[static_cast<size_t>(pod.provider)];
    if (bucket.next(at(now_)) > at(now_)) {
      // Later by more than rounding: at the very time of the token it would still be missing, for ever. Not all at
      // once.
      const Seconds spread = kSpread * (0.1 + 0.9 * unit(mixed_all(seed_, 10U, i, planned_)));
      return plan(seconds(bucket.next(at(now_))) + spread, What::kChoose, i);
    }
    ++pod.attempt;
    if (guard_.reserve(purchase_of(i), now_both())) return plan(now_ + kRetry, What::kChoose, i);
    if (!beliefs_.begin(pod.pool, base::InstanceTag(tag_of(i)), at(now_))) {
      ++result_.crowded_probes;
      guard_.release(base::InstanceTag(tag_of(i)), now_both());
      return plan(now_ + 1, What::kChoose, i);
    }
    bucket.reserve(at(now_));
    plan(now_ + kAnswer, What::kAnswer, i);
  }

  core::NextStep learn(int i, LaunchResult result, base::Duration at_least = {}) {
    const Pod& pod = pods_[static_cast<size_t>(i)];
    core::Beliefs::Report report;
    report.pool = pod.pool;
    report.offer = base::OfferId(fmt::format("o{}", pod.offer));
    report.who = base::InstanceTag(tag_of(i));
    report.result = result;
    report.took = lasting(result == LaunchResult::kRan ? kStart : kAnswer);
    report.at_least = at_least;
    report.had_run = pod.ran;
    report.whole_provider = true;
    return beliefs_.learn(report, at(now_));
  }

  void answer(int i) {
    const Pod& pod = pods_[static_cast<size_t>(i)];
    const StormCloud::Answer answer = cloud_.create(pod.provider, pod.offer, tag_of(i), pod.price, now_);
    if (answer.ok) {
      learn(i, LaunchResult::kAccepted);
      return plan(now_ + kStart, What::kRuns, i);
    }
    const core::NextStep next = learn(i, core::result_of(answer.error), answer.retry_after);
    if (next == core::NextStep::kLookUp) return plan(now_ + kSettle, What::kLookUp, i);
    guard_.release(base::InstanceTag(tag_of(i)), now_both());
    if (next == core::NextStep::kListAgain) listed_.reset();
    plan(now_, What::kChoose, i);
  }

  void look_up(int i) {
    const Pod& pod = pods_[static_cast<size_t>(i)];
    const auto holds = cloud_.holds(pod.provider, tag_of(i), now_);
    if (!holds) return plan(now_ + kSettle, What::kLookUp, i);
    if (*holds) {
      learn(i, LaunchResult::kAccepted);
      return plan(now_ + kStart, What::kRuns, i);
    }
    guard_.release(base::InstanceTag(tag_of(i)), now_both());
    plan(now_, What::kChoose, i);
  }

  void runs(int i) {
    learn(i, LaunchResult::kRan);
    pods_[static_cast<size_t>(i)].ran = true;
    plan(now_ + kRunsFor, What::kEnds, i);
  }

  void ends(int i) {
    const Pod& pod = pods_[static_cast<size_t>(i)];
    if (!cloud_.terminate(pod.provider, tag_of(i), now_)) return plan(now_ + kRetry, What::kEnds, i);
    plan(now_ + kConfirm, What::kConfirm, i);
  }

  void confirm(int i) {
    Pod& pod = pods_[static_cast<size_t>(i)];
    const auto holds = cloud_.holds(pod.provider, tag_of(i), now_);
    if (!holds || *holds) return plan(now_ + kRetry, What::kConfirm, i);
    learn(i, LaunchResult::kEnded);
    guard_.release(base::InstanceTag(tag_of(i)), now_both());
    pod.finished = true;
    ++result_.done;
    result_.last_done = now_;
  }

  void check(int i) {
    if (cloud_.alive_of(fmt::format("pod{}", i), now_) > 1) ++result_.doubles;
    const std::int64_t burn = cloud_.burn(now_);
    result_.most_burn = std::max(result_.most_burn, static_cast<double>(burn) / 1e6);
    if (burn > kCap || guard_.burn(core::SpendScope::kInstallation, {}).micros() > kCap) ++result_.overruns;
    if (guard_.burn(core::SpendScope::kNamespace, fmt::format("ns{}", i % 4)).micros() > kNamespaceCap)
      ++result_.overruns;
  }

  std::uint64_t seed_;
  Seconds now_ = 0;
  StormCloud cloud_;
  core::OfferBook book_;
  core::Beliefs beliefs_{book_.pools()};
  core::Selector selector_{book_, beliefs_};
  core::SpendGuard guard_;
  core::Shape shape_;
  std::vector<Pod> pods_;
  std::vector<base::TokenBucket> buckets_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::optional<Seconds> listed_;
  std::uint64_t planned_ = 0;
  StormResult result_;
};

}  // namespace

StormResult run_storm(std::uint64_t seed, int pods) { return Storm(seed, pods).run(); }

}  // namespace spillway::placebench
