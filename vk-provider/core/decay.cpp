#include "vk-provider/core/decay.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace spillway::core {
namespace {

// The table's grid: ticks of 2^20 ns (about a millisecond), 16 steps for each doubling, straight lines between. The
// error stays under 0.0003, and a look-up costs no exponential.
constexpr int kTickBits = 20;
constexpr int kFirstBit = 11;  // below 2^11 ticks (2 s) one straight line
constexpr int kDoublings = 22;
constexpr int kStepBits = 4;
constexpr int kSteps = 1 << kStepBits;
constexpr double kTicksPerHour = 3.6e12 / static_cast<double>(1 << kTickBits);

double exact_correlation(double h) {
  double sum = 0;
  for (const CorrelationPart& part : kCorrelationParts) sum += part.share * std::exp(-h / hours(part.life));
  return sum;
}

using Table = std::array<double, kDoublings * kSteps + 1>;

Table make_table() {
  Table table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t doubling = i / kSteps;
    const double mantissa = 1 + static_cast<double>(i % kSteps) / kSteps;
    table[i] = exact_correlation(std::ldexp(mantissa, kFirstBit + static_cast<int>(doubling)) / kTicksPerHour);
  }
  table.back() = 0;
  return table;
}

}  // namespace

base::Duration from_hours(double h) {
  constexpr double kMost = 1e6;  // a century: far from the end of 64 bits
  return base::Duration(static_cast<std::int64_t>(std::clamp(h, -kMost, kMost) * 3.6e12));
}

double correlation(base::Duration age) {
  static const Table table = make_table();
  if (age.count() <= 0) return 1;
  const auto ticks = static_cast<std::uint64_t>(age.count()) >> kTickBits;
  constexpr std::uint64_t kFirst = std::uint64_t{1} << kFirstBit;
  if (ticks < kFirst) return 1 + (table[0] - 1) * static_cast<double>(ticks) / static_cast<double>(kFirst);
  const auto bit = static_cast<int>(std::bit_width(ticks)) - 1;
  if (bit >= kFirstBit + kDoublings) return 0;
  const int shift = bit - kStepBits;
  const auto step = static_cast<size_t>((ticks >> shift) & (kSteps - 1));
  const size_t at = static_cast<size_t>(bit - kFirstBit) * kSteps + step;
  const std::uint64_t rest = ticks & ((std::uint64_t{1} << shift) - 1);
  const double part = static_cast<double>(rest) / static_cast<double>(std::uint64_t{1} << shift);
  return table[at] + (table[at + 1] - table[at]) * part;
}

double halved(base::Duration age, base::Duration half_life) {
  if (age.count() <= 0) return 1;
  return std::exp2(-static_cast<double>(age.count()) / static_cast<double>(half_life.count()));
}

double youth(base::Duration up) {
  const double h = std::max(hours(up), 1.0 / 60);
  return std::clamp(std::pow(h, -0.55), 0.3, 3.0);
}

}  // namespace spillway::core
