// Replaces the service account tokens of running pods before they expire.
//
// Owned by the pod controller; reactor thread only. Keeps no token: a new one is asked for, handed to the provider and
// forgotten. Only for pods whose author lets the token leave the cluster, on providers that can replace files. What a
// former daemon gave out is of unknown age and renewed at the first look.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "vk-provider/control/lane.hpp"
#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/event_recorder.hpp"

namespace spillway::control {

/// When a token that was given now is renewed: after 80 % of its life or a day, as a kubelet does it.
base::TimePoint renewal_of(const model::BoundToken& token, const base::Now& now);

class TokenKeeper {
 public:
  /// All of it outlives the keeper, whose renewals live in the group.
  TokenKeeper(const PodStore& pods, ProviderSet& providers, kube::Client& client, async::Timers& timers,
              kube::EventRecorder& events, async::TaskGroup& group);

  /// The pod was resolved with tokens of which the first is to be renewed then.
  void given(const base::PodUid& pod, base::TimePoint renew_at) { due_[pod] = renew_at; }

  /// Runs until it is cancelled.
  async::Loop run();

 private:
  std::vector<base::PodUid> due_pods();
  async::Loop keep(base::PodUid uid);
  async::Task<void> renew(base::PodUid uid);

  const PodStore& pods_;
  ProviderSet& providers_;
  kube::Client& client_;
  async::Timers& timers_;
  kube::EventRecorder& events_;
  std::unordered_map<base::PodUid, base::TimePoint> due_;
  std::unordered_set<base::PodUid> under_way_;
  Lane<base::PodUid> lane_;
};

}  // namespace spillway::control
