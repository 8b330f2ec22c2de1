// Whether a provider may be called now: circuit breaker and pause after a rate limit. Pure.
//
// Owned by a throttled_provider. Takes the time as an argument, sends nothing, logs nothing.
#pragma once

#include <cstdint>
#include <string>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::provider {

struct BreakerPolicy {
  BreakerPolicy() = default;
  int failures_to_open = 5;                                                     // in a row
  base::BackoffPolicy probe{std::chrono::seconds(5), std::chrono::minutes(2)};  // from opening to the first probe, ...
  base::Duration default_pause{std::chrono::seconds(5)};                        // after a rate limit that names no time
  base::Duration longest_pause{std::chrono::minutes(5)};
};

/// What is at stake if the call does not happen.
enum class Urgency : std::uint8_t {
  kNormal,
  kBilling,  // list_owned, get, terminate: money runs until they succeed, so they are tried also while it is open
};

class Breaker {
 public:
  Breaker(BreakerPolicy policy, base::TimePoint now) : policy_(policy), since_(now) {}

  struct Admission {
    enum class Kind : std::uint8_t {
      kGo,
      kProbe,   // go, and report the outcome: this call decides
      kPaused,  // the provider asked us to wait: not before `until`
      kOpen,    // it is broken: nothing is sent before `until`
    };
    Kind kind = Kind::kGo;
    base::TimePoint until{};
  };

  Admission admit(Urgency urgency, base::TimePoint now);

  /// How a call ended; `probe` if it was admitted as one. Each admitted call reports once, also a cancelled one.
  void succeeded(bool probe, base::TimePoint now);
  void failed(bool probe, const base::Error& error, base::TimePoint now);
  void abandoned(bool probe);

  /// False from the moment at which it opened until a call succeeded.
  bool reachable() const { return !open_; }
  /// When that last changed.
  base::TimePoint since() const { return since_; }
  /// The error that opened it; empty if it is closed.
  const std::string& why() const { return why_; }

 private:
  void answered(base::TimePoint now);

  BreakerPolicy policy_;
  bool open_ = false;
  bool probing_ = false;
  int failures_ = 0;  // in a row while closed
  int probes_ = 0;    // failed since it opened
  base::TimePoint next_probe_{};
  base::TimePoint paused_until_{};
  base::TimePoint since_{};
  std::string why_;
};

}  // namespace spillway::provider
