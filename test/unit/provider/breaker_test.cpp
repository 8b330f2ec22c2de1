#include "vk-provider/provider/breaker.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using spillway::base::Error;
using spillway::base::ErrorKind;
using spillway::base::TimePoint;
using spillway::provider::Breaker;
using spillway::provider::BreakerPolicy;
using spillway::provider::Urgency;
using Kind = Breaker::Admission::Kind;

namespace {

const TimePoint kStart{1h};

Error rate_limited(std::optional<std::chrono::milliseconds> wait) {
  Error error(ErrorKind::kRateLimited, "slow down");
  error.retry_after = wait;
  return error;
}

/// Open since kStart; the first probe is due 5 s later.
Breaker make_open() {
  Breaker breaker(BreakerPolicy(), kStart - 1min);
  for (int i = 0; i < 5; ++i) breaker.failed(false, Error(ErrorKind::kUnavailable, "no route"), kStart);
  return breaker;
}

void check(const Breaker::Admission& admission, Kind kind, TimePoint until = {}) {
  CHECK(admission.kind == kind);
  CHECK(admission.until == until);
}

}  // namespace

TEST_CASE("a new breaker lets everything through") {
  Breaker breaker(BreakerPolicy(), kStart);
  check(breaker.admit(Urgency::kNormal, kStart), Kind::kGo);
  CHECK(breaker.reachable());
  CHECK(breaker.since() == kStart);
}

TEST_CASE("which errors open it") {
  struct Row {
    ErrorKind kind;
    bool opens;
  };
  const Row rows[] = {
      {ErrorKind::kUnavailable, true},     {ErrorKind::kDeadline, true},    {ErrorKind::kUnauthenticated, true},
      {ErrorKind::kNotFound, false},       {ErrorKind::kInvalid, false},    {ErrorKind::kNoCapacity, false},
      {ErrorKind::kQuota, false},          {ErrorKind::kConflict, false},   {ErrorKind::kImage, false},
      {ErrorKind::kUnknownOutcome, false}, {ErrorKind::kCancelled, false},  {ErrorKind::kInternal, false},
      {ErrorKind::kRateLimited, false},    {ErrorKind::kPermission, false}, {ErrorKind::kUnsupported, false},
  };
  for (const Row& row : rows) {
    INFO(spillway::base::to_string(row.kind));
    Breaker breaker(BreakerPolicy(), kStart);
    for (int i = 0; i < 4; ++i) breaker.failed(false, Error(row.kind, "x"), kStart);
    CHECK(breaker.reachable());
    breaker.failed(false, Error(row.kind, "x"), kStart + 1s);
    CHECK(breaker.reachable() == !row.opens);
    CHECK(breaker.since() == (row.opens ? kStart + 1s : kStart));
  }
}

TEST_CASE("only failures in a row count, and what says nothing about health does not end the row") {
  const Error outage(ErrorKind::kUnavailable, "x");
  Breaker breaker(BreakerPolicy(), kStart);
  for (int i = 0; i < 4; ++i) breaker.failed(false, outage, kStart);
  breaker.failed(false, Error(ErrorKind::kNotFound, "gone"), kStart);  // an answer
  for (int i = 0; i < 4; ++i) breaker.failed(false, outage, kStart);
  CHECK(breaker.reachable());
  breaker.failed(false, Error(ErrorKind::kUnknownOutcome, "?"), kStart);
  breaker.abandoned(false);
  breaker.failed(false, outage, kStart);
  CHECK_FALSE(breaker.reachable());
}

TEST_CASE("an open breaker sends nothing until the first probe is due, and then one call only") {
  Breaker breaker = make_open();
  CHECK(breaker.why() == "no route");
  check(breaker.admit(Urgency::kNormal, kStart + 1s), Kind::kOpen, kStart + 5s);
  check(breaker.admit(Urgency::kNormal, kStart + 5s), Kind::kProbe);
  check(breaker.admit(Urgency::kNormal, kStart + 5s), Kind::kOpen, kStart + 6s);
}

TEST_CASE("a probe that succeeds closes it") {
  Breaker breaker = make_open();
  breaker.admit(Urgency::kNormal, kStart + 5s);
  breaker.succeeded(true, kStart + 6s);
  CHECK(breaker.reachable());
  CHECK(breaker.since() == kStart + 6s);
  CHECK(breaker.why().empty());
  check(breaker.admit(Urgency::kNormal, kStart + 6s), Kind::kGo);
  // It takes a whole row of failures to open it again.
  for (int i = 0; i < 4; ++i) breaker.failed(false, Error(ErrorKind::kDeadline, "x"), kStart + 7s);
  CHECK(breaker.reachable());
}

TEST_CASE("probes that fail come more and more rarely, up to two minutes apart") {
  Breaker breaker = make_open();
  TimePoint now = kStart + 5s;
  for (const auto wait : {10s, 20s, 40s, 80s, 120s, 120s}) {
    check(breaker.admit(Urgency::kNormal, now), Kind::kProbe);
    breaker.failed(true, Error(ErrorKind::kUnavailable, "still"), now);
    check(breaker.admit(Urgency::kNormal, now), Kind::kOpen, now + wait);
    now += wait;
  }
  CHECK(breaker.why() == "still");
  CHECK(breaker.since() == kStart);
}

TEST_CASE("calls on which money depends are probes while it is open, one at a time") {
  Breaker breaker = make_open();
  check(breaker.admit(Urgency::kBilling, kStart), Kind::kProbe);
  // Not the time of the next probe: this call could have been the one that is under way.
  check(breaker.admit(Urgency::kBilling, kStart), Kind::kOpen, kStart + 1s);
  check(breaker.admit(Urgency::kNormal, kStart), Kind::kOpen, kStart + 5s);
  breaker.failed(true, Error(ErrorKind::kUnavailable, "x"), kStart + 1s);
  check(breaker.admit(Urgency::kBilling, kStart + 1s), Kind::kProbe);
  breaker.succeeded(true, kStart + 2s);
  check(breaker.admit(Urgency::kNormal, kStart + 2s), Kind::kGo);
}

TEST_CASE("a probe that is cancelled lets the next one through") {
  Breaker breaker = make_open();
  breaker.admit(Urgency::kNormal, kStart + 5s);
  breaker.abandoned(true);
  check(breaker.admit(Urgency::kNormal, kStart + 5s), Kind::kProbe);
}

TEST_CASE("late failures of calls that were under way do not put the first probe off") {
  Breaker breaker = make_open();
  breaker.failed(false, Error(ErrorKind::kDeadline, "late"), kStart + 4s);
  check(breaker.admit(Urgency::kNormal, kStart + 5s), Kind::kProbe);
}

TEST_CASE("a rate limit pauses everything for as long as was asked") {
  struct Row {
    std::optional<std::chrono::milliseconds> asked;
    spillway::base::Duration pause;
  };
  const Row rows[] = {{20s, 20s}, {std::nullopt, 5s}, {1h, 5min}, {0s, 0s}, {-1s, 0s}};
  for (const Row& row : rows) {
    Breaker breaker(BreakerPolicy(), kStart);
    breaker.failed(false, rate_limited(row.asked), kStart);
    CHECK(breaker.reachable());
    if (row.pause > 0s) {
      check(breaker.admit(Urgency::kBilling, kStart), Kind::kPaused, kStart + row.pause);
      check(breaker.admit(Urgency::kNormal, kStart), Kind::kPaused, kStart + row.pause);
    }
    check(breaker.admit(Urgency::kNormal, kStart + row.pause), Kind::kGo);
  }
}

TEST_CASE("a shorter rate limit does not shorten a longer one") {
  Breaker breaker(BreakerPolicy(), kStart);
  breaker.failed(false, rate_limited(30s), kStart);
  breaker.failed(false, rate_limited(1s), kStart);
  check(breaker.admit(Urgency::kNormal, kStart + 2s), Kind::kPaused, kStart + 30s);
}
