// How detached pods are taken up again and given back: the third part of core/drain_policy.hpp.
#include <algorithm>
#include <utility>

#include "vk-provider/core/drain_policy.hpp"

namespace spillway::core {

/// What an earlier process has taken from its ReplicaSet goes on, or back.
void DrainPolicy::take_up_detached() {
  constexpr base::Duration kFuture = std::chrono::minutes(5);  // a clock that runs ahead of ours
  for (const model::HomePod* pod : roster_.away()) {
    if (pod->drain.draining.empty() || find_move(pod->uid) != nullptr) continue;
    const auto& note = pod->drain.note;
    // Without a note of ours, and with a controller, the annotation is somebody else's affair.
    if (!note && (!is_detached(*pod) || !pod->drain.owner_uid.empty())) continue;
    Move move;
    move.pod = *pod;
    move.mode = DrainMode::kSurge;
    move.phase = Phase::kStanding;
    move.resumed = true;
    move.seen_detached = true;
    move.started = now_.steady;
    if (!note || !is_detached(*pod)) {
      give_back(move, DrainEnd::kAborted, "its note is incomplete");
    } else {
      move.owner_uid = note->owner_uid;
      move.since = note->since;
      const base::Duration age = now_.wall - note->since;
      move.started -= std::max(age, base::Duration::zero());
      if (age > kOldest || age < -kFuture) {
        give_back(move, DrainEnd::kStalled, "it was taken from its ReplicaSet longer ago than 30m");
      } else if (rules_.mode != DrainMode::kSurge) {
        give_back(move, DrainEnd::kAborted, "the mode of the drain is not surge any more");
      } else {
        move.place = book_.place_for(*pod, reserved()).value_or(std::string());
      }
    }
    moves_.push_back(std::move(move));
  }
}

void DrainPolicy::advance_returning(Move& move, bool gone) {
  if (gone) return finish(move, DrainEnd::kGone);
  // What the watch has not shown yet cannot be undone: the version would be an old one.
  if (!move.seen_detached && age_of(move) <= kOldest) return;
  if (move.pod.drain.draining.empty()) {
    if (move.pod.drain.owner_uid.empty()) return await_adoption(move);
    tell(DrainNotice::Kind::kAborted, move, "given back to its ReplicaSet: " + move.why);
    return finish(move, move.returns_as);
  }
  if (move.retry_at <= now_.steady) order(move, DrainOrder::Verb::kReturn);
}

/// Its ReplicaSet takes it in a moment, or is gone itself: then nobody would ever end the pod.
void DrainPolicy::await_adoption(Move& move) {
  if (move.returned_at == base::TimePoint()) move.returned_at = now_.steady;
  if (now_.steady - move.returned_at < kAdoption) return;
  tell(DrainNotice::Kind::kAborted, move, "its ReplicaSet is gone, and with it what it was for");
  move.unwanted = true;
  move.place.clear();
  move.phase = Phase::kEvicting;
  advance_evicting(move, false);
}

void DrainPolicy::give_back(Move& move, DrainEnd as, std::string why) {
  move.phase = Phase::kReturning;
  move.returns_as = as;
  move.why = std::move(why);
  move.failures = 0;
  move.retry_at = now_.steady;
  if (find_move(move.pod.uid) == &move) advance_returning(move, false);
}

}  // namespace spillway::core
