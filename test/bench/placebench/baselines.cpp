// What others do, as far as their sources tell. docs/placement.md and README.md name what is copied and what is
// guessed.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "test/bench/placebench/draw.hpp"
#include "test/bench/placebench/policy.hpp"

namespace spillway::placebench {
namespace {

// How long they wait for Running. Their sources say 10 to 20 minutes; README.md says why it is the least of that.
constexpr Seconds kPatience = 600;

bool is_spot(const World& world, size_t pool) {
  return world.pools()[pool].offer.capacity_type == model::CapacityType::kSpot;
}

/// The cheapest first, as listed now.
std::vector<size_t> by_price(const World& world, Seconds now) {
  std::vector<size_t> order(world.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(world.price(i, now), i); });
  return order;
}

/// k8s-runpod-kubelet: the five cheapest, in turns, every 30 seconds; no memory.
class CheapestFive final : public Policy {
 public:
  using Policy::Policy;
  Choice choose(const JobView& job, Seconds now) override {
    size_t& next = next_[job.id];
    const std::vector<size_t> order = by_price(world_, now);
    const size_t few = std::min<size_t>(5, order.size());
    if (next >= few) {
      next = 0;
      return WaitUntil{now + 30};
    }
    return TryPool{order[next++]};
  }
  void accepted(const JobView& job, size_t /*pool*/, Seconds /*took*/, Seconds /*now*/) override { next_[job.id] = 0; }
  Seconds patience(size_t /*pool*/, Seconds /*now*/) const override { return kPatience; }

 private:
  std::map<std::uint64_t, size_t> next_;
};

class RandomChoice final : public Policy {
 public:
  RandomChoice(const World& world, std::uint64_t seed) : Policy(world), seed_(seed) {}
  Choice choose(const JobView& job, Seconds /*now*/) override {
    return TryPool{static_cast<size_t>(mixed_all(seed_, job.id, count_++) % world_.size())};
  }
  Seconds patience(size_t /*pool*/, Seconds /*now*/) const override { return kPatience; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

/// SkyPilot: by price; what failed is left out until everything has failed, then all over again after a minute. After a
/// preemption the region is left out once.
class SkyPilot final : public Policy {
 public:
  using Policy::Policy;
  Choice choose(const JobView& job, Seconds now) override {
    std::set<size_t>& blocked = blocked_[job.id];
    for (const size_t pool : by_price(world_, now)) {
      if (!blocked.contains(pool)) return TryPool{pool};
    }
    blocked.clear();
    return WaitUntil{now + 60};
  }
  void accepted(const JobView& job, size_t /*pool*/, Seconds /*took*/, Seconds /*now*/) override {
    blocked_.erase(job.id);
  }
  void sold_out(const JobView& job, size_t pool, Seconds /*took*/, Seconds /*now*/) override {
    blocked_[job.id].insert(pool);
  }
  void never_ran(const JobView& job, size_t pool, Seconds /*now*/) override { blocked_[job.id].insert(pool); }
  void lost(const JobView& job, size_t pool, bool /*had_run*/, Seconds /*now*/) override {
    const std::string region = region_of(pool);
    for (size_t i = 0; i < world_.size(); ++i) {
      if (region_of(i) == region && is_spot(world_, i)) blocked_[job.id].insert(i);
    }
  }
  Seconds patience(size_t /*pool*/, Seconds /*now*/) const override { return kPatience; }

 private:
  std::string region_of(size_t pool) const {
    std::string zone = world_.pools()[pool].offer.region;
    if (!zone.empty() && zone.back() >= 'a' && zone.back() <= 'z') zone.pop_back();
    return zone;
  }

  std::map<std::uint64_t, std::set<size_t>> blocked_;
};

/// dstack: at most 25 by price, one after the other, then again after 15 s, 30 s, 1, 2, 5 and 10 minutes; no memory.
class Dstack final : public Policy {
 public:
  using Policy::Policy;
  Choice choose(const JobView& job, Seconds now) override {
    constexpr std::array<double, 6> kLadder{15, 30, 60, 120, 300, 600};
    State& state = states_[job.id];
    const std::vector<size_t> order = by_price(world_, now);
    if (state.next < std::min<size_t>(25, order.size())) return TryPool{order[state.next++]};
    state.next = 0;
    const double wait = kLadder.at(std::min(state.rounds, kLadder.size() - 1));
    ++state.rounds;
    return WaitUntil{now + wait};
  }
  void accepted(const JobView& job, size_t /*pool*/, Seconds /*took*/, Seconds /*now*/) override {
    states_[job.id] = {};
  }
  Seconds patience(size_t /*pool*/, Seconds /*now*/) const override { return kPatience; }

 private:
  struct State {
    size_t next = 0;
    size_t rounds = 0;
  };
  std::map<std::uint64_t, State> states_;
};

/// Karpenter with AWS: what was sold out is left out for three minutes, for all pods; of the rest spot first, of that
/// the half with the deepest capacity (guessed: the share of creates that succeeded lately), of that the cheapest. A
/// pod on demand is moved to spot when there is some.
class Karpenter final : public Policy {
 public:
  explicit Karpenter(const World& world) : Policy(world), out_until_(world.size(), 0), score_(world.size(), 0.5) {}

  Choice choose(const JobView& /*job*/, Seconds now) override {
    if (const auto pool = best(now, true)) return TryPool{*pool};
    if (const auto pool = best(now, false)) return TryPool{*pool};
    return WaitUntil{now + 30};
  }
  void accepted(const JobView& /*job*/, size_t pool, Seconds /*took*/, Seconds /*now*/) override { learn(pool, true); }
  void sold_out(const JobView& /*job*/, size_t pool, Seconds /*took*/, Seconds now) override {
    out_until_[pool] = now + 180;
    learn(pool, false);
  }
  void never_ran(const JobView& /*job*/, size_t pool, Seconds now) override { out_until_[pool] = now + 180; }
  void lost(const JobView& /*job*/, size_t pool, bool /*had_run*/, Seconds now) override {
    out_until_[pool] = now + 180;
    learn(pool, false);
  }
  Seconds patience(size_t /*pool*/, Seconds /*now*/) const override { return kPatience; }
  bool moves() const override { return true; }
  std::optional<size_t> move(const JobView& /*job*/, size_t pool, double price, Seconds /*ran*/, Seconds now) override {
    if (is_spot(world_, pool)) return std::nullopt;
    const auto there = best(now, true);
    return there && world_.price(*there, now) < price ? there : std::nullopt;
  }

 private:
  void learn(size_t pool, bool up) { score_[pool] += 0.2 * ((up ? 1.0 : 0.0) - score_[pool]); }

  std::optional<size_t> best(Seconds now, bool spot) const {
    std::vector<size_t> open;
    for (const size_t i : by_price(world_, now)) {
      if (is_spot(world_, i) == spot && out_until_[i] <= now) open.push_back(i);
    }
    if (open.empty()) return std::nullopt;
    std::vector<size_t> deep = open;
    std::ranges::sort(deep, {}, [&](size_t i) { return std::tuple(-score_[i], world_.price(i, now), i); });
    deep.resize((deep.size() + 1) / 2);
    return *std::ranges::min_element(deep, {}, [&](size_t i) { return world_.price(i, now); });
  }

  std::vector<Seconds> out_until_;
  std::vector<double> score_;
};

}  // namespace

std::unique_ptr<Policy> make_baseline(const std::string& name, const World& world, std::uint64_t seed) {
  if (name == "cheapest5") return std::make_unique<CheapestFive>(world);
  if (name == "random") return std::make_unique<RandomChoice>(world, seed);
  if (name == "skypilot") return std::make_unique<SkyPilot>(world);
  if (name == "dstack") return std::make_unique<Dstack>(world);
  if (name == "karpenter") return std::make_unique<Karpenter>(world);
  return nullptr;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"cheapest5", "random", "skypilot",    "dstack",
                                              "karpenter", "index",  "index+hedge", "clairvoyant"};
  return names;
}

std::unique_ptr<Policy> make_policy(const std::string& name, const World& world, std::uint64_t seed) {
  if (name == "index") return make_index_policy(world, false);
  if (name == "index+hedge") return make_index_policy(world, true);
  if (name == "clairvoyant") return make_clairvoyant(world);
  return make_baseline(name, world, seed);
}

}  // namespace spillway::placebench
