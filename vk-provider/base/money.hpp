// Money in whole micro-dollars. Never a double: prices are summed, compared with caps and written to a ledger.
//
// A value, any thread. A rate (price per hour) is a Money, too; the field's name says which.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::base {

class Money {
 public:
  constexpr Money() = default;
  static constexpr Money from_micros(std::int64_t micros) {
    Money m;
    m.micros_ = micros;
    return m;
  }
  /// Reads a decimal number of dollars: `2.39`, `0.000001`, `12`. Empty if it is negative, not a plain decimal number,
  /// finer than a micro-dollar, or larger than a billion dollars.
  static std::optional<Money> from_dollars(std::string_view text);

  constexpr std::int64_t micros() const { return micros_; }
  /// `2.39`, `0.000125`: as many digits as needed, at least two.
  std::string to_dollars() const;

  constexpr auto operator<=>(const Money&) const = default;
  constexpr Money operator+(Money other) const { return from_micros(micros_ + other.micros_); }
  constexpr Money operator-(Money other) const { return from_micros(micros_ - other.micros_); }
  constexpr Money operator*(std::int64_t factor) const { return from_micros(micros_ * factor); }

 private:
  std::int64_t micros_ = 0;
};

}  // namespace spillway::base
