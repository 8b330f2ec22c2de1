#include "vk-provider/control/installation_lease.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"

namespace spillway::control {
namespace {

using base::ErrorKind;
using std::chrono::seconds;

constexpr seconds kCallDeadline{5};
constexpr int kLogEvery = 30;  // failures in a row between two warnings

std::string make_identity(const std::string& hostname, base::Random& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string suffix;
  std::uint64_t bits = random.next();
  for (int i = 0; i < 12; ++i, bits >>= 4) suffix += kDigits[bits & 0xf];
  return hostname + "_" + suffix;
}

core::LeaseView to_view(const kube::Lease& lease) {
  core::LeaseView view;
  view.exists = !lease.resource_version.empty();
  view.holder = lease.holder;
  view.version = lease.resource_version;
  view.duration = lease.duration;
  return view;
}

}  // namespace

InstallationLease::InstallationLease(InstallationLeaseConfig config, kube::KubeApi& api, async::Timers& timers,
                                     base::Random& random, base::Metrics& metrics)
    : config_(std::move(config)),
      name_(config_.name_prefix + config_.installation),
      client_(api),
      timers_(timers),
      random_(random),
      fsm_(make_identity(config_.hostname, random), config_.times),
      held_gauge_(metrics.gauge(config_.metric_prefix + "_held", "1 while this process may act.")),
      failures_(
          metrics.counter(config_.metric_prefix + "_failures_total", "Reads and writes of the lease that failed.")) {}

async::Task<void> InstallationLease::look(base::Deadline deadline) {
  auto answer = co_await client_.get_lease(config_.ns, name_, deadline);
  if (!answer && answer.error().kind != ErrorKind::kNotFound) {
    fsm_.failed(timers_.now());
    co_return base::fail(std::move(answer.error()));
  }
  if (answer) {
    lease_ = std::move(*answer);
  } else {
    lease_ = kube::Lease();
    lease_.ns = config_.ns;
    lease_.name = name_;
  }
  known_ = true;
  core::LeaseView view = to_view(lease_);
  const std::string hostname = view.holder.substr(0, view.holder.rfind('_'));
  if (config_.is_proven_dead && config_.is_proven_dead(hostname)) {
    base::log::info("the holder of the lease is dead; taking over",
                    {{"lease", config_.ns + "/" + name_}, {"holder", view.holder}});
    view.holder.clear();
  }
  fsm_.observe(view, timers_.now());
  co_return base::Result<void>();
}

async::Task<void> InstallationLease::write(std::string holder, base::Deadline deadline) {
  kube::Lease wanted = lease_;
  const base::WallTime wall = timers_.wall();
  if (wanted.holder != holder && !holder.empty()) {
    wanted.acquire_time = wall;
    if (!wanted.resource_version.empty()) ++wanted.transitions;
  }
  wanted.holder = holder;
  wanted.renew_time = wall;
  // As client-go does at release: also one who ignores the empty holder need not wait.
  wanted.duration = holder.empty() ? seconds(1) : std::chrono::duration_cast<seconds>(config_.times.duration);
  const base::TimePoint sent_at = timers_.now();
  auto answer = co_await client_.put_lease(std::move(wanted), deadline);
  if (!answer) {
    // Whatever it was: what stands there now may not be what we think.
    known_ = false;
    fsm_.failed(timers_.now());
    co_return base::fail(std::move(answer.error()));
  }
  lease_ = std::move(*answer);
  if (holder.empty()) {
    fsm_.released();
  } else {
    fsm_.wrote(to_view(lease_), sent_at, timers_.now());
  }
  co_return base::Result<void>();
}

void InstallationLease::log_standby() {
  if (logged_holder_ == lease_.holder) return;
  logged_holder_ = lease_.holder;
  base::log::info("standing by: another process holds the lease of this installation",
                  {{"lease", config_.ns + "/" + name_}, {"holder", lease_.holder}});
}

void InstallationLease::log_failure(const char* what, const base::Error& error) {
  failures_.add();
  if (failed_in_a_row_++ % kLogEvery != 0) {
    base::log::debug(what, {{"lease", config_.ns + "/" + name_}, {"error", error}});
    return;
  }
  std::string remedy = "retrying";
  if (error.kind == ErrorKind::kPermission)
    remedy = "apply config/deploy: get, create and update of leases in this namespace";
  if (error.kind == ErrorKind::kNotFound)
    remedy = "create the namespace " + config_.ns + ", or name another in installation.namespace";
  base::log::warn(what, {{"lease", config_.ns + "/" + name_}, {"error", error}, {"remedy", remedy}});
}

boost::asio::awaitable<void> InstallationLease::acquire() {
  fsm_.released();
  known_ = false;
  for (;;) {
    const base::TimePoint now = timers_.now();
    if (!known_) {
      const auto looked = co_await look(now + kCallDeadline);
      if (!looked) {
        log_failure("cannot read the lease of this installation", looked.error());
        co_await timers_.sleep_for(random_.jittered(config_.times.look_every, 0.2));
        continue;
      }
    }
    const core::LeaseDecision decision = fsm_.decide(timers_.now());
    if (decision.action != core::LeaseAction::kAcquire) {
      log_standby();
      co_await timers_.sleep_until(decision.at);
      known_ = false;
      continue;
    }
    const std::string before = lease_.holder;
    const auto wrote = co_await write(fsm_.identity(), timers_.now() + kCallDeadline);
    if (!wrote) {
      if (wrote.error().kind == ErrorKind::kConflict) continue;  // somebody was faster: look
      log_failure("cannot take the lease of this installation", wrote.error());
      co_await timers_.sleep_for(random_.jittered(config_.times.retry_every, 0.2));
      continue;
    }
    if (!held()) continue;  // the answer came after its end
    failed_in_a_row_ = 0;
    held_gauge_.set(1);
    base::log::info("holding the lease of this installation", {{"lease", config_.ns + "/" + name_},
                                                               {"holder", fsm_.identity()},
                                                               {"previous_holder", before},
                                                               {"handed_over", fsm_.handed_over()}});
    co_return;
  }
}

async::Loop InstallationLease::keep() {
  for (;;) {
    const core::LeaseDecision decision = fsm_.decide(timers_.now());
    if (decision.action != core::LeaseAction::kRenew) {
      held_gauge_.set(0);
      base::log::error("lost the lease of this installation", {{"lease", config_.ns + "/" + name_},
                                                               {"holder", lease_.holder},
                                                               {"remedy", "this process stops acting and ends"}});
      co_return;
    }
    co_await timers_.sleep_until(std::min(decision.at, fsm_.valid_until()));
    const base::TimePoint now = timers_.now();
    if (!fsm_.held(now)) continue;
    const base::Deadline deadline = std::min(now + kCallDeadline, fsm_.valid_until());
    if (!known_) {
      const auto looked = co_await look(deadline);
      if (!looked) log_failure("cannot read the lease of this installation", looked.error());
      continue;
    }
    const auto wrote = co_await write(fsm_.identity(), deadline);
    if (wrote) {
      failed_in_a_row_ = 0;
    } else {
      log_failure("cannot renew the lease of this installation", wrote.error());
    }
  }
}

boost::asio::awaitable<void> InstallationLease::release() {
  const base::Deadline deadline = timers_.now() + kCallDeadline;
  // Once more after a conflict or a lost answer; then its end by time must do.
  for (int attempt = 0; attempt < 2 && held(); ++attempt) {
    if (!known_ && !co_await look(deadline)) continue;
    if (!held()) break;
    const auto wrote = co_await write(std::string(), deadline);
    if (wrote) {
      held_gauge_.set(0);
      base::log::info("released the lease of this installation", {{"lease", config_.ns + "/" + name_}});
      co_return;
    }
    log_failure("cannot release the lease of this installation", wrote.error());
  }
}

}  // namespace spillway::control
