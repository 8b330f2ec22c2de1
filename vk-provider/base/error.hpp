// What can go wrong, as a value.
//
// Owned by whoever receives it; plain data, any thread. Does not throw and does not log: the place that handles an
// error logs it, once. The list of kinds is closed, and each kind has one recovery (docs/states.md).
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::base {

enum class ErrorKind {
  kInvalid,          // they will never accept this: the pod fails with the message, no retry
  kUnauthenticated,  // credentials are missing or wrong: retry after they were reloaded
  kPermission,       // credentials are right, a permission is missing
  kNotFound,         // it is gone; success for a terminate
  kConflict,         // our copy is old: read again
  kGone,             // a watch position is too old: list again
  kNoCapacity,       // sold out now: cool the offer down, take the next one
  kQuota,            // our account is full: cool the provider down
  kRateLimited,      // slow down for retry_after, the whole provider
  kUnavailable,      // broken or unreachable, and nothing was bought or written
  kDeadline,         // a read took too long
  kUnknownOutcome,   // a write may or may not have happened: look before anything else
  kImage,            // the container image cannot be pulled (missing, denied, malformed name)
  kUnsupported,      // this provider cannot do that; never retried
  kCancelled,        // we are shutting down
  kInternal,         // we are wrong
};

/// The stable lower-case word of a kind: `no_capacity`. Used in logs and as a metric label.
std::string_view to_string(ErrorKind kind);

struct Error {
  Error() = default;
  Error(ErrorKind k, std::string text) : kind(k), message(std::move(text)) {}

  ErrorKind kind = ErrorKind::kInternal;
  /// For people; names the thing and the remedy. Never holds a secret.
  std::string message;
  /// How long the other side asked us to wait, if it did.
  std::optional<std::chrono::milliseconds> retry_after;
};

template <class T>
using Result = std::expected<T, Error>;

/// `return fail(ErrorKind::kInvalid, "...")` from any function that returns a Result.
inline std::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return std::unexpected<Error>(Error(kind, std::move(message)));
}
inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }

}  // namespace spillway::base
