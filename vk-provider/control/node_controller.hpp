// Registers one virtual node and keeps it as its profile wants it.
//
// Owned by the daemon, one per profile; reactor thread only. Creates the Node or adopts it, restores what somebody
// removed of ours, creates it again at once when it is deleted, and renews its Lease. It never touches a taint, label,
// condition, annotation or address of others, never writes a Node that is not of this installation, and deletes
// nothing when it stops. It does not know pods or providers: the daemon tells it whether the latter can be reached.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/control/node_lease.hpp"
#include "vk-provider/control/node_plan.hpp"
#include "vk-provider/kube/event_recorder.hpp"
#include "vk-provider/kube/node_client.hpp"
#include "vk-provider/kube/reflector.hpp"

namespace spillway::control {

class NodeController final : private kube::ReflectorSink {
 public:
  /// `lease_api` is a KubeApi that nobody else keeps busy. `events` may be null.
  NodeController(NodeSettings profile, kube::KubeApi& api, kube::KubeApi& lease_api, async::Timers& timers,
                 base::Random& random, base::Metrics& metrics, kube::EventRecorder* events);
  ~NodeController() override;
  NodeController(const NodeController&) = delete;
  NodeController& operator=(const NodeController&) = delete;

  /// Runs until it is cancelled.
  async::Loop run();

  /// Shown as the condition SpillwayProvidersReachable. Ready stays True: an outage of a cloud must not evict pods.
  void set_providers_reachable(bool reachable, std::string reason, std::string message);

  const std::string& name() const { return profile_.name; }
  /// The Node stands at the API server, is ours, and has its status.
  bool registered() const;
  /// Why the Node cannot be registered; empty if nothing is wrong. For /readyz and `status`.
  const std::string& problem() const { return problem_; }
  /// When this process last had to create a Node again that had been deleted. Deletions of pods soon after that come
  /// from the pod garbage collector, not from a user.
  std::optional<base::TimePoint> last_recreated() const { return last_recreated_; }

 private:
  struct Pace {  // of one kind of step: slows down a fight with somebody who undoes it
    base::TimePoint last{};
    int streak = 0;
  };

  // kube::ReflectorSink
  void on_list_begin() override;
  void on_list_end() override;
  void on_object(std::string_view json) override;
  void on_deleted(std::string_view json) override;

  async::Loop reconcile();
  /// Does what is due now and says when to look again.
  boost::asio::awaitable<base::TimePoint> reconcile_once();
  async::Task<void> learn_server_version();
  async::Task<void> create_node();
  async::Task<void> perform(NodeStep step);
  /// Reads the Node after a write showed that our copy is old.
  async::Task<void> refresh();
  void observe(kube::ObservedNode node);
  void take_over();
  void forget_node();
  void refuse(const kube::ObservedNode& node);
  base::TimePoint retry_at(const base::Error& error, const char* what);
  base::TimePoint not_before(NodeStep step) const;
  void note_done(NodeStep step);
  void rebuild_wanted();
  void tell_event(bool warning, const std::string& reason, const std::string& message);
  bool ours(const kube::ObservedNode& node) const;

  NodeSettings profile_;
  kube::NodeClient client_;
  async::Timers& timers_;
  base::Random& random_;
  kube::EventRecorder* events_;
  NodeLease lease_;
  std::unique_ptr<kube::Reflector> reflector_;
  std::unique_ptr<async::Waiter> waiter_;
  base::Counter& created_;
  base::Counter& recreated_;
  base::Counter& writes_;
  base::Counter& failures_;

  std::string server_version_;
  ProvidersCondition providers_;
  WantedNode wanted_;
  bool listed_ = false;  // the first list is complete: an absent Node is really absent
  bool seen_in_list_ = false;
  std::optional<kube::ObservedNode> observed_;
  std::string newest_version_;  // resourceVersion of the newest that we know of the Node, also of its deletion
  std::string uid_;             // of the Node that we created or adopted; empty before
  std::optional<base::TimePoint> last_report_;
  std::optional<base::TimePoint> last_recreated_;
  std::optional<base::TimePoint> last_complaint_;
  std::map<NodeStep, Pace> paces_;  // that of creation stands under kNone
  int failed_in_a_row_ = 0;
  std::string problem_;
};

}  // namespace spillway::control
