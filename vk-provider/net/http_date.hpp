// The time in headers of HTTP. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "vk-provider/base/clock.hpp"

namespace spillway::net {

/// IMF-fixdate of RFC 9110, as servers write Date: `Tue, 01 Dec 2026 09:42:28 GMT`. Empty on anything else.
std::optional<base::WallTime> parse_http_date(std::string_view text);

}  // namespace spillway::net
