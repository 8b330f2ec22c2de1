#include "providers/docker/status_text.hpp"

#include <array>
#include <charconv>
#include <string>

namespace spillway::providers::docker {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Date has whole seconds, and the words were made a moment before it.
constexpr base::Duration kTolerance = seconds(2);

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

/// The words of docker/go-units HumanDuration. From an hour on it rounds to the nearest hour before it divides.
bool parse_age(std::string_view text, StatusText& out) {
  const auto set = [&out](base::Duration least, base::Duration below) {
    out.at_least = least;
    out.less_than = below;
    return true;
  };
  if (text == "Less than a second") return set(seconds(0), seconds(1));
  if (text == "About a minute") return set(minutes(1), minutes(2));
  if (text == "About an hour") return set(hours(1) - minutes(1), hours(2));
  const auto number = take_number(text);
  if (!number || *number < 1) return false;
  const int n = *number;
  if (text == " second" || text == " seconds") return set(seconds(n), seconds(n + 1));
  if (text == " minutes") return set(minutes(n), minutes(n + 1));
  if (text == " hours") return set(hours(n - 1), hours(n + 1));
  if (text == " days") return set(days(n) - hours(1), days(n + 1) + hours(1));
  if (text == " weeks") return set(days(7 * n) - hours(1), days(7 * (n + 1)) + hours(1));
  if (text == " months") return set(days(30 * n) - hours(1), days(30 * (n + 1)) + hours(1));
  if (text == " years") return set(days(365 * n) - hours(1), days(365 * (n + 1)) + hours(1));
  return false;
}

}  // namespace

std::optional<StatusText> parse_status(std::string_view text) {
  StatusText status;
  if (text.starts_with("Up ")) {
    text.remove_prefix(3);
    status.running = true;
    // A note follows for a paused container and for one with a health check: "Up 5 minutes (healthy)".
    const size_t note = text.find(" (");
    if (!parse_age(text.substr(0, note), status)) return std::nullopt;
    return status;
  }
  constexpr std::string_view kExited = "Exited (";
  constexpr std::string_view kAgo = " ago";
  if (!text.starts_with(kExited) || !text.ends_with(kAgo)) return std::nullopt;
  text.remove_prefix(kExited.size());
  text.remove_suffix(kAgo.size());
  status.exit_code = take_number(text);
  if (!status.exit_code || !text.starts_with(") ")) return std::nullopt;
  text.remove_prefix(2);
  if (!parse_age(text, status)) return std::nullopt;
  return status;
}

bool agrees(const StatusText& status, base::WallTime since, base::WallTime now) {
  const base::Duration age = now - since;
  return age + kTolerance >= status.at_least && age - kTolerance < status.less_than;
}

std::optional<base::WallTime> parse_http_date(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  // "Sun, 29 Nov 2026 21:34:53 GMT" is of one length always.
  if (text.size() != 29 || text.substr(25) != " GMT" || text[19] != ':' || text[22] != ':') return std::nullopt;
  const auto number = [&text](size_t begin, size_t size) -> int {
    std::string_view digits = text.substr(begin, size);
    const auto value = take_number(digits);
    return value && digits.empty() ? *value : -1;
  };
  const std::string_view month_name = text.substr(8, 3);
  unsigned month = 0;
  for (unsigned i = 0; i < kMonths.size(); ++i) {
    if (kMonths[i] == month_name) month = i + 1;
  }
  const int day = number(5, 2);
  const int year = number(12, 4);
  const int hour = number(17, 2);
  const int minute = number(20, 2);
  const int second = number(23, 2);
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(static_cast<unsigned>(day < 0 ? 0 : day)));
  if (month == 0 || year < 0 || hour < 0 || minute < 0 || second < 0 || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
}

}  // namespace spillway::providers::docker
