// What the drain makes of the answers to its requests: the other half of core/drain_policy.hpp.
#include <algorithm>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/core/drain_policy.hpp"

namespace spillway::core {
namespace {

using Answer = DrainReply::Answer;

constexpr base::BackoffPolicy kBackoff{std::chrono::seconds(10), std::chrono::minutes(2)};
constexpr base::Duration kSoon = std::chrono::seconds(1);

base::Duration delay_of(const DrainReply& reply, int failures) {
  // Somebody else's write is no reason to wait: the next version is on its way.
  const base::Duration own = reply.answer == Answer::kConflict ? kSoon : base::backoff_delay(kBackoff, failures);
  return std::max(own, reply.retry_after.value_or(base::Duration::zero()));
}

}  // namespace

void DrainPolicy::put_budget(model::DisruptionBudget budget, std::int64_t allowed) {
  if (!roster_.put_budget(std::move(budget), allowed)) return;
  for (auto& [key, bar] : bars_) {
    if (bar.why == DrainBar::kBudget) bar.until = std::min(bar.until, now_.steady);
  }
  for (Move& move : moves_) {
    if (move.phase == Phase::kEvicting) move.retry_at = std::min(move.retry_at, now_.steady);
  }
}

void DrainPolicy::on_reply(const std::string& uid, const DrainReply& reply, base::Now now) {
  Move* const move = find_move(uid);
  if (move == nullptr) return;
  now_ = now;
  move->asked = false;
  switch (move->phase) {
    case Phase::kDetaching: return on_detach_reply(*move, reply);
    case Phase::kEvicting: return on_evict_reply(*move, reply);
    case Phase::kReturning: return on_return_reply(*move, reply);
    case Phase::kStanding:
    case Phase::kSettling: return;
  }
}

void DrainPolicy::retry(Move& move, const DrainReply& reply) {
  ++move.failures;
  move.retry_at = now_.steady + delay_of(reply, move.failures);
}

void DrainPolicy::on_detach_reply(Move& move, const DrainReply& reply) {
  if (reply.answer == Answer::kDone) {
    tell(DrainNotice::Kind::kDetached, move, "taken from its ReplicaSet, which makes another one at home");
    move.phase = Phase::kStanding;
    return;
  }
  if (reply.answer == Answer::kGone) return finish(move, DrainEnd::kGone);
  const bool conflict = reply.answer == Answer::kConflict;
  if (reply.answer == Answer::kRefused || (conflict && move.failures + 1 >= kTries)) {
    bar(move.pod.uid, DrainBar::kRefused, conflict ? kBackoff.cap : kSkip);
    tell(DrainNotice::Kind::kBlocked, move, "it cannot be taken from its ReplicaSet: " + reply.message);
    return finish(move, DrainEnd::kBlocked);
  }
  // Whether a write without an answer was done, the watch tells.
  retry(move, reply);
}

void DrainPolicy::on_evict_reply(Move& move, const DrainReply& reply) {
  const bool surge = move.mode == DrainMode::kSurge;
  switch (reply.answer) {
    case Answer::kDone:
      if (!surge) tell(DrainNotice::Kind::kStarted, move, move.place + " has room; evicted");
      [[fallthrough]];
    case Answer::kGone: move.phase = Phase::kSettling; return;
    case Answer::kBudget: {
      std::string names;
      for (const std::string& name : roster_.budgets_of(move.pod)) names += (names.empty() ? "" : ", ") + name;
      tell(DrainNotice::Kind::kBlocked, move, "PodDisruptionBudget " + names + ": " + reply.message);
      if (surge) return retry(move, reply);
      // Others have a go meanwhile.
      const int failures = ++bars_[move.owner_uid].failures;
      bar(move.owner_uid, DrainBar::kBudget, delay_of(reply, failures));
      return finish(move, DrainEnd::kBlocked);
    }
    case Answer::kTwoBudgets:
    case Answer::kRefused: {
      const bool two = reply.answer == Answer::kTwoBudgets;
      tell(DrainNotice::Kind::kBlocked, move, reply.message);
      bar(move.pod.uid, two ? DrainBar::kTwoBudgets : DrainBar::kRefused, kSkip);
      if (move.unwanted) return retry(move, reply);
      if (surge) return give_back(move, DrainEnd::kAborted, "it cannot be evicted: " + reply.message);
      return finish(move, DrainEnd::kBlocked);
    }
    case Answer::kConflict:
    case Answer::kFailed: {
      if (surge || move.failures + 1 < kTries) return retry(move, reply);
      tell(DrainNotice::Kind::kBlocked, move, "it cannot be evicted: " + reply.message);
      bar(move.pod.uid, DrainBar::kRefused, kBackoff.cap);
      return finish(move, DrainEnd::kBlocked);
    }
  }
}

void DrainPolicy::on_return_reply(Move& move, const DrainReply& reply) {
  if (reply.answer == Answer::kGone) return finish(move, DrainEnd::kGone);
  if (reply.answer == Answer::kDone) {
    // It is done when the watch shows it: until then the pod looks as if it were still to be given back.
    move.retry_at = now_.steady + kBackoff.first;
    return;
  }
  if (reply.answer == Answer::kRefused && move.failures == 0) {
    tell(DrainNotice::Kind::kBlocked, move, "it cannot be given back to its ReplicaSet: " + reply.message);
  }
  retry(move, reply);
}

}  // namespace spillway::core
