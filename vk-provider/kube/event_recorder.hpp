// Kubernetes Events with de-duplication, at the lowest priority of all writes: while the statuses of pods are being
// written, events wait, at most five seconds.
//
// The same (object, reason, message) within ten minutes raises the count of one Event; one object gets at most 25 at a
// burst and then one per 5 minutes, as client-go does. The queue is bounded: what does not fit is dropped and counted.
// Owned by the daemon; reactor thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/kube/client.hpp"

namespace spillway::kube {

struct EventTarget {
  EventTarget() = default;
  std::string_view kind = "Pod";  // of static storage
  base::SharedText ns;            // empty for a Node; its events go to the namespace `default`
  base::SharedText name;
  base::SharedText uid;
};

EventTarget target_of(const model::PodKey& pod);

class EventRecorder {
 public:
  EventRecorder(Client& client, async::Timers& timers, base::Metrics& metrics, std::string host);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void normal(const EventTarget& target, std::string reason, std::string message);
  void warning(const EventTarget& target, std::string reason, std::string message);

  /// Sends what is queued, until it is cancelled.
  async::Loop run();
  /// Number of events not yet sent: at shutdown the daemon waits for 0 or its time-out.
  size_t pending() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::kube
