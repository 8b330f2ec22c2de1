// Lengths of time as people write them: `20s`, `1h30m`. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/base/clock.hpp"

namespace spillway::base {

/// `20s`, `5m`, `1h30m`, `250ms`: whole numbers with a unit of h, m, s or ms, at most a year. Empty on anything else.
std::optional<Duration> parse_duration(std::string_view text);
/// The shortest text that parse_duration reads back: `20m`, `1h30m`, `0s`.
std::string format_duration(Duration d);

}  // namespace spillway::base
