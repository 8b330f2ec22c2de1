// Where a pod goes, and whether there is money for it: the offers, what is believed of them, the selector and the caps
// on money as one; and what became of each purchase, told to them.
//
// Owned by the daemon, outlives pod_controller; reactor thread only. It decides nothing itself, and calls nobody: core/
// does the one, pod_controller the other. Its knowledge is of this process; only what pods, listings and the ledger
// tell survives.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/metrics.hpp"
#include "vk-provider/control/decision_log.hpp"
#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/core/selector.hpp"
#include "vk-provider/core/spend_guard.hpp"

namespace spillway::control {

class Placer {
 public:
  /// `offers` and `providers` outlive it; the providers are complete.
  Placer(const core::OfferBook& offers, const ProviderSet& providers, core::SpendPolicy caps, base::Metrics& metrics,
         base::Now now);

  struct Answer {
    std::optional<core::Candidate> best;  // to be bought now
    // Without one:
    bool refused = false;  // no provider that has something would have the pod
    model::WaitReason why = model::WaitReason::kNoCapacity;
    std::string message;
    std::optional<base::TimePoint> again_at;  // something may be different then
  };
  /// The choice alone costs nothing, and binds nobody. `needs`: of the entry.
  Answer choose(PodEntry& entry, const core::Requirements& needs, base::Now now);

  /// Why that one, in one line (core/explain_text), for people; kept for `decided`.
  std::string tell_choice(const PodEntry& entry, const core::Candidate& best, base::Now now);
  /// What would be decided for the pod now, with every offer accounted for. Looks at all of them.
  core::Explanation explain(const PodEntry& entry, const core::Shape& shape, base::Now now);
  /// The last purchases that were decided on, the newest last; of this process, some dozens.
  struct Decided {
    base::PodUid pod;
    base::WallTime at;
    core::Candidate best;
    std::vector<core::Candidate> next;
  };
  const std::deque<Decided>& decided() const { return decided_; }

  struct Denial {
    model::WaitReason why{};
    std::string message;
  };
  /// Takes the money for it, and the right to ask its pool. Otherwise it takes nothing, and says what stands in the
  /// way.
  std::optional<Denial> reserve(PodEntry& entry, const core::Candidate& best, const base::InstanceTag& tag,
                                base::Now now);
  /// What one instance for the pod may cost per hour, by its node and by itself. After choose().
  static std::optional<base::Money> price_cap(const PodEntry& entry);
  /// The cap that stands in the way of buying what an earlier process chose and, as far as anybody knows, did not buy.
  std::optional<core::OverCap> still_denied(const PodEntry& entry, base::Now now);
  /// A create call begins, and was answered (null: accepted).
  void asked(PodEntry& entry, base::TimePoint now);
  void answered(PodEntry& entry, const base::Error* error, base::TimePoint now);
  /// The price that was read back from what was created. Returns what it may cost at most, if a cap is passed by it.
  std::optional<base::Money> priced(PodEntry& entry, base::Money per_hour, base::Now now);

  /// After each step of the record: counts what it may cost now, gives back what it cannot cost any more, and learns.
  /// `chosen`: the step was told of the reservation.
  void follow(PodEntry& entry, bool chosen, base::Now now);
  /// The record goes.
  void forget(PodEntry& entry, base::Now now);

  /// What the ledger says was spent, and what runs by it: counted from its beginning, also before its pod is known.
  void resume(const core::SpendState& state, base::Now now);
  /// An instance that costs money was heard of. It counts, unless it does already; also one that has no pod.
  void found(const core::SpendState::Open& open, base::Now now);
  /// Nothing is billed under the tag any more.
  void stopped(const base::ProviderName& provider, const base::InstanceTag& tag, base::Now now);
  /// From now on what decides is written there, too. It outlives this; to be called before anything else.
  void record_to(DecisionLog& log);

  const core::Beliefs& beliefs() const { return beliefs_; }
  core::SpendGuard& spend() { return spend_; }

 private:
  /// Of many pods of one shape that wait, one is looked for; what it found serves the others for a moment.
  struct Look {
    core::Shape shape;
    std::vector<core::ProviderBudget> budgets;
    core::Decision::Kind kind{};
    std::uint64_t version = 0;  // of the book
    base::TimePoint at;
    core::Explanation all;
  };

  static const core::Shape& shape_of(PodEntry& entry, const core::Requirements& needs);
  core::Query query_of(const PodEntry& entry, const core::Shape& shape, base::Now now);
  const core::Explanation& look(const core::Query& query, core::Decision::Kind kind, base::TimePoint now);
  void count(core::Decision::Kind kind);
  core::Purchase purchase_of(const PodEntry& entry, const base::ProviderName& provider) const;
  static std::string why_none(const core::Explanation& all, const core::Decision& decision, const core::Shape& shape);
  void learn(const Launch& launch, core::LaunchResult result, base::Duration took, base::TimePoint now,
             std::string message = {});
  void learn_course(PodEntry& entry, base::TimePoint now);
  void learn_end(const PodEntry& entry, base::TimePoint now);
  core::Purchase adopted(const PodEntry& entry, const model::Placement& placement) const;
  void adopt(PodEntry& entry, const model::Placement& placement, base::Now now);
  void end(PodEntry& entry, base::Now now);
  void show(const base::ProviderName& provider);

  const core::OfferBook& offers_;
  const ProviderSet& providers_;
  core::Beliefs beliefs_;
  core::Selector selector_;
  bool capped_;
  core::SpendGuard spend_;
  std::set<base::InstanceTag> resumed_;  // open by the ledger; no record stands for them (yet)
  base::Metrics& metrics_;
  DecisionLog* log_ = nullptr;
  std::unordered_map<std::uint64_t, Look> looks_;  // by Shape::hash, or Query::pods
  std::deque<Decided> decided_;
};

}  // namespace spillway::control
