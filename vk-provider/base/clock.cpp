#include "vk-provider/base/clock.hpp"

#include <ctime>

#include <fmt/format.h>

namespace spillway::base {
namespace {

using std::chrono::microseconds;

Duration read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec);
}

struct Civil {
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<microseconds> time;
};

Civil civil(WallTime t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  return {std::chrono::year_month_day(day), std::chrono::hh_mm_ss<microseconds>(t - day)};
}

std::string date_and_time(const Civil& c) {
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(c.date.year()),
                     static_cast<unsigned>(c.date.month()), static_cast<unsigned>(c.date.day()), c.time.hours().count(),
                     c.time.minutes().count(), c.time.seconds().count());
}

/// Reads exactly `digits` digits at `pos` and moves it on; -1 if there are not so many.
int take_number(std::string_view text, size_t& pos, size_t digits) {
  if (pos + digits > text.size()) return -1;
  int value = 0;
  for (size_t i = 0; i < digits; ++i, ++pos) {
    const char c = text[pos];
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

bool take(std::string_view text, size_t& pos, char wanted) {
  if (pos >= text.size() || text[pos] != wanted) return false;
  ++pos;
  return true;
}

}  // namespace

TimePoint SystemClock::now() const { return TimePoint(read(CLOCK_MONOTONIC)); }

WallTime SystemClock::wall() const { return WallTime(std::chrono::duration_cast<microseconds>(read(CLOCK_REALTIME))); }

std::string to_rfc3339(WallTime t) { return date_and_time(civil(t)) + "Z"; }

std::string to_rfc3339_micro(WallTime t) {
  const Civil c = civil(t);
  return fmt::format("{}.{:06}Z", date_and_time(c), c.time.subseconds().count());
}

std::optional<WallTime> from_rfc3339(std::string_view text) {
  size_t pos = 0;
  const int year = take_number(text, pos, 4);
  if (year < 0 || !take(text, pos, '-')) return std::nullopt;
  const int month = take_number(text, pos, 2);
  if (month < 0 || !take(text, pos, '-')) return std::nullopt;
  const int day = take_number(text, pos, 2);
  if (day < 0 || (!take(text, pos, 'T') && !take(text, pos, 't'))) return std::nullopt;
  const int hour = take_number(text, pos, 2);
  if (hour < 0 || hour > 23 || !take(text, pos, ':')) return std::nullopt;
  const int minute = take_number(text, pos, 2);
  if (minute < 0 || minute > 59 || !take(text, pos, ':')) return std::nullopt;
  const int second = take_number(text, pos, 2);
  if (second < 0 || second > 60) return std::nullopt;

  std::int64_t micros = 0;
  if (take(text, pos, '.')) {
    std::int64_t scale = 100000;
    const size_t first = pos;
    for (; pos < text.size() && text[pos] >= '0' && text[pos] <= '9'; ++pos, scale /= 10)
      micros += (text[pos] - '0') * scale;
    if (pos == first) return std::nullopt;
  }

  std::chrono::minutes offset{0};
  if (!take(text, pos, 'Z') && !take(text, pos, 'z')) {
    const bool minus = pos < text.size() && text[pos] == '-';
    if (!minus && (pos >= text.size() || text[pos] != '+')) return std::nullopt;
    ++pos;
    const int oh = take_number(text, pos, 2);
    if (oh < 0 || !take(text, pos, ':')) return std::nullopt;
    const int om = take_number(text, pos, 2);
    if (om < 0) return std::nullopt;
    offset = std::chrono::hours(oh) + std::chrono::minutes(om);
    if (minus) offset = -offset;
  }
  if (pos != text.size()) return std::nullopt;

  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + microseconds(micros) - offset;
}

}  // namespace spillway::base
