#include "vk-provider/base/backoff.hpp"

#include <algorithm>

namespace spillway::base {

Duration backoff_delay(const BackoffPolicy& policy, int retry) {
  Duration delay = policy.first;
  for (int i = 1; i < retry && delay < policy.cap; ++i) delay *= 2;
  return delay < policy.cap ? delay : policy.cap;
}

Duration heed_retry_after(Duration wait, const Error& error) {
  return error.retry_after ? std::max(wait, Duration(*error.retry_after)) : wait;
}

}  // namespace spillway::base
