#include "vk-provider/base/money.hpp"

#include <fmt/format.h>

namespace spillway::base {
namespace {
constexpr std::int64_t kMicrosPerDollar = 1'000'000;
constexpr std::int64_t kMaxDollars = 1'000'000'000;
}  // namespace

std::optional<Money> Money::from_dollars(std::string_view text) {
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction = dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  if (whole.empty() || (dot != std::string_view::npos && fraction.empty())) return std::nullopt;

  std::int64_t dollars = 0;
  for (const char c : whole) {
    if (c < '0' || c > '9') return std::nullopt;
    dollars = dollars * 10 + (c - '0');
    if (dollars > kMaxDollars) return std::nullopt;
  }
  std::int64_t micros = 0;
  std::int64_t scale = kMicrosPerDollar / 10;
  for (const char c : fraction) {
    if (c < '0' || c > '9') return std::nullopt;
    if (scale == 0) {
      if (c != '0') return std::nullopt;
      continue;
    }
    micros += (c - '0') * scale;
    scale /= 10;
  }
  return from_micros(dollars * kMicrosPerDollar + micros);
}

std::string Money::to_dollars() const {
  const std::int64_t absolute = micros_ < 0 ? -micros_ : micros_;
  std::string text =
      fmt::format("{}{}.{:06}", micros_ < 0 ? "-" : "", absolute / kMicrosPerDollar, absolute % kMicrosPerDollar);
  while (text.ends_with('0') && text[text.size() - 3] != '.') text.pop_back();
  return text;
}

}  // namespace spillway::base
