#include "vk-provider/base/duration_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace spillway::base {
namespace {

struct Unit {
  std::string_view name;
  Duration length;
};
constexpr std::array<Unit, 4> kUnits{{{"h", std::chrono::hours(1)},
                                      {"m", std::chrono::minutes(1)},
                                      {"s", std::chrono::seconds(1)},
                                      {"ms", std::chrono::milliseconds(1)}}};
// Longer than anything sensible and far from the end of 64 bits of nanoseconds.
constexpr Duration kMaxDuration = std::chrono::hours(24 * 365);

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Duration sum{0};
  while (!text.empty()) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || count < 0 || text.front() == '-') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
    const auto unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end() || count > kMaxDuration / unit->length) return std::nullopt;
    sum += unit->length * count;
    if (sum > kMaxDuration) return std::nullopt;
    text.remove_prefix(name.size());
  }
  return sum;
}

std::string format_duration(Duration d) {
  std::string out;
  for (const Unit& unit : kUnits) {
    const auto count = d / unit.length;
    if (count == 0) continue;
    out += std::to_string(count) + std::string(unit.name);
    d -= unit.length * count;
  }
  return out.empty() ? "0s" : out;
}

}  // namespace spillway::base
