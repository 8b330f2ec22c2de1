// How a try to get an instance can end, and what follows from each end: one table.
//
// Pure. core/beliefs learns by it, control/ acts by it; docs/placement.md shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::core {

enum class LaunchResult : std::uint8_t {
  kAccepted,      // the provider took the order
  kRan,           // the instance reached Running
  kEnded,         // it ended as it should, or because we asked
  kSoldOut,       // no capacity
  kQuota,         // our account may have no more
  kOfferChanged,  // it costs more than was offered, or is not offered any more
  kRateLimited,   // too many requests
  kCredentials,   // our credentials, or our balance, do not do
  kUnsupported,   // they will never accept this pod on this offer
  kBroken,        // the provider failed; nothing was bought
  kUnanswered,    // the provider failed or was silent; something may have been bought
  kNeverRan,      // accepted, and not Running within its time
  kPodFault,      // the image or the containers are at fault
  kLost,          // taken back or broken while it was ours
  kCount
};
/// A stable word for logs, metrics and explanations: `sold_out`.
std::string_view to_string(LaunchResult result);

/// What cools down.
enum class CoolScope : std::uint8_t {
  kNothing,
  kPool,
  kQuota,          // all pools that share the quota
  kOffer,          // until its price was listed again
  kProvider,       // the provider's API
  kOfferForShape,  // this offer for such pods, until the catalogue changes
  kHost,           // the machine; and its pool if it seldom gets anything to run
};

enum class NextStep : std::uint8_t {
  kGoOn,         // nothing went wrong
  kChooseAgain,  // at once, with what was learnt
  kListAgain,    // ask for the offers again, then choose, once
  kQueue,        // wait for this provider; others go on
  kLookUp,       // look the tag up before anything else
  kKeep,         // same instance: the kubelet's back-off
};

struct ResultRow {
  LaunchResult result{};
  std::optional<bool> stock;  // what it says of the pool's stock
  std::optional<bool> ready;  // what it says of machines that were accepted
  CoolScope scope = CoolScope::kNothing;
  base::BackoffPolicy cool_down{};  // without meaning for kNothing, kOffer and kOfferForShape
  NextStep next = NextStep::kGoOn;
};
const ResultRow& row_of(LaunchResult result);

/// How a create that failed is counted.
LaunchResult result_of(base::ErrorKind kind);

}  // namespace spillway::core
