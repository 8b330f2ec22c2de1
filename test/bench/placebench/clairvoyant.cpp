// Knows when every pool will have stock and when it takes its instances back; not which machine will never start.
//
// One step ahead: the pool and the moment to start with the least cost, what remains after a preemption counted at the
// usual rate. A practical best, not a bound: that is least_cost.
#include <algorithm>
#include <cmath>
#include <limits>

#include "test/bench/placebench/policy.hpp"

namespace spillway::placebench {
namespace {

constexpr double kHour = 3600;

class Clairvoyant final : public Policy {
 public:
  explicit Clairvoyant(const World& world) : Policy(world) {
    usual_ = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < world.size(); ++i) usual_ = std::min(usual_, world.price(i, 0));
    usual_ *= 1.05;
  }

  Choice choose(const JobView& job, Seconds now) override {
    const Plan plan = best(job, now);
    if (plan.start > now + 6) return WaitUntil{plan.start - 5};
    return TryPool{plan.pool};
  }
  Seconds patience(size_t pool, Seconds /*now*/) const override {
    const Pool& p = world_.pools()[pool];
    return std::max(180.0, 2 * p.start_median * std::exp(1.645 * p.start_sigma));
  }
  bool moves() const override { return true; }
  std::optional<size_t> move(const JobView& job, size_t pool, double price, Seconds /*ran*/, Seconds now) override {
    const Seconds back = world_.taken_back(pool, now);
    if (back - now < job.left) return std::nullopt;  // it will be moved then
    const Plan plan = best(job, now);
    if (plan.pool == pool || plan.start > now + 6) return std::nullopt;
    const double stay = price * job.left / kHour;
    const double start = world_.pools()[plan.pool].start_median * 1.08;
    return plan.cost + price * start / kHour < stay ? std::optional(plan.pool) : std::nullopt;
  }

 private:
  struct Plan {
    size_t pool = 0;
    Seconds start = 0;
    double cost = 0;
  };

  Plan best(const JobView& job, Seconds now) const {
    Plan out;
    out.cost = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < world_.size(); ++i) {
      const Seconds start = world_.next_up(i, now + 4);
      if (!std::isfinite(start)) continue;
      const double cost = cost_of(job, i, start, now);
      if (cost < out.cost) out = {i, start, cost};
    }
    return out;
  }

  double cost_of(const JobView& job, size_t pool, Seconds start, Seconds now) const {
    const Pool& p = world_.pools()[pool];
    const Seconds boots = p.start_median * std::exp(p.start_sigma * p.start_sigma / 2);
    const double price = world_.price(pool, start);
    const Seconds runs = start + boots;
    const Seconds back = world_.taken_back(pool, start);
    double cost = job.value * (runs - now) / kHour;
    cost += p.never_ready * patience(pool, now) * (price + job.value) / kHour;
    if (back >= runs + job.left) return cost + price * (boots + job.left) / kHour;
    // Taken back on the way: what was saved is done, the rest goes on elsewhere.
    const Seconds ran = std::max(0.0, back - runs);
    const Seconds saved =
        std::min(job.left, std::floor((job.has_run + ran) / job.checkpoint) * job.checkpoint - job.has_run);
    const Seconds lost = ran - std::max(0.0, saved);
    cost += price * std::max(0.0, back - start) / kHour;
    cost += job.value * (lost + boots) / kHour;
    return cost + usual_ * (job.left - std::max(0.0, saved) + boots) / kHour;
  }

  double usual_ = 1;  // dollars per hour
};

}  // namespace

std::unique_ptr<Policy> make_clairvoyant(const World& world) { return std::make_unique<Clairvoyant>(world); }

}  // namespace spillway::placebench
