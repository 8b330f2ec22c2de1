#include "vk-provider/control/sweep_controller.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {
constexpr base::Duration kCallDeadline = std::chrono::seconds(30);
constexpr std::chrono::seconds kOrphanGrace{0};
}  // namespace

SweepController::SweepController(model::Ownership ownership, base::Duration grace, ProviderSet& providers,
                                 kube::Client& client, async::Timers& timers, base::Metrics& metrics,
                                 std::function<bool(const base::PodUid&, int attempt)> owned,
                                 std::function<bool(const base::PodUid&)> known, std::function<bool()> holds_lease)
    : sweep_(std::move(ownership), grace),
      providers_(providers),
      client_(client),
      timers_(timers),
      owned_(std::move(owned)),
      known_(std::move(known)),
      holds_lease_(std::move(holds_lease)),
      waiter_(timers.make_waiter()),
      ended_(
          metrics.counter("spillway_orphans_terminated_total", "Instances of ours without a pod that were ended.", {})),
      failed_(metrics.counter("spillway_orphan_failures_total",
                              "Attempts to end an instance without a pod that failed.", {})) {}

void SweepController::on_listing(const base::ProviderName& provider, const provider::OwnedList& list) {
  if (!list.complete) return;
  for (core::OrphanSweep::Orphan& orphan : sweep_.look(provider, list.instances, owned_, timers_.now())) {
    if (orphan.instance.state == model::InstanceState::kTerminating) continue;
    const bool queued =
        std::any_of(due_.begin(), due_.end(), [&](const auto& o) { return o.instance.ref == orphan.instance.ref; });
    if (!queued) due_.push_back(std::move(orphan));
  }
  if (!due_.empty()) waiter_->wake();
}

async::Loop SweepController::run() {
  for (;;) {
    if (due_.empty()) co_await waiter_->wait();
    if (due_.empty()) continue;
    // One live look serves all that are due.
    auto living = co_await client_.list_pod_uids(timers_.now() + kCallDeadline);
    std::deque<core::OrphanSweep::Orphan> batch = std::exchange(due_, {});
    if (!living) {
      log::warn("orphans are left alone, because the pods cannot be listed",
                {{"orphans", batch.size()}, {"error", living.error()}});
      continue;
    }
    for (core::OrphanSweep::Orphan& orphan : batch) {
      // A newer attempt of a living pod has its record; an older one that still exists is an orphan all the same.
      if (owned_(orphan.owner.uid, orphan.owner.attempt)) continue;
      const bool lives = living->contains(orphan.owner.uid.str());
      co_await end(std::move(orphan), lives);
    }
  }
}

boost::asio::awaitable<void> SweepController::end(core::OrphanSweep::Orphan orphan, bool pod_lives) {
  const model::InstanceRef ref = orphan.instance.ref;
  // A pod that lives at another node of this installation, or that we do not know yet, keeps what it bought.
  if (pod_lives && !known_(orphan.owner.uid)) co_return;
  // After a stand-still it may be the pod's of somebody else.
  if (!holds_lease_()) co_return;
  log::warn("ending an instance without a pod", {{"provider", ref.provider},
                                                 {"instance", ref.id},
                                                 {"tag", orphan.instance.tag},
                                                 {"uid", orphan.owner.uid},
                                                 {"attempt", orphan.owner.attempt}});
  auto done = co_await providers_.find(ref.provider)->terminate(ref, kOrphanGrace, timers_.now() + kCallDeadline);
  if (done || done.error().kind == base::ErrorKind::kNotFound) {
    ended_.add();
    co_return;
  }
  failed_.add();
  log::warn("an instance without a pod could not be ended", {{"instance", ref.id}, {"error", done.error()}});
}

}  // namespace spillway::control
