#include "vk-provider/core/drain_policy.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::string_view to_string(DrainEnd end) {
  switch (end) {
    case DrainEnd::kHome: return "home";
    case DrainEnd::kReturned: return "returned";
    case DrainEnd::kStalled: return "stalled";
    case DrainEnd::kAborted: return "aborted";
    case DrainEnd::kBlocked: return "blocked";
    case DrainEnd::kGone: return "gone";
  }
  return "aborted";
}

DrainPolicy::DrainPolicy(const DrainRules& rules, std::int64_t reserve, const HomeBook& book, base::TimePoint now)
    : rules_(rules), reserve_(reserve), book_(book), roster_(book), last_start_(now), paused_until_(now) {}

DrainStep DrainPolicy::step(const DrainSight& sight, base::Now now) {
  sight_ = sight;
  now_ = now;
  std::erase_if(bars_, [&](const auto& entry) { return entry.second.until + kSkip < now.steady; });
  std::erase_if(returns_, [&](const auto& entry) { return entry.second.second + kReturnsKept < now.steady; });
  take_up_detached();
  for (Move& move : moves_) advance(move);
  std::erase_if(moves_, [](const Move& move) { return move.end.has_value(); });
  start_moves();
  count();
  return std::exchange(out_, {});
}

// What home has room for.

DrainPolicy::Successor DrainPolicy::successor_of(const Move& move) const {
  constexpr base::Duration kClockSkew = std::chrono::seconds(5);
  Successor best;
  int best_rank = -1;
  for (const model::HomePod* pod : roster_.of_owner(move.owner_uid)) {
    if (pod->deleting || pod->uid == move.pod.uid || move.before.contains(pod->uid)) continue;
    // Who was there before an earlier process began is not known any more.
    if (move.resumed && pod->drain.created + kClockSkew < move.since) continue;
    Successor one;
    // A rented node of another gate, or of none, is no home either.
    one.home = book_.is_home(pod->node_name);
    one.away = !one.home && !pod->node_name.empty();
    one.ready = one.home && pod->drain.ready;
    one.name = pod->drain.name;
    one.node = pod->node_name;
    const int rank = one.ready ? 3 : one.home ? 2 : one.away ? 0 : 1;
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = std::move(one);
  }
  return best;
}

HomeBook::Reserved DrainPolicy::reserved() const {
  HomeBook::Reserved out;
  for (const Move& move : moves_) {
    // What is bound at home stands in the book.
    if (move.end || move.place.empty() || move.phase == Phase::kReturning || successor_of(move).home) continue;
    out[move.place] += book_.gpus_of(move.pod);
  }
  return out;
}

std::int64_t DrainPolicy::unbound_moves() const {
  return std::ranges::count_if(moves_, [&](const Move& move) {
    return !move.end && !move.place.empty() && move.phase != Phase::kReturning && !successor_of(move).home;
  });
}

/// Slots that are free at home when those ahead, those that wait and those on their way have got theirs.
std::int64_t DrainPolicy::spare_slots(const HomeBook::Reserved& reserved) const {
  const HomeSight& home = sight_.gate.home;
  const std::int64_t unbound = unbound_moves();
  const std::int64_t waiting = std::max<std::int64_t>(0, home.pending - unbound);
  const std::int64_t ahead = divide_up(home.demand_gpus, home.slot_gpus);
  const std::int64_t by_book = book_.free_slots(home.slot_gpus, reserved) - ahead - waiting;
  // The gate may be told by somebody else, who knows of less.
  return std::min(by_book, sight_.gate.free_slots.value_or(0) - unbound - waiting);
}

bool DrainPolicy::short_of_room() const {
  const HomeSight& home = sight_.gate.home;
  return book_.free_slots(home.slot_gpus, {}) - divide_up(home.demand_gpus, home.slot_gpus) < unbound_moves();
}

// Moves under way.

void DrainPolicy::advance(Move& move) {
  if (move.asked || move.end) return;
  const model::HomePod* const pod = roster_.find(move.pod.uid);
  const bool gone = pod == nullptr || pod->deleting;
  if (pod != nullptr) move.pod = *pod;
  if (pod != nullptr && is_detached(*pod)) move.seen_detached = true;
  if (gone && (move.phase == Phase::kDetaching || move.phase == Phase::kStanding)) return finish(move, DrainEnd::kGone);
  switch (move.phase) {
    case Phase::kDetaching: return advance_detaching(move);
    case Phase::kStanding: return advance_standing(move);
    case Phase::kEvicting: return advance_evicting(move, gone);
    case Phase::kSettling: return advance_settling(move, gone);
    case Phase::kReturning: return advance_returning(move, gone);
  }
}

void DrainPolicy::advance_detaching(Move& move) {
  if (is_detached(move.pod)) {
    tell(DrainNotice::Kind::kDetached, move, "taken from its ReplicaSet, which makes another one at home");
    move.phase = Phase::kStanding;
    return advance_standing(move);
  }
  if (!closed_for(move)) return finish(move, DrainEnd::kAborted);
  if (move.retry_at <= now_.steady) order(move, DrainOrder::Verb::kDetach);
}

void DrainPolicy::advance_standing(Move& move) {
  if (move.seen_detached && !is_detached(move.pod)) return finish(move, DrainEnd::kAborted);  // by somebody's hand
  const Successor next = successor_of(move);
  if (next.ready) {
    move.phase = Phase::kEvicting;
    move.failures = 0;
    move.retry_at = now_.steady;
    return advance_evicting(move, false);
  }
  if (!closed_for(move)) {
    // It may be this move that opened it: the replacement fits by its GPUs, and not by all else.
    if (!next.name.empty() && !next.home) note_return(move.owner_uid);
    return give_back(move, DrainEnd::kAborted, "the gate has opened");
  }
  if (next.away) {
    note_return(move.owner_uid);
    return give_back(move, DrainEnd::kReturned, "its replacement " + next.name + " stands on " + next.node);
  }
  if (!next.home && short_of_room()) return give_back(move, DrainEnd::kAborted, "home has no room any more");
  if (age_of(move) <= std::min(rules_.replacement_timeout, kOldest)) return;
  note_stall(move);
  give_back(move, DrainEnd::kStalled, "its replacement is not Ready at home in time");
}

void DrainPolicy::advance_evicting(Move& move, bool gone) {
  if (gone) {
    move.phase = Phase::kSettling;
    return advance_settling(move, gone);
  }
  if (move.unwanted) {
    // Nobody needs a place at home for it.
  } else if (move.mode == DrainMode::kSurge) {
    if (age_of(move) > kOldest) return give_back(move, DrainEnd::kStalled, "it cannot be evicted");
    if (!successor_of(move).ready) {
      move.phase = Phase::kStanding;
      return;
    }
  } else if (!closed_for(move)) {
    return finish(move, DrainEnd::kAborted);
  }
  if (move.retry_at <= now_.steady) order(move, DrainOrder::Verb::kEvict);
}

void DrainPolicy::advance_settling(Move& move, bool gone) {
  if (move.unwanted && gone) return finish(move, DrainEnd::kGone);
  if (move.unwanted) return;
  const Successor next = successor_of(move);
  if (next.ready && gone) {
    tell(DrainNotice::Kind::kDone, move, "moved home: " + next.name + " is Ready on " + next.node);
    return finish(move, DrainEnd::kHome);
  }
  if (next.away) {
    note_return(move.owner_uid);
    tell(DrainNotice::Kind::kAborted, move, "its replacement " + next.name + " came back to " + next.node);
    return finish(move, DrainEnd::kReturned);
  }
  if (age_of(move) <= rules_.replacement_timeout) return;
  note_stall(move);
  tell(DrainNotice::Kind::kAborted, move, "its replacement is not Ready at home in time; the drain pauses");
  finish(move, DrainEnd::kStalled);
}

void DrainPolicy::order(Move& move, DrainOrder::Verb verb) {
  move.asked = true;
  DrainOrder& order = out_.orders.emplace_back();
  order.verb = verb;
  order.pod = move.pod;
  if (verb != DrainOrder::Verb::kDetach) return;
  order.note.hash = move.pod.labels.at(std::string(model::kLabelTemplateHash));
  order.note.owner_name = move.pod.drain.owner_name;
  order.note.owner_uid = move.owner_uid;
  order.note.since = move.since;
}

void DrainPolicy::finish(Move& move, DrainEnd end) {
  move.end = end;
  if (end == DrainEnd::kHome) bars_.erase(move.owner_uid);
  // Nothing was done.
  if (end == DrainEnd::kBlocked) {
    last_start_ = move.start_before;
    return;
  }
  DrainResult& result = out_.results.emplace_back();
  result.mode = move.mode;
  result.end = end;
  result.took = age_of(move);
  result.price = move.pod.drain.price;
}

// Moves that begin.

void DrainPolicy::start_moves() {
  if (rules_.mode == DrainMode::kOff || !closed() || !sight_.gate.free_slots || !sight_.budgets_known) return;
  if (sight_.gate.blindness != GateBlindness::kNone || now_.steady < paused_until_) return;
  for (const model::HomePod* pod : roster_.away()) {
    if (now_.steady < last_start_ + rules_.interval || under_way() >= rules_.max_concurrent) return;
    if (spare_slots(reserved()) <= reserve_) return;
    start(*pod);
  }
}

std::int64_t DrainPolicy::under_way() const {
  // Whoever evicts beside us moves pods as well.
  const auto others = std::ranges::count_if(roster_.leaving(), [&](const model::HomePod* pod) {
    return std::ranges::none_of(moves_, [&](const Move& move) { return move.pod.uid == pod->uid; });
  });
  return static_cast<std::int64_t>(moves_.size()) + others;
}

bool DrainPolicy::is_busy(const std::string& owner_uid) const {
  return std::ranges::find(moves_, owner_uid, &Move::owner_uid) != moves_.end() ||
         std::ranges::any_of(roster_.leaving(),
                             [&](const model::HomePod* pod) { return pod->drain.owner_uid == owner_uid; });
}

bool DrainPolicy::start(const model::HomePod& pod) {
  if (find_move(pod.uid) != nullptr || is_busy(pod.drain.owner_uid) || !sight_.closed_nodes.contains(pod.node_name) ||
      bar_of(pod) != DrainBar::kNone) {
    return false;
  }
  // Where nobody renews the node's lease all its pods look as if they served nobody.
  if (!pod.drain.ready && !book_.is_ready(pod.node_name)) return false;
  auto place = book_.place_for(pod, reserved());
  if (!place) return false;
  Move move;
  move.pod = pod;
  move.place = std::move(*place);
  move.owner_uid = pod.drain.owner_uid;
  move.since = now_.wall;
  move.started = move.retry_at = now_.steady;
  move.start_before = last_start_;
  for (const model::HomePod* sibling : roster_.of_owner(move.owner_uid)) move.before.insert(sibling->uid);
  if (rules_.mode == DrainMode::kSurge && can_detach(pod)) {
    move.mode = DrainMode::kSurge;
    move.phase = Phase::kDetaching;
    const auto budgets = roster_.budgets_of(pod);
    if (budgets.size() > 1) {
      bar(pod.uid, DrainBar::kTwoBudgets, kSkip);
      tell(DrainNotice::Kind::kBlocked, move,
           "more than one PodDisruptionBudget is about it: " + budgets[0] + " and " + budgets[1] +
               "; the API server refuses to evict it");
      return false;
    }
    tell(DrainNotice::Kind::kStarted, move, move.place + " has room; its replacement comes first");
  }
  last_start_ = now_.steady;
  moves_.push_back(std::move(move));
  advance(moves_.back());
  return true;
}

DrainBar DrainPolicy::bar_of(const model::HomePod& pod) const {
  const DrainBar own = roster_.bar_of(pod, rules_, now_.wall);
  if (own != DrainBar::kNone) return own;
  const auto returned = returns_.find(pod.drain.owner_uid);
  if (returned != returns_.end() && returned->second.first >= kMaxReturns) return DrainBar::kReturned;
  for (const std::string* key : {&pod.drain.owner_uid, &pod.uid}) {
    const auto it = bars_.find(*key);
    if (it != bars_.end() && now_.steady < it->second.until) return it->second.why;
  }
  return DrainBar::kNone;
}

void DrainPolicy::bar(const std::string& key, DrainBar why, base::Duration length) {
  bars_[key].why = why;
  bars_[key].until = now_.steady + length;
}

/// What home breaks once it breaks again: others may go, after a pause.
void DrainPolicy::note_stall(const Move& move) {
  paused_until_ = now_.steady + rules_.stall_pause;
  bar(move.owner_uid, DrainBar::kStalled, kReturnsKept);
}

void DrainPolicy::note_return(const std::string& owner_uid) {
  auto& [times, last] = returns_[owner_uid];
  ++times;
  last = now_.steady;
}

void DrainPolicy::tell(DrainNotice::Kind kind, const Move& move, std::string message) {
  DrainNotice& notice = out_.notices.emplace_back();
  notice.kind = kind;
  notice.pod = move.pod;
  notice.message = std::move(message);
}

DrainPolicy::Move* DrainPolicy::find_move(const std::string& uid) {
  const auto it = std::ranges::find_if(moves_, [&](const Move& move) { return move.pod.uid == uid; });
  return it == moves_.end() ? nullptr : &*it;
}

void DrainPolicy::count() {
  out_.inflight = static_cast<std::int64_t>(moves_.size());
  const HomeBook::Reserved promised = reserved();
  const std::int64_t room = std::max<std::int64_t>(0, spare_slots(promised) - reserve_);
  for (const model::HomePod* pod : roster_.away()) {
    if (find_move(pod->uid) != nullptr) continue;
    DrainBar why = bar_of(*pod);
    if (why == DrainBar::kNone && room > 0 && !book_.place_for(*pod, promised)) why = DrainBar::kNoRoom;
    ++out_.barred.at(static_cast<size_t>(why));
  }
  const auto candidates =
      out_.barred.at(static_cast<size_t>(DrainBar::kNone)) + out_.barred.at(static_cast<size_t>(DrainBar::kBudget));
  out_.waiting = closed() ? std::min(candidates, room) : 0;
  out_.next = now_.steady + kTick;
  const auto look_at = [&](base::TimePoint when) {
    if (when > now_.steady) out_.next = std::min(out_.next, when);
  };
  look_at(last_start_ + rules_.interval);
  look_at(paused_until_);
  for (const Move& move : moves_) look_at(move.retry_at);
  for (const auto& [key, one] : bars_) look_at(one.until);
}

}  // namespace spillway::core
