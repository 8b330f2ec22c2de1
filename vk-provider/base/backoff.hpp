// How long to wait before the next attempt: exponential, capped. Pure.
#pragma once

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::base {

struct BackoffPolicy {
  Duration first{std::chrono::seconds(1)};
  Duration cap{std::chrono::minutes(1)};
};

/// The wait before retry number `retry` (1 is the first): first, 2*first, 4*first, ... but never over the cap.
Duration backoff_delay(const BackoffPolicy& policy, int retry);

/// `wait`, or longer if whoever answered asked to be left alone for longer (Retry-After).
Duration heed_retry_after(Duration wait, const Error& error);

}  // namespace spillway::base
