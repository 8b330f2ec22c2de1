// The API server's Status object, as far as an error needs it. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::kube {

struct DecodedStatus {
  DecodedStatus() = default;
  std::string message;                                   // empty if there is none
  std::optional<std::chrono::milliseconds> retry_after;  // details.retryAfterSeconds
};

/// Anything that is no Status gives an empty one.
DecodedStatus decode_status(std::string_view json);

}  // namespace spillway::kube
