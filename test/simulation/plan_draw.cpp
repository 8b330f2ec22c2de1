// A plan from a seed.
#include <algorithm>
#include <numeric>

#include "test/simulation/plan.hpp"
#include "test/simulation/randomness.hpp"
#include "test/simulation/shapes.hpp"

namespace spillway::simulation {
namespace {

CloudTraits draw_cloud(Stream& dice) {
  CloudTraits cloud;
  cloud.boot = dice.chance(30) ? 0 : dice.between(100, 6'000);
  cloud.unique = dice.chance(50) ? 1 : 0;
  cloud.keeps = dice.chance(60) ? 1 : 0;
  cloud.settle = dice.between(3'000, 15'000);
  // What a listing leaves out must turn up within the settle time.
  cloud.lag = dice.chance(40) ? dice.between(0, cloud.settle - 2'000) : 0;
  cloud.latency = dice.between(2, 400);
  if (dice.chance(30)) {
    cloud.step = dice.between(5'000, 60'000);
    cloud.permille = dice.between(10, 300);
  }
  if (dice.chance(20)) cloud.stock = dice.between(1, 12);
  return cloud;
}

Step draw_step(Stream& dice, const Verb& verb, std::int64_t from, std::int64_t to) {
  Step step;
  step.at = dice.between(from, to);
  step.verb = &verb;
  for (size_t i = 0; i < verb.fields.size(); ++i) {
    step.args.at(i) = dice.between(verb.fields[i].low, verb.fields[i].high);
  }
  return step;
}

std::int64_t draw_weighted(Stream& dice, const std::vector<int>& weights) {
  std::int64_t left = dice.between(0, std::accumulate(weights.begin(), weights.end(), 0) - 1);
  std::int64_t index = 0;
  while ((left -= weights.at(static_cast<size_t>(index))) >= 0) ++index;
  return index;
}

/// Each plan leaves some things out and has much of others: combinations that an even mixture never shows.
template <class T>
std::vector<int> draw_mixture(Stream& dice, const std::vector<T>& all) {
  std::vector<int> weights;
  for (const T& t : all) {
    const std::int64_t roll = dice.between(0, 9);
    weights.push_back(roll < 3 ? 0 : roll < 8 ? t.weight : 6 * t.weight);
  }
  if (std::accumulate(weights.begin(), weights.end(), 0) > 0) return weights;
  std::ranges::transform(all, weights.begin(), &T::weight);
  return weights;
}

}  // namespace

Plan draw_plan(std::uint64_t seed) {
  Stream dice(seed, "plan");
  Plan plan;
  plan.seed = seed;
  plan.settings.nodes = dice.chance(25) ? 2 : 1;
  plan.settings.length = dice.between(60'000, 240'000);
  plan.settings.latency = dice.between(1, 60);
  // About the price of what is bought most.
  plan.settings.standby = dice.chance(40) ? 1 : 0;
  if (dice.chance(60)) plan.settings.cap = dice.between(300'000, 1'500'000);
  // Room for a few of them. A price that walks may pass any limit; half of these worlds have none of that.
  Stream money(seed, "budget");
  if (money.chance(40)) plan.settings.budget = money.between(1'000'000, 8'000'000);
  const bool honest = plan.settings.budget > 0 && money.chance(60);
  const std::int64_t clouds = dice.between(1, 3);
  for (std::int64_t i = 0; i < clouds; ++i) {
    plan.clouds.push_back(draw_cloud(dice));
    if (honest) plan.clouds.back().step = plan.clouds.back().permille = 0;
  }

  const Verb& owner = *find_verb("owner");
  const std::vector<int> shape_weights = draw_mixture(dice, shapes());
  const std::int64_t owners = dice.between(4, 12);
  // In some clusters all controllers are of one kind.
  const bool one_kind = dice.chance(30);
  const std::int64_t kind = dice.between(owner.fields[0].low, owner.fields[0].high);
  for (std::int64_t i = 0; i < owners; ++i) {
    Step step = draw_step(dice, owner, 0, plan.settings.length / 2);
    if (one_kind) step.args[0] = kind;
    step.args[1] = draw_weighted(dice, shape_weights);
    plan.steps.push_back(step);
  }
  const std::vector<int> verb_weights = draw_mixture(dice, verbs());
  const std::int64_t steps = dice.between(5, 60);
  for (std::int64_t i = 0; i < steps; ++i) {
    const Verb& verb = verbs().at(static_cast<size_t>(draw_weighted(dice, verb_weights)));
    plan.steps.push_back(draw_step(dice, verb, 0, plan.settings.length));
  }
  if (honest) std::erase_if(plan.steps, [](const Step& step) { return step.verb == find_verb("overcharge"); });
  std::ranges::sort(plan.steps, {}, &Step::at);
  return plan;
}

Plan draw_thin_plan(std::uint64_t seed) {
  Plan plan = draw_plan(seed);
  plan.settings.length = std::min<std::int64_t>(plan.settings.length, 90'000);
  for (Step& step : plan.steps) {
    step.at = step.at * 90'000 / 240'000;
    if (step.verb == find_verb("owner")) step.args[2] = 1 + step.args[2] % 3;
  }
  return plan;
}

}  // namespace spillway::simulation
