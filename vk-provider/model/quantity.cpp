#include "vk-provider/model/quantity.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace spillway::model {
namespace {

using Wide = unsigned __int128;

/// value = digits * 10^power10 * 2^power2; `more` says that digits which did not fit stood behind a decimal point.
struct Parsed {
  bool negative = false;
  Wide digits = 0;
  int power10 = 0;
  int power2 = 0;
  bool more = false;
};

constexpr Wide kWideMax = ~static_cast<Wide>(0);
constexpr int kMaxPower10 = 60;  // no number but zero fits beyond it

std::optional<std::pair<int, int>> suffix_powers(std::string_view suffix) {
  if (suffix.empty()) return std::pair(0, 0);
  constexpr std::string_view kLetters = "KMGTPE";
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const size_t i = kLetters.find(suffix[0]);
    if (i == std::string_view::npos) return std::nullopt;
    return std::pair(0, 10 * static_cast<int>(i + 1));
  }
  if (suffix.size() == 1) {
    switch (suffix[0]) {
      case 'n': return std::pair(-9, 0);
      case 'u': return std::pair(-6, 0);
      case 'm': return std::pair(-3, 0);
      case 'k': return std::pair(3, 0);
      case 'K': return std::nullopt;  // only Ki
      default: break;
    }
    const size_t i = kLetters.find(suffix[0]);
    if (i == std::string_view::npos) return std::nullopt;
    return std::pair(3 * static_cast<int>(i + 1), 0);
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return std::nullopt;
  std::string_view number = suffix.substr(1);
  if (number.starts_with("+-")) return std::nullopt;
  if (number.front() == '+') number.remove_prefix(1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), exponent);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return std::pair(exponent, 0);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Parsed> parse(std::string_view text) {
  Parsed out;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    out.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  bool any = false;
  bool point = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) break;
    any = true;
    const auto digit = static_cast<unsigned>(c - '0');
    if (out.digits > (kWideMax - digit) / 10) {
      if (!point) return std::nullopt;
      out.more = out.more || digit != 0;
      continue;
    }
    out.digits = out.digits * 10 + digit;
    if (point) --out.power10;
  }
  if (!any) return std::nullopt;
  const auto powers = suffix_powers(text.substr(at));
  if (!powers) return std::nullopt;
  if (powers->first > std::numeric_limits<int>::max() / 2 || powers->first < std::numeric_limits<int>::min() / 2) {
    return std::nullopt;
  }
  out.power10 += powers->first;
  out.power2 = powers->second;
  return out;
}

bool multiply(Wide& value, Wide factor) {
  if (value > kWideMax / factor) return false;
  value *= factor;
  return true;
}

std::optional<std::int64_t> scaled(std::string_view text, int extra_power10) {
  const auto parsed = parse(text);
  if (!parsed) return std::nullopt;
  Wide value = parsed->digits;
  bool rest = parsed->more;
  if (value == 0 && !rest) return 0;
  int power = parsed->power10 + extra_power10;
  if (power > kMaxPower10) return std::nullopt;

  const auto divide = [&] {
    rest = rest || value % 10 != 0;
    value /= 10;
    ++power;
  };
  // Multiply before dividing, so that nothing is rounded early; digits that would overflow then cannot count.
  const Wide binary = static_cast<Wide>(1) << parsed->power2;
  while (value > kWideMax / binary && power < 0) divide();
  if (!multiply(value, binary)) return std::nullopt;
  for (; power > 0; --power) {
    if (!multiply(value, 10)) return std::nullopt;
  }
  while (power < 0 && value != 0) divide();
  if (rest) ++value;
  if (value > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  const auto magnitude = static_cast<std::int64_t>(value);
  return parsed->negative ? -magnitude : magnitude;
}

}  // namespace

std::optional<std::int64_t> quantity_value(std::string_view text) { return scaled(text, 0); }
std::optional<std::int64_t> quantity_milli(std::string_view text) { return scaled(text, 3); }

std::string quantity_text(std::int64_t value) {
  constexpr std::array<std::string_view, 7> kUnits{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  size_t unit = 0;
  for (; value != 0 && value % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return std::to_string(value) + std::string(kUnits.at(unit));
}

}  // namespace spillway::model
