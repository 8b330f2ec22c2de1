#include "test/bench/placebench/world.hpp"

#include <cmath>
#include <limits>

#include "test/bench/placebench/draw.hpp"

namespace spillway::placebench {

Seconds World::next_up(size_t pool, Seconds t) const {
  const Pool& p = pools_[pool];
  return p.stock.next_up(t + p.offset) - p.offset;
}

Seconds World::taken_back(size_t pool, Seconds t) const {
  const Pool& p = pools_[pool];
  if (!p.taken_back) return std::numeric_limits<Seconds>::infinity();
  return p.stock.next_down(t + p.offset) - p.offset;
}

double World::price(size_t pool, Seconds t) const {
  const Pool& p = pools_[pool];
  return static_cast<double>(p.offer.price_per_hour->micros()) / 1e6 * p.price.at(t + p.price_offset);
}

Seconds World::next_price(size_t pool, Seconds t) const {
  const Pool& p = pools_[pool];
  return p.price.next_change(t + p.price_offset) - p.price_offset;
}

Draw World::draw(size_t pool, Seconds t, std::uint64_t pod) const {
  const Pool& p = pools_[pool];
  const auto minute = static_cast<std::uint64_t>(t / 60);
  const std::uint64_t bits = mixed_all(seed_, pool, pod, minute);
  Draw out;
  out.answer = 1.5 + 4.5 * unit(mixed(bits ^ 1U));
  out.start = p.start_median * std::exp(p.start_sigma * normal(bits ^ 2U));
  out.never = unit(mixed(bits ^ 3U)) < p.never_ready;
  return out;
}

std::vector<model::Offer> World::offers(Seconds t) const {
  std::vector<model::Offer> out;
  for (size_t i = 0; i < pools_.size(); ++i) {
    model::Offer& offer = out.emplace_back(pools_[i].offer);
    offer.price_per_hour = base::Money::from_micros(std::llround(price(i, t) * 1e6));
  }
  return out;
}

}  // namespace spillway::placebench
