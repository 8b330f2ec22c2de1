#include "vk-provider/base/clock.hpp"

#include <ctime>

namespace spillway::base {
namespace {

using std::chrono::microseconds;

Duration read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec);
}

/// Writes `value` with leading zeros into text[at, at + digits).
void put_number(std::string& text, size_t at, size_t digits, std::int64_t value) {
  for (size_t i = digits; i-- > 0; value /= 10) text[at + i] = static_cast<char>('0' + value % 10);
}

/// Times stand many times in every status: a format string would be read anew for each.
std::string date_and_time(WallTime t, std::string text) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss<microseconds> time(t - day);
  put_number(text, 0, 4, static_cast<int>(date.year()));
  put_number(text, 5, 2, static_cast<unsigned>(date.month()));
  put_number(text, 8, 2, static_cast<unsigned>(date.day()));
  put_number(text, 11, 2, time.hours().count());
  put_number(text, 14, 2, time.minutes().count());
  put_number(text, 17, 2, time.seconds().count());
  if (text[19] == '.') put_number(text, 20, 6, time.subseconds().count());
  return text;
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

std::string to_rfc3339(WallTime t) { return date_and_time(t, "0000-00-00T00:00:00Z"); }

std::string to_rfc3339_micro(WallTime t) { return date_and_time(t, "0000-00-00T00:00:00.000000Z"); }

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
