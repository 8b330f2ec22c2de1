// Runs the capacity gates: watches home, asks Prometheus, decides, and lets the writers write.
//
// One per process, whatever the number of gates; owned by daemon/gate_runner while it holds the gates' Lease; reactor
// thread only. One watch of all nodes and one of all pods feed the books of all gates, by event. Decides nothing
// itself: core/gate_policy does; writes nothing itself: gate_writer does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/control/gate_listener.hpp"
#include "vk-provider/control/gate_settings.hpp"
#include "vk-provider/control/gate_writer.hpp"
#include "vk-provider/kube/event_recorder.hpp"
#include "vk-provider/kube/prometheus_client.hpp"
#include "vk-provider/kube/reflector.hpp"

namespace spillway::control {

struct GateDeps {
  GateDeps() = default;
  kube::KubeApi* api = nullptr;
  async::Timers* timers = nullptr;
  base::Random* random = nullptr;
  base::Metrics* metrics = nullptr;
  kube::EventRecorder* events = nullptr;         // may be null
  kube::PrometheusClient* prometheus = nullptr;  // null: there is none; the gates' modes are then Kubernetes
  std::string installation;
};

class GateController {
 public:
  /// All that is in `deps` must outlive it.
  GateController(std::vector<GateSettings> gates, GateDeps deps);
  ~GateController();
  GateController(const GateController&) = delete;
  GateController& operator=(const GateController&) = delete;

  /// Runs until it is cancelled.
  async::Loop run();

  /// Nodes and pods are known completely.
  bool synced() const;

  /// Before run(); it must live until that has ended.
  void set_listener(GateListener* listener) { listener_ = listener; }
  size_t gates() const { return gates_.size(); }
  const GateSettings& settings(size_t gate) const;
  const core::HomeBook& book(size_t gate) const;

 private:
  struct Gate;
  class NodeSink;
  class PodSink;

  void note_change();
  /// When something is due: a gate asked to be looked at, or what changed has waited long enough for more.
  boost::asio::awaitable<void> wait_until_due(base::TimePoint next);
  base::TimePoint evaluate_all();
  void adopt(Gate& gate);
  void show(Gate& gate, const core::GateDecision& decision);
  void tell_listener(size_t gate, const core::GateDecision& decision);
  void tell(Gate& gate, core::GateNotice notice, const core::GateDecision& decision);
  async::Loop poll(Gate& gate);
  boost::asio::awaitable<core::GatePoll> ask_free(const Gate& gate);
  boost::asio::awaitable<void> ask_sick(Gate& gate);

  GateDeps d_;
  GateListener* listener_ = nullptr;
  std::vector<std::unique_ptr<Gate>> gates_;
  std::unique_ptr<NodeSink> node_sink_;
  std::unique_ptr<PodSink> pod_sink_;
  kube::Reflector nodes_;
  kube::Reflector pods_;
  std::unique_ptr<async::Waiter> waiter_;
  std::optional<base::TimePoint> changed_at_;
  base::Histogram& evaluation_seconds_;
};

}  // namespace spillway::control
