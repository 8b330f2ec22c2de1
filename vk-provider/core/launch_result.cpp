#include "vk-provider/core/launch_result.hpp"

#include <array>

namespace spillway::core {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::BackoffPolicy kSoldOut{seconds(60), minutes(30)};
constexpr base::BackoffPolicy kQuota{minutes(15), hours(6)};
constexpr base::BackoffPolicy kRate{seconds(5), minutes(5)};
constexpr base::BackoffPolicy kAccount{minutes(5), minutes(5)};
constexpr base::BackoffPolicy kSick{seconds(30), minutes(10)};
constexpr base::BackoffPolicy kHost{hours(24), hours(24)};

constexpr std::optional<bool> kNone;
constexpr std::array<ResultRow, static_cast<size_t>(LaunchResult::kCount)> kRows{{
    {LaunchResult::kAccepted, true, kNone, CoolScope::kNothing, {}, NextStep::kGoOn},
    {LaunchResult::kRan, kNone, true, CoolScope::kNothing, {}, NextStep::kGoOn},
    {LaunchResult::kEnded, kNone, kNone, CoolScope::kNothing, {}, NextStep::kGoOn},
    {LaunchResult::kSoldOut, false, kNone, CoolScope::kPool, kSoldOut, NextStep::kChooseAgain},
    {LaunchResult::kQuota, kNone, kNone, CoolScope::kQuota, kQuota, NextStep::kChooseAgain},
    {LaunchResult::kOfferChanged, kNone, kNone, CoolScope::kOffer, {}, NextStep::kListAgain},
    {LaunchResult::kRateLimited, kNone, kNone, CoolScope::kProvider, kRate, NextStep::kQueue},
    {LaunchResult::kCredentials, kNone, kNone, CoolScope::kProvider, kAccount, NextStep::kChooseAgain},
    {LaunchResult::kUnsupported, kNone, kNone, CoolScope::kOfferForShape, {}, NextStep::kChooseAgain},
    {LaunchResult::kBroken, kNone, kNone, CoolScope::kProvider, kSick, NextStep::kChooseAgain},
    {LaunchResult::kUnanswered, kNone, kNone, CoolScope::kProvider, kSick, NextStep::kLookUp},
    {LaunchResult::kNeverRan, kNone, false, CoolScope::kHost, kHost, NextStep::kChooseAgain},
    {LaunchResult::kPodFault, kNone, kNone, CoolScope::kNothing, {}, NextStep::kKeep},
    {LaunchResult::kLost, false, kNone, CoolScope::kPool, kSoldOut, NextStep::kChooseAgain},
}};

}  // namespace

const ResultRow& row_of(LaunchResult result) { return kRows.at(static_cast<size_t>(result)); }

std::string_view to_string(LaunchResult result) {
  switch (result) {
    case LaunchResult::kAccepted: return "accepted";
    case LaunchResult::kRan: return "ran";
    case LaunchResult::kEnded: return "ended";
    case LaunchResult::kSoldOut: return "sold_out";
    case LaunchResult::kQuota: return "quota";
    case LaunchResult::kOfferChanged: return "offer_changed";
    case LaunchResult::kRateLimited: return "rate_limited";
    case LaunchResult::kCredentials: return "credentials";
    case LaunchResult::kUnsupported: return "unsupported";
    case LaunchResult::kBroken: return "provider_broken";
    case LaunchResult::kUnanswered: return "unanswered";
    case LaunchResult::kNeverRan: return "never_ran";
    case LaunchResult::kPodFault: return "pod_fault";
    case LaunchResult::kLost: return "lost";
    case LaunchResult::kCount: break;
  }
  return "";
}

LaunchResult result_of(base::ErrorKind kind) {
  switch (kind) {
    case base::ErrorKind::kNoCapacity: return LaunchResult::kSoldOut;
    case base::ErrorKind::kQuota: return LaunchResult::kQuota;
    case base::ErrorKind::kRateLimited: return LaunchResult::kRateLimited;
    case base::ErrorKind::kUnauthenticated:
    case base::ErrorKind::kPermission: return LaunchResult::kCredentials;
    case base::ErrorKind::kInvalid:
    case base::ErrorKind::kUnsupported: return LaunchResult::kUnsupported;
    case base::ErrorKind::kConflict:
    case base::ErrorKind::kNotFound:
    case base::ErrorKind::kGone: return LaunchResult::kOfferChanged;
    case base::ErrorKind::kImage: return LaunchResult::kPodFault;
    case base::ErrorKind::kUnavailable: return LaunchResult::kBroken;
    case base::ErrorKind::kDeadline:
    case base::ErrorKind::kUnknownOutcome: return LaunchResult::kUnanswered;
    case base::ErrorKind::kInternal: return LaunchResult::kPodFault;
    case base::ErrorKind::kCancelled: return LaunchResult::kEnded;
  }
  return LaunchResult::kPodFault;
}

}  // namespace spillway::core
