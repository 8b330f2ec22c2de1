// Ends instances that nobody owns: pods that were force-deleted, deleted while the daemon was away, or bought late.
//
// Owned by the daemon; reactor thread only. Works for ever, on the listings that the provider controllers bring. It
// never touches an instance without our tag, and asks the API server once more before it ends one.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_set>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/core/orphan_sweep.hpp"
#include "vk-provider/kube/client.hpp"

namespace spillway::control {

class SweepController {
 public:
  SweepController(model::Ownership ownership, base::Duration grace, ProviderSet& providers, kube::Client& client,
                  async::Timers& timers, base::Metrics& metrics,
                  std::function<bool(const base::PodUid&, int attempt)> owned,
                  std::function<bool(const base::PodUid&)> known, std::function<bool()> holds_lease);

  /// Takes in a complete listing. To be called only while the pods are known completely.
  void on_listing(const base::ProviderName& provider, const provider::OwnedList& list);

  /// Ends what is due; runs until it is cancelled.
  async::Loop run();

 private:
  boost::asio::awaitable<void> end(core::OrphanSweep::Orphan orphan, bool pod_lives);

  core::OrphanSweep sweep_;
  ProviderSet& providers_;
  kube::Client& client_;
  async::Timers& timers_;
  std::function<bool(const base::PodUid&, int attempt)> owned_;
  std::function<bool(const base::PodUid&)> known_;
  std::function<bool()> holds_lease_;
  std::unique_ptr<async::Waiter> waiter_;
  std::deque<core::OrphanSweep::Orphan> due_;
  base::Counter& ended_;
  base::Counter& failed_;
};

}  // namespace spillway::control
