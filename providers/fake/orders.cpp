#include "providers/fake/orders.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>

#include "vk-provider/model/labels.hpp"

namespace spillway::providers::fake {
namespace {

using base::Duration;
using namespace std::chrono_literals;

template <class Int>
bool parse_int(std::string_view text, Int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// Each setter returns what was expected, or nothing if the value is good.
using Setter = std::string (*)(PodOrders&, std::string_view);
struct Key {
  std::string_view name;
  Setter set;
};

template <auto Member>
std::string set_duration(PodOrders& orders, std::string_view text) {
  const auto d = parse_duration(text);
  if (!d) return "a duration such as 500ms, 2s or 5m";
  orders.*Member = *d;
  return {};
}

template <auto Member>
std::string set_message(PodOrders& orders, std::string_view text) {
  if (text.empty()) return "the text of the error";
  orders.*Member = std::string(text);
  return {};
}

std::string read_exit_codes(std::vector<int>& codes, std::string_view text) {
  constexpr std::string_view kExpected = "an exit code from 0 to 255, or several with commas between them";
  codes.clear();
  while (true) {
    const size_t comma = text.find(',');
    int code = -1;
    if (!parse_int(text.substr(0, comma), code) || code < 0 || code > 255) return std::string(kExpected);
    codes.push_back(code);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

std::string set_exit_codes(PodOrders& orders, std::string_view text) {
  return read_exit_codes(orders.exit_codes, text);
}

std::string set_oom(PodOrders& orders, std::string_view text) {
  if (text != "true" && text != "false") return "true or false";
  orders.oom = text == "true";
  return {};
}

std::string set_fail_create(PodOrders& orders, std::string_view text) {
  orders.fail_create = parse_error_kind(text);
  return orders.fail_create ? "" : "an error kind such as no_capacity, quota, invalid or unavailable";
}

template <auto Member, int kMost>
std::string set_number(PodOrders& orders, std::string_view text) {
  int number = -1;
  if (!parse_int(text, number) || number < 0 || number > kMost) {
    return "a whole number from 0 to " + std::to_string(kMost);
  }
  orders.*Member = number;
  return {};
}

constexpr std::array kKeys = {
    Key{"boot-time", set_duration<&PodOrders::boot_time>},
    Key{"run-for", set_duration<&PodOrders::run_for>},
    Key{"exit-code", set_exit_codes},
    Key{"oom", set_oom},
    Key{"start-error", set_message<&PodOrders::start_error>},
    Key{"image-error", set_message<&PodOrders::image_error>},
    Key{"fail-boot", set_message<&PodOrders::fail_boot>},
    Key{"fail-create", set_fail_create},
    Key{"stop-time", set_duration<&PodOrders::stop_time>},
    Key{"preempt-after", set_duration<&PodOrders::preempt_after>},
    Key{"log-lines", set_number<&PodOrders::log_lines, 1'000'000'000>},
    Key{"log-width", set_number<&PodOrders::log_width, 4096>},
    Key{"log-every", set_duration<&PodOrders::log_every>},
};

/// Orders of one container: `run-for.NAME` and `exit-code.NAME`. Empty if the key is none of them.
std::optional<std::string> set_for_container(PodOrders& orders, std::string_view name, std::string_view value) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view key = name.substr(0, dot);
  const std::string container(name.substr(dot + 1));
  if (key == "exit-code") return read_exit_codes(orders.containers[container].exit_codes, value);
  if (key != "run-for") return std::nullopt;
  const auto d = parse_duration(value);
  if (!d) return "a duration such as 500ms, 2s or 5m";
  orders.containers[container].run_for = *d;
  return std::string();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string fault_of(PodOrders& orders, const std::string& key, const std::string& value) {
  const std::string_view name = std::string_view(key).substr(model::kFakePrefix.size());
  std::optional<std::string> expected = set_for_container(orders, name, value);
  for (const Key& k : kKeys) {
    if (k.name == name) expected = k.set(orders, value);
  }
  if (expected && expected->empty()) return {};
  if (expected) {
    return std::string("annotation ").append(key).append(": found \"").append(value).append("\", expected ") +
           *expected;
  }
  std::vector<std::string_view> names(kKeys.size());
  std::ranges::transform(kKeys, names.begin(), &Key::name);
  return "annotation " + key + " is not known to the fake cloud; did you mean " + std::string(model::kFakePrefix) +
         nearest(name, names) + "?";
}

}  // namespace

int PodOrders::exit_code_of_run(std::string_view container, int run) const {
  if (oom) return 137;
  const auto own = containers.find(container);
  const std::vector<int>& codes =
      own != containers.end() && !own->second.exit_codes.empty() ? own->second.exit_codes : exit_codes;
  return codes.at(std::min(static_cast<size_t>(std::max(run, 1)), codes.size()) - 1);
}

std::optional<Duration> PodOrders::run_time_of(std::string_view container) const {
  const auto own = containers.find(container);
  return own != containers.end() && own->second.run_for ? own->second.run_for : run_for;
}

base::Result<PodOrders> parse_orders(const std::map<std::string, std::string>& annotations) {
  PodOrders orders;
  std::string faults;
  for (auto it = annotations.lower_bound(std::string(model::kFakePrefix)); it != annotations.end(); ++it) {
    if (!it->first.starts_with(model::kFakePrefix)) break;
    const std::string fault = fault_of(orders, it->first, it->second);
    if (fault.empty()) continue;
    if (!faults.empty()) faults += "; ";
    faults += fault;
  }
  if (!faults.empty()) return base::fail(base::ErrorKind::kInvalid, faults);
  return orders;
}

std::optional<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    Duration length;
  };
  constexpr std::array kUnits = {Unit{"ms", 1ms}, Unit{"s", 1s}, Unit{"m", 1min}, Unit{"h", 1h}};
  constexpr Duration kMost = std::chrono::hours(24 * 3650);
  if (text == "0") return Duration{0};
  if (text.empty()) return std::nullopt;
  Duration sum{0};
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const size_t letters = std::min(text.find_first_of("0123456789", digits), text.size()) - digits;
    std::int64_t number = 0;
    if (!parse_int(text.substr(0, digits), number)) return std::nullopt;
    const auto unit = std::ranges::find(kUnits, text.substr(digits, letters), &Unit::name);
    if (unit == kUnits.end() || number > kMost / unit->length) return std::nullopt;
    sum += number * unit->length;
    if (sum > kMost) return std::nullopt;
    text.remove_prefix(digits + letters);
  }
  return sum;
}

std::string format_duration(Duration d) {
  if (d % 1s != 0s) return std::to_string(d / 1ms) + "ms";
  if (d % 1min != 0s || d == 0s) return std::to_string(d / 1s) + "s";
  if (d % 1h != 0s) return std::to_string(d / 1min) + "m";
  return std::to_string(d / 1h) + "h";
}

std::optional<base::ErrorKind> parse_error_kind(std::string_view word) {
  for (int i = 0; i <= static_cast<int>(base::ErrorKind::kInternal); ++i) {
    const auto kind = static_cast<base::ErrorKind>(i);
    if (base::to_string(kind) == word) return kind;
  }
  return std::nullopt;
}

std::string nearest(std::string_view text, const std::vector<std::string_view>& valid) {
  std::string_view best;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string_view word : valid) {
    const size_t distance = edit_distance(text, word);
    if (distance < least) {
      least = distance;
      best = word;
    }
  }
  return std::string(best);
}

}  // namespace spillway::providers::fake
