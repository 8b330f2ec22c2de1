#include "vk-provider/base/backoff.hpp"

namespace spillway::base {

Duration backoff_delay(const BackoffPolicy& policy, int retry) {
  Duration delay = policy.first;
  for (int i = 1; i < retry && delay < policy.cap; ++i) delay *= 2;
  return delay < policy.cap ? delay : policy.cap;
}

}  // namespace spillway::base
