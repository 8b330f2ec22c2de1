// The engine's listing tells when a container started or ended only in words: "Up 5 minutes", "Exited (3) 2 hours ago".
//
// Pure. Used to see whether what an inspection told before still holds, so that a listing of many containers needs no
// inspection of each: a container that was started again has words that contradict the times we know.
#pragma once

#include <optional>
#include <string_view>

#include "vk-provider/base/clock.hpp"

namespace spillway::providers::docker {

struct StatusText {
  bool running = false;
  std::optional<int> exit_code;  // of one that exited
  base::Duration at_least{};     // how long ago it started or ended
  base::Duration less_than{};
};

/// Empty for words that say nothing about time ("Created", "Dead"), and for words that we do not know.
std::optional<StatusText> parse_status(std::string_view text);

/// Whether the words fit what happened at `since`. `now` is the engine's own clock.
bool agrees(const StatusText& status, base::WallTime since, base::WallTime now);

/// The Date header of an answer: `Sun, 29 Nov 2026 21:34:53 GMT`.
std::optional<base::WallTime> parse_http_date(std::string_view text);

}  // namespace spillway::providers::docker
