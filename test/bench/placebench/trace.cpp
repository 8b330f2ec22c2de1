#include "test/bench/placebench/trace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "test/bench/placebench/draw.hpp"

namespace spillway::placebench {
namespace {
constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();

Seconds wrapped(Seconds t, Seconds length) {
  const Seconds rest = std::fmod(t, length);
  return rest < 0 ? rest + length : rest;
}
}  // namespace

double normal(std::uint64_t bits) {
  const double radius = std::sqrt(-2 * std::log(unit(mixed(bits))));
  return radius * std::cos(2 * std::numbers::pi * unit(mixed(bits + 1)));
}

bool Trace::up(Seconds t) const {
  if (changes_.empty() || length_ <= 0) return up_first_;
  const auto it = std::ranges::upper_bound(changes_, wrapped(t, length_));
  return state(static_cast<size_t>(it - changes_.begin()));
}

Seconds Trace::next(Seconds t, bool wanted) const {
  if (up(t) == wanted) return t;
  if (changes_.empty() || length_ <= 0) return kNever;
  const Seconds here = wrapped(t, length_);
  const auto it = std::ranges::upper_bound(changes_, here);
  if (it != changes_.end()) return t + (*it - here);
  // Around the end; the last state goes on if the first one is the same.
  return t + (length_ - here) + (up_first_ == wanted ? 0 : changes_.front());
}

double Trace::availability() const {
  if (changes_.empty() || length_ <= 0) return up_first_ ? 1 : 0;
  Seconds up_for = 0;
  Seconds from = 0;
  for (size_t i = 0; i <= changes_.size(); ++i) {
    const Seconds to = i < changes_.size() ? changes_[i] : length_;
    if (state(i)) up_for += to - from;
    from = to;
  }
  return up_for / length_;
}

double PricePath::at(Seconds t) const {
  if (times_.empty()) return 1;
  const auto it = std::ranges::upper_bound(times_, wrapped(t, length_));
  return factors_[static_cast<size_t>(std::max<std::ptrdiff_t>(it - times_.begin() - 1, 0))];
}

Seconds PricePath::next_change(Seconds t) const {
  if (times_.size() < 2) return kNever;
  const Seconds here = wrapped(t, length_);
  const auto it = std::ranges::upper_bound(times_, here);
  return it != times_.end() ? t + (*it - here) : t + (length_ - here);
}

}  // namespace spillway::placebench
