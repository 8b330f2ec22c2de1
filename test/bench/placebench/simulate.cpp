#include "test/bench/placebench/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace spillway::placebench {
namespace {

constexpr Seconds kHour = 3600;
constexpr Seconds kReconsiderEvery = 900;
constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();

enum class What : std::uint8_t { kChoose, kAnswer, kRuns, kGiveUp, kLost, kDone, kHedge, kReconsider };

struct Event {
  Seconds when = 0;
  std::uint64_t order = 0;  // of those at the same time, in the order in which they were planned
  What what{};
  size_t job = 0;
  std::uint64_t order_id = 0;  // of an order; kChoose and kReconsider: of the job's turn
  bool operator>(const Event& other) const { return when != other.when ? when > other.when : order > other.order; }
};

/// One create and what came of it.
struct Order {
  std::uint64_t id = 0;
  size_t pool = 0;
  Seconds placed = 0;
  Draw draw;
  bool accepted = false;
  bool running = false;
  Seconds accepted_at = 0;
  Seconds running_at = 0;
  double price = 0;    // dollars per hour
  bool extra = false;  // a hedge, or where it moves to
};

struct JobState {
  Seconds done = 0;  // work that is saved
  std::vector<Order> orders;
  std::uint64_t turn = 0;    // of choosing: what was planned for an earlier one is void
  std::uint64_t worker = 0;  // the order whose instance does the work; 0: none
  Seconds worker_since = 0;
  bool started = false;
  bool finished = false;
};

class Simulation {
 public:
  Simulation(const Scenario& scenario, Policy& policy) : scenario_(scenario), policy_(policy) {
    result_.jobs.resize(scenario.jobs.size());
    states_.resize(scenario.jobs.size());
    for (size_t j = 0; j < scenario.jobs.size(); ++j) plan(scenario.jobs[j].arrival, What::kChoose, j, 0);
  }

  RunResult run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      if (!states_[event.job].finished) handle(event);
    }
    result_.bets = policy_.bets();
    return std::move(result_);
  }

 private:
  void plan(Seconds when, What what, size_t job, std::uint64_t id) { events_.push({when, ++planned_, what, job, id}); }

  JobView view(size_t j) const {
    const Job& job = scenario_.jobs[j];
    JobView out;
    out.id = job.id;
    out.checkpoint = job.checkpoint;
    out.value = job.value;
    out.arrival = job.arrival;
    out.has_run = states_[j].done;
    if (states_[j].worker != 0) out.has_run += now_ - states_[j].worker_since;
    out.left = job.work - out.has_run;
    return out;
  }

  Order* find(size_t j, std::uint64_t id) {
    auto& orders = states_[j].orders;
    const auto it = std::ranges::find(orders, id, &Order::id);
    return it == orders.end() ? nullptr : &*it;
  }

  void handle(const Event& event) {
    if (event.what == What::kChoose) {
      if (event.order_id == states_[event.job].turn) choose(event.job);
      return;
    }
    Order* const order = find(event.job, event.order_id);
    if (order == nullptr) return;
    switch (event.what) {
      case What::kAnswer: return answer(event.job, *order);
      case What::kRuns: return runs(event.job, *order);
      case What::kGiveUp: return give_up(event.job, *order);
      case What::kLost: return lost(event.job, *order);
      case What::kDone: return done(event.job, *order);
      case What::kHedge: return hedge(event.job, *order);
      case What::kReconsider: return reconsider(event.job, *order);
      case What::kChoose: return;
    }
  }

  void choose_again(size_t j, Seconds when) { plan(when, What::kChoose, j, ++states_[j].turn); }

  void choose(size_t j) {
    ++result_.decisions;
    const Choice choice = policy_.choose(view(j), now_);
    if (const auto* wait = std::get_if<WaitUntil>(&choice)) return choose_again(j, std::max(wait->when, now_ + 0.1));
    place(j, std::get<TryPool>(choice).pool, false);
  }

  void place(size_t j, size_t pool, bool extra) {
    Order& order = states_[j].orders.emplace_back();
    order.id = ++orders_;
    order.pool = pool;
    order.placed = now_;
    order.draw = scenario_.world.draw(pool, now_, scenario_.jobs[j].id);
    order.extra = extra;
    ++result_.jobs[j].calls;
    plan(now_ + order.draw.answer, What::kAnswer, j, order.id);
  }

  void answer(size_t j, Order& order) {
    const size_t pool = order.pool;
    const bool extra = order.extra;
    if (!scenario_.world.up(pool, now_)) {
      const Seconds took = order.draw.answer;
      drop(j, order.id);
      policy_.sold_out(view(j), pool, took, now_);
      if (!extra) choose_again(j, now_);
      return;
    }
    order.accepted = true;
    order.accepted_at = now_;
    order.price = scenario_.world.price(pool, now_);
    policy_.accepted(view(j), pool, order.draw.answer, now_);
    const Seconds starts = order.draw.never ? kNever : now_ + order.draw.start;
    const Seconds patience = now_ + policy_.patience(pool, now_);
    const Seconds back = scenario_.world.taken_back(pool, now_);
    if (back < std::min(starts, patience)) {
      plan(back, What::kLost, j, order.id);
    } else if (starts <= patience) {
      plan(starts, What::kRuns, j, order.id);
    } else {
      plan(patience, What::kGiveUp, j, order.id);
    }
    if (extra) return;
    if (const auto wait = policy_.hedge_after(view(j), pool, now_)) plan(now_ + *wait, What::kHedge, j, order.id);
  }

  void drop(size_t j, std::uint64_t id) {
    std::erase_if(states_[j].orders, [&](const Order& o) { return o.id == id; });
  }

  /// Ends an instance: it has cost so much.
  void end(size_t j, const Order& order, bool wasted) {
    const double rent = order.price * (now_ - order.accepted_at) / kHour;
    result_.jobs[j].rent += rent;
    if (wasted) result_.jobs[j].wasted += rent;
    drop(j, order.id);
  }

  void runs(size_t j, Order& order) {
    JobState& state = states_[j];
    JobResult& result = result_.jobs[j];
    order.running = true;
    order.running_at = now_;
    policy_.ran(view(j), order.pool, now_ - order.accepted_at, now_);
    if (!state.started) result.to_running = now_ - scenario_.jobs[j].arrival;
    state.started = true;
    const std::uint64_t winner = order.id;
    // Whoever worked until now stops at a checkpoint; whoever only boots was the loser of a race.
    if (state.worker != 0) state.done += now_ - state.worker_since;
    state.worker = 0;
    end_others(j, winner);
    start_work(j, *find(j, winner));
  }

  void end_others(size_t j, std::uint64_t winner) {
    std::vector<std::uint64_t> losers;
    for (const Order& o : states_[j].orders) {
      if (o.id != winner) losers.push_back(o.id);
    }
    for (const std::uint64_t id : losers) {
      const Order other = *find(j, id);
      if (!other.accepted) {
        drop(j, id);  // the call is under way: nothing is kept of it
        policy_.given_up(view(j), other.pool, now_);
        continue;
      }
      policy_.ended(view(j), other.pool, other.running, now_);
      end(j, other, !other.running);
    }
  }

  void start_work(size_t j, Order& order) {
    JobState& state = states_[j];
    state.worker = order.id;
    state.worker_since = now_;
    order.extra = false;
    const Seconds ready = now_ + (scenario_.jobs[j].work - state.done);
    const Seconds back = scenario_.world.taken_back(order.pool, now_);
    plan(std::min(ready, back), back < ready ? What::kLost : What::kDone, j, order.id);
    if (scenario_.moves && policy_.moves()) plan(now_ + kReconsiderEvery, What::kReconsider, j, order.id);
  }

  void give_up(size_t j, const Order& order) {
    const Order copy = order;
    policy_.never_ran(view(j), copy.pool, now_);
    end(j, copy, true);
    after_failure(j, copy);
  }

  void after_failure(size_t j, const Order& order) {
    // A hedge or a worker goes on.
    if (order.extra || !states_[j].orders.empty() || states_[j].worker != 0) return;
    choose_again(j, now_);
  }

  void lost(size_t j, const Order& order) {
    const Order copy = order;
    JobState& state = states_[j];
    ++result_.jobs[j].losses;
    if (state.worker == copy.id) {
      const Job& job = scenario_.jobs[j];
      const Seconds reached = state.done + (now_ - state.worker_since);
      const Seconds saved = std::max(state.done, std::floor(reached / job.checkpoint) * job.checkpoint);
      result_.jobs[j].redone += reached - saved;
      state.done = saved;
      state.worker = 0;
    }
    policy_.lost(view(j), copy.pool, copy.running, now_);
    end(j, copy, !copy.running);
    if (states_[j].orders.empty()) return choose_again(j, now_);
    // What was to be an addition is all that there is now.
    for (Order& o : states_[j].orders) o.extra = false;
  }

  void done(size_t j, const Order& order) {
    const Order copy = order;
    JobState& state = states_[j];
    if (state.worker != copy.id) return;
    const Job& job = scenario_.jobs[j];
    state.done = job.work;
    state.worker = 0;
    result_.jobs[j].delay = now_ - job.arrival - job.work;
    end_others(j, copy.id);
    policy_.ended(view(j), copy.pool, true, now_);
    end(j, copy, false);
    state.finished = true;
  }

  void hedge(size_t j, const Order& order) {
    if (order.running || states_[j].orders.size() > 1) return;
    const auto pool = policy_.hedge(view(j), order.pool, now_ - order.accepted_at, now_);
    if (pool) place(j, *pool, true);
  }

  void reconsider(size_t j, const Order& order) {
    if (states_[j].worker != order.id) return;
    const std::uint64_t id = order.id;
    if (states_[j].orders.size() == 1) {
      const auto pool = policy_.move(view(j), order.pool, order.price, now_ - order.running_at, now_);
      if (pool) place(j, *pool, true);
    }
    plan(now_ + kReconsiderEvery, What::kReconsider, j, id);
  }

  const Scenario& scenario_;
  Policy& policy_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<JobState> states_;
  RunResult result_;
  Seconds now_ = 0;
  std::uint64_t planned_ = 0;
  std::uint64_t orders_ = 0;
};

}  // namespace

RunResult simulate(const Scenario& scenario, Policy& policy) { return Simulation(scenario, policy).run(); }

}  // namespace spillway::placebench
