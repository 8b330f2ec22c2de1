// Who may act for an installation: the decisions behind its Lease. Pure.
//
// Owned by control/installation_lease. The clocks of two machines are never compared: a Lease of somebody else has
// expired when it did not change for its duration on *our* steady clock, counted from the moment at which we saw it
// change. Sends nothing and reads no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

struct LeaseTimes {
  LeaseTimes() = default;
  base::Duration duration{std::chrono::seconds(30)};  // how long a renewal counts
  base::Duration renew_every{std::chrono::seconds(5)};
  base::Duration retry_every{std::chrono::seconds(1)};  // after a failed renewal
  base::Duration look_every{std::chrono::seconds(2)};   // as standby
};

/// What stands at the API server.
struct LeaseView {
  LeaseView() = default;
  bool exists = false;
  std::string holder;   // empty: released
  std::string version;  // resourceVersion: any change is a sign of life
  base::Duration duration{};
};

enum class LeaseAction : std::uint8_t {
  kAcquire,  // write ourselves in now
  kRenew,    // we hold it: write at `at`
  kWait,     // somebody else holds it: look again at `at`
  kLost,     // we held it, and do no longer: stop buying
};

struct LeaseDecision {
  LeaseAction action = LeaseAction::kWait;
  base::TimePoint at{};
};

class LeaseFsm {
 public:
  LeaseFsm(std::string identity, LeaseTimes times) : identity_(std::move(identity)), times_(times) {}

  /// A GET was answered (or an answer to a write showed what stands).
  void observe(const LeaseView& view, base::TimePoint now);
  /// A write of ours was answered with success; it was sent at `sent_at`.
  void wrote(const LeaseView& view, base::TimePoint sent_at, base::TimePoint now);
  /// A write or a read failed.
  void failed(base::TimePoint now);
  /// We gave it back.
  void released();

  LeaseDecision decide(base::TimePoint now) const;

  bool held(base::TimePoint now) const { return holding_ && now < valid_until_; }
  /// Send time of the last successful write plus the duration: nobody else takes it before that.
  base::TimePoint valid_until() const { return valid_until_; }
  base::TimePoint acquired_at() const { return acquired_at_; }
  /// The holder before us gave it back: nothing of his is under way any more.
  bool handed_over() const { return handed_over_; }
  const std::string& identity() const { return identity_; }

 private:
  bool theirs_expired(base::TimePoint now) const { return now >= theirs_until_; }

  std::string identity_;
  LeaseTimes times_;
  std::optional<LeaseView> view_;
  base::TimePoint theirs_until_{};  // when the lease of another holder counts as expired
  bool holding_ = false;
  bool handed_over_ = false;
  base::TimePoint valid_until_{};
  base::TimePoint acquired_at_{};
  base::TimePoint next_try_{};
};

}  // namespace spillway::core
