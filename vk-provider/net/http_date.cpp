#include "vk-provider/net/http_date.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace spillway::net {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
// Tue, 01 Dec 2026 09:42:28 GMT
constexpr std::size_t kDay = 5;
constexpr std::size_t kMonth = 8;
constexpr std::size_t kYear = 12;
constexpr std::size_t kTime = 17;
constexpr std::size_t kLength = 29;

}  // namespace

std::optional<base::WallTime> parse_http_date(std::string_view text) {
  if (text.size() != kLength || !text.ends_with(" GMT") || text.substr(3, 2) != ", ") return std::nullopt;
  const auto month = std::ranges::find(kMonths, text.substr(kMonth, 3));
  if (month == kMonths.end() || text[kMonth - 1] != ' ' || text[kYear - 1] != ' ' || text[kTime - 1] != ' ') {
    return std::nullopt;
  }
  const std::string number = std::to_string(month - kMonths.begin() + 1);
  std::string same(text.substr(kYear, 4));
  same += (number.size() < 2 ? "-0" : "-") + number + "-";
  same += text.substr(kDay, 2);
  same += "T";
  same += text.substr(kTime, 8);
  return base::from_rfc3339(same + "Z");
}

}  // namespace spillway::net
