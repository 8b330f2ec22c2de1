#include "vk-provider/base/error.hpp"

namespace spillway::base {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid: return "invalid";
    case ErrorKind::kUnauthenticated: return "unauthenticated";
    case ErrorKind::kPermission: return "permission";
    case ErrorKind::kNotFound: return "not_found";
    case ErrorKind::kConflict: return "conflict";
    case ErrorKind::kGone: return "gone";
    case ErrorKind::kNoCapacity: return "no_capacity";
    case ErrorKind::kQuota: return "quota";
    case ErrorKind::kRateLimited: return "rate_limited";
    case ErrorKind::kUnavailable: return "unavailable";
    case ErrorKind::kDeadline: return "deadline";
    case ErrorKind::kUnknownOutcome: return "unknown_outcome";
    case ErrorKind::kImage: return "image";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kCancelled: return "cancelled";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace spillway::base
