// Tells a pod by an event that a ConfigMap or Secret it mounts has changed: its files are those of its start.
//
// Owned by the pod controller; reactor thread only. Looks once a minute at each object that a running pod mounts, and
// never at more than five a second. Nothing is watched: a watch of Secrets needs the right to list all of them. Keeps
// digests, no values. What changed while no daemon ran is not told.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/core/references.hpp"
#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/event_recorder.hpp"

namespace spillway::control {

/// Of the values of an object; 0 if there is none.
using ObjectDigest = std::uint64_t;
using ObjectDigests = std::map<core::ConfigSource, ObjectDigest>;

/// Of those that the pod mounts. What could not be read is left out.
ObjectDigests digests_of(const core::References& references, const core::Surroundings& read);

class ChangeNotice {
 public:
  /// All of it outlives the notice.
  ChangeNotice(const PodStore& pods, kube::Client& client, async::Timers& timers, kube::EventRecorder& events)
      : pods_(pods), client_(client), timers_(timers), events_(events) {}

  /// The pod starts with these values.
  void given(const base::PodUid& pod, ObjectDigests values);

  /// Runs until it is cancelled.
  async::Loop run();

 private:
  struct Object {
    std::string ns;
    core::ConfigSource source;
    auto operator<=>(const Object&) const = default;
  };
  using Users = std::map<Object, std::vector<base::PodUid>>;

  Users users();
  async::Loop look(Object object, std::vector<base::PodUid> users);
  void compare(const Object& object, const base::PodUid& pod, ObjectDigest now);

  const PodStore& pods_;
  kube::Client& client_;
  async::Timers& timers_;
  kube::EventRecorder& events_;
  std::unordered_map<base::PodUid, ObjectDigests> known_;
};

}  // namespace spillway::control
