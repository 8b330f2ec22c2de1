#include "vk-provider/core/launch_result.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string_view>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

TEST_CASE("launch result: every result has its row and its word") {
  std::set<std::string_view> words;
  for (size_t i = 0; i < static_cast<size_t>(LaunchResult::kCount); ++i) {
    const auto result = static_cast<LaunchResult>(i);
    CHECK(row_of(result).result == result);
    CHECK(words.insert(to_string(result)).second);
  }
  CHECK_FALSE(words.contains(""));
}

TEST_CASE("launch result: the taxonomy, row by row") {
  struct Expected {
    LaunchResult result;
    std::optional<bool> stock;
    std::optional<bool> ready;
    CoolScope scope;
    base::Duration first;
    base::Duration cap;
    NextStep next;
  };
  const std::optional<bool> none;
  const Expected rows[] = {
      {LaunchResult::kAccepted, true, none, CoolScope::kNothing, 0s, 0s, NextStep::kGoOn},
      {LaunchResult::kRan, none, true, CoolScope::kNothing, 0s, 0s, NextStep::kGoOn},
      {LaunchResult::kEnded, none, none, CoolScope::kNothing, 0s, 0s, NextStep::kGoOn},
      {LaunchResult::kSoldOut, false, none, CoolScope::kPool, 60s, 30min, NextStep::kChooseAgain},
      {LaunchResult::kQuota, none, none, CoolScope::kQuota, 15min, 6h, NextStep::kChooseAgain},
      {LaunchResult::kOfferChanged, none, none, CoolScope::kOffer, 0s, 0s, NextStep::kListAgain},
      {LaunchResult::kRateLimited, none, none, CoolScope::kProvider, 5s, 5min, NextStep::kQueue},
      {LaunchResult::kCredentials, none, none, CoolScope::kProvider, 5min, 5min, NextStep::kChooseAgain},
      {LaunchResult::kUnsupported, none, none, CoolScope::kOfferForShape, 0s, 0s, NextStep::kChooseAgain},
      {LaunchResult::kBroken, none, none, CoolScope::kProvider, 30s, 10min, NextStep::kChooseAgain},
      {LaunchResult::kUnanswered, none, none, CoolScope::kProvider, 30s, 10min, NextStep::kLookUp},
      {LaunchResult::kNeverRan, none, false, CoolScope::kHost, 24h, 24h, NextStep::kChooseAgain},
      {LaunchResult::kPodFault, none, none, CoolScope::kNothing, 0s, 0s, NextStep::kKeep},
      {LaunchResult::kLost, false, none, CoolScope::kPool, 60s, 30min, NextStep::kChooseAgain},
  };
  static_assert(std::size(rows) == static_cast<size_t>(LaunchResult::kCount));
  for (const Expected& e : rows) {
    CAPTURE(to_string(e.result));
    const ResultRow& row = row_of(e.result);
    CHECK(row.stock == e.stock);
    CHECK(row.ready == e.ready);
    CHECK(row.scope == e.scope);
    CHECK(row.next == e.next);
    const bool has_time = e.first > 0s;
    if (has_time) CHECK(row.cool_down.first == e.first);
    if (has_time) CHECK(row.cool_down.cap == e.cap);
  }
}

TEST_CASE("launch result: every kind of error of a create is counted") {
  CHECK(result_of(base::ErrorKind::kNoCapacity) == LaunchResult::kSoldOut);
  CHECK(result_of(base::ErrorKind::kQuota) == LaunchResult::kQuota);
  CHECK(result_of(base::ErrorKind::kConflict) == LaunchResult::kOfferChanged);
  CHECK(result_of(base::ErrorKind::kNotFound) == LaunchResult::kOfferChanged);
  CHECK(result_of(base::ErrorKind::kGone) == LaunchResult::kOfferChanged);
  CHECK(result_of(base::ErrorKind::kRateLimited) == LaunchResult::kRateLimited);
  CHECK(result_of(base::ErrorKind::kUnauthenticated) == LaunchResult::kCredentials);
  CHECK(result_of(base::ErrorKind::kPermission) == LaunchResult::kCredentials);
  CHECK(result_of(base::ErrorKind::kInvalid) == LaunchResult::kUnsupported);
  CHECK(result_of(base::ErrorKind::kUnsupported) == LaunchResult::kUnsupported);
  CHECK(result_of(base::ErrorKind::kUnavailable) == LaunchResult::kBroken);
  CHECK(result_of(base::ErrorKind::kUnknownOutcome) == LaunchResult::kUnanswered);
  CHECK(result_of(base::ErrorKind::kDeadline) == LaunchResult::kUnanswered);
  CHECK(result_of(base::ErrorKind::kImage) == LaunchResult::kPodFault);
  CHECK(result_of(base::ErrorKind::kInternal) == LaunchResult::kPodFault);
  CHECK(result_of(base::ErrorKind::kCancelled) == LaunchResult::kEnded);
}

}  // namespace
}  // namespace spillway::core
