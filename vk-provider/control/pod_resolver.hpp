// Reads what a pod refers to, and hands it to core/resolve.
//
// Owned by the pod controller; reactor thread only. Each object is read once per resolve and then forgotten: values are
// those at the start of the pod, no Secret is kept, and nothing is watched. How many pods are resolved at once is the
// caller's to bound.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/control/change_notice.hpp"
#include "vk-provider/control/service_cache.hpp"
#include "vk-provider/core/resolve.hpp"
#include "vk-provider/kube/client.hpp"
#include "vk-provider/model/node_profile.hpp"

namespace spillway::control {

struct Resolution {
  std::expected<model::ResolvedPod, core::Hindrance> pod;
  std::vector<core::Note> notes;  // events for the pod, in both cases
  ObjectDigests mounted{};        // of what its files come from
  std::optional<base::TimePoint> renew_tokens_at{};
};

class PodResolver {
 public:
  PodResolver(kube::Client& client, async::Timers& timers)
      : client_(client), timers_(timers), services_(client, timers) {}

  /// `profile` outlives the call.
  boost::asio::awaitable<Resolution> resolve(model::PodSpecPtr pod, const model::NodeProfile& profile,
                                             std::vector<int> public_ports);

 private:
  using Read = std::expected<core::Surroundings, core::Hindrance>;
  boost::asio::awaitable<Read> read(model::PodSpecPtr pod, const model::NodeProfile& profile, base::Deadline deadline);
  boost::asio::awaitable<std::expected<std::vector<model::PullAuth>, core::Hindrance>> read_pull_secrets(
      model::PodSpecPtr pod, const core::Surroundings& read, std::vector<core::Note>& notes, base::Deadline deadline);

  kube::Client& client_;
  async::Timers& timers_;
  ServiceCache services_;
};

}  // namespace spillway::control
