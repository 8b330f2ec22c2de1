// One active daemon per installation: the Lease that fences every purchase.
//
// Owned by the daemon; reactor thread only; on a KubeApi of its own, so that a busy pool never delays a renewal. The
// decisions are core/lease_fsm's. It stops nothing by itself: who buys asks covers(deadline) first, and the daemon ends
// when keep() returns.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/core/lease_fsm.hpp"
#include "vk-provider/kube/client.hpp"

namespace spillway::control {

struct InstallationLeaseConfig {
  InstallationLeaseConfig() = default;
  std::string ns;            // namespace of the installation
  std::string installation;  // the Lease is called <name_prefix><installation>
  std::string name_prefix = "spillway-";
  std::string metric_prefix = "spillway_installation_lease";
  std::string hostname;  // the holder is <hostname>_<random>, another one for each process
  core::LeaseTimes times;
  /// Says that the process behind a holder's <hostname> is certainly dead (base/process.hpp): then there is nothing to
  /// wait out. May be empty.
  std::function<bool(const std::string& hostname)> is_proven_dead;
};

class InstallationLease {
 public:
  InstallationLease(InstallationLeaseConfig config, kube::KubeApi& api, async::Timers& timers, base::Random& random,
                    base::Metrics& metrics);
  InstallationLease(const InstallationLease&) = delete;
  InstallationLease& operator=(const InstallationLease&) = delete;

  /// Returns when the lease is ours. Waits as standby, retries errors for ever, and says so in the log.
  boost::asio::awaitable<void> acquire();
  /// Renews. Returns when the lease is lost; the daemon must then end.
  async::Loop keep();
  /// Gives it back, so that a standby takes over at once. To be called when keep() was cancelled and no create is under
  /// way. Does nothing if it is not held; tries for at most 5 s.
  boost::asio::awaitable<void> release();

  bool held() const { return fsm_.held(timers_.now()); }
  base::TimePoint valid_until() const { return fsm_.valid_until(); }
  /// A create may start only if its deadline lies inside the lease.
  bool covers(base::Deadline deadline) const { return held() && deadline <= fsm_.valid_until(); }
  base::TimePoint acquired_at() const { return fsm_.acquired_at(); }
  /// False: the holder before us may have died in the middle of a create. Intents that are found must then wait out the
  /// settle time plus the longest create deadline, counted from acquired_at().
  bool handed_over() const { return fsm_.handed_over(); }
  const std::string& identity() const { return fsm_.identity(); }

 private:
  /// One read. What it shows goes to the fsm.
  async::Task<void> look(base::Deadline deadline);
  /// One write with `holder` (empty: released), on top of what was last read. Success goes to the fsm.
  async::Task<void> write(std::string holder, base::Deadline deadline);
  void log_standby();
  void log_failure(const char* what, const base::Error& error);

  InstallationLeaseConfig config_;
  std::string name_;
  kube::Client client_;
  async::Timers& timers_;
  base::Random& random_;
  core::LeaseFsm fsm_;
  base::Gauge& held_gauge_;
  base::Counter& failures_;
  kube::Lease lease_;  // as the server last showed it
  bool known_ = false;
  std::string logged_holder_;
  int failed_in_a_row_ = 0;
};

}  // namespace spillway::control
