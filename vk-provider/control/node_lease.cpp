#include "vk-provider/control/node_lease.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"

namespace spillway::control {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kNamespace = "kube-node-lease";
constexpr seconds kLeaseDuration{40};
constexpr seconds kRenewEvery{10};
constexpr double kJitter = 0.04;
constexpr seconds kCallDeadline{5};
constexpr int kImmediateRetries = 5;  // after conflicts
constexpr int kLogEvery = 10;
// How often we look whether the wall clock jumped, and what counts as a jump.
constexpr seconds kLookEvery{2};
constexpr seconds kJump{5};

/// How far the wall clock is ahead of the steady one; it moves only when somebody sets the time.
base::Duration offset_of(const base::Clock& clock) {
  return clock.wall().time_since_epoch() - clock.now().time_since_epoch();
}

}  // namespace

NodeLease::NodeLease(std::string node_name, kube::KubeApi& api, async::Timers& timers, base::Random& random,
                     base::Metrics& metrics)
    : node_name_(std::move(node_name)),
      client_(api),
      timers_(timers),
      random_(random),
      renewed_(metrics.counter("spillway_node_lease_renewals_total", "Renewals of the node's lease.",
                               {{"node", node_name_}})),
      failed_(metrics.counter("spillway_node_lease_failures_total", "Failed renewals of the node's lease.",
                              {{"node", node_name_}})),
      waiter_(timers.make_waiter()) {}

void NodeLease::set_owner(const std::string& uid) {
  if (owner_uid_ == uid) return;
  owner_uid_ = uid;
  owner_changed_ = true;
  waiter_->wake();
}

async::Task<void> NodeLease::read() {
  auto answer = co_await client_.get_lease(kNamespace, node_name_, timers_.now() + kCallDeadline);
  if (!answer && answer.error().kind != ErrorKind::kNotFound) co_return base::fail(std::move(answer.error()));
  lease_ = answer ? std::move(*answer) : kube::Lease();
  known_ = true;
  co_return base::Result<void>();
}

async::Task<void> NodeLease::renew() {
  if (!known_) {
    auto known = co_await read();
    if (!known) co_return base::fail(std::move(known.error()));
  }
  kube::Lease wanted = lease_;
  wanted.ns = kNamespace;
  wanted.name = node_name_;
  wanted.holder = node_name_;
  wanted.duration = kLeaseDuration;
  wanted.renew_time = timers_.wall();
  wanted.owner_node_name = node_name_;
  wanted.owner_node_uid = owner_uid_;
  auto answer = co_await client_.put_lease(std::move(wanted), timers_.now() + kCallDeadline);
  if (!answer) {
    known_ = false;
    co_return base::fail(std::move(answer.error()));
  }
  lease_ = std::move(*answer);
  co_return base::Result<void>();
}

async::Loop NodeLease::run() {
  const base::BackoffPolicy retry{milliseconds(200), seconds(7)};
  int failures = 0;
  for (;;) {
    if (owner_uid_.empty()) {
      owner_changed_ = false;
      co_await waiter_->wait();
      continue;
    }
    owner_changed_ = false;
    const auto renewed = co_await renew();
    base::TimePoint next;
    if (renewed) {
      failures = 0;
      renewed_.add();
      next = timers_.now() + random_.jittered(kRenewEvery, kJitter);
    } else {
      failed_.add();
      const base::Error& error = renewed.error();
      if (failures % kLogEvery == 0) {
        base::log::warn("cannot renew the node's lease", {{"node", node_name_}, {"error", error}});
      }
      ++failures;
      const bool at_once = error.kind == ErrorKind::kConflict && failures <= kImmediateRetries;
      const base::Duration own =
          at_once ? base::Duration{} : random_.jittered(base::backoff_delay(retry, failures), 0.2);
      next = timers_.now() + base::heed_retry_after(own, error);
    }
    base::Duration offset = offset_of(timers_);
    while (timers_.now() < next && !owner_changed_) {
      co_await waiter_->wait_until(std::min(next, timers_.now() + kLookEvery));
      const base::Duration moved = offset_of(timers_) - offset;
      offset += moved;
      if (moved > kJump || moved < -kJump) {
        base::log::warn("the wall clock jumped; the node's lease is renewed at once",
                        {{"node", node_name_}, {"seconds", std::chrono::duration_cast<seconds>(moved).count()}});
        break;
      }
    }
  }
}

}  // namespace spillway::control
