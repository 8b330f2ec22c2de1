// Brings one virtual node to the state of its gate: the taints, and the condition that says why.
//
// Owned by gate_controller, one per node; reactor thread only. The only writer of the gate's taints. It changes no
// taint of others, writes nothing if nothing is wrong, and every write is valid only at the version of the Node that it
// was computed from. A person's order on the Node (spillway.dev/gate) comes before the gate's decision. It writes no
// Node that is not of this installation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/core/gate_policy.hpp"
#include "vk-provider/core/repair_brake.hpp"
#include "vk-provider/kube/event_recorder.hpp"
#include "vk-provider/kube/gate_codec.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::control {

/// What the gate has decided.
struct GateWish {
  GateWish() = default;
  core::GateState state = core::GateState::kClosed;
  std::string reason;            // of the condition: Need, Level, Surplus, ...
  std::string message;           // a sentence with the numbers
  base::TimePoint since{};       // when the state was decided
  base::TimePoint rule_since{};  // since when its rule held
};

struct GateWriterConfig {
  GateWriterConfig() = default;
  std::string gate;
  std::string node;
  std::string installation;
  bool soft_taint = true;
};

class GateWriter {
 public:
  /// Everything must outlive it; `events` may be null.
  GateWriter(GateWriterConfig config, kube::KubeApi& api, async::Timers& timers, base::Random& random,
             base::Metrics& metrics, kube::EventRecorder* events);
  GateWriter(const GateWriter&) = delete;
  GateWriter& operator=(const GateWriter&) = delete;

  /// Runs until it is cancelled; does nothing before the first wish.
  async::Loop run();
  void want(GateWish wish);

  // What the watch says of the Node.
  void on_node(kube::GateNode node);
  void on_gone();

  const std::string& name() const { return config_.node; }
  const std::optional<kube::GateNode>& node() const { return node_; }
  /// The order that is in force on the Node.
  std::optional<core::GateOverride> order() const;
  /// An Event on the Node, if there is one.
  void tell(bool warning, const std::string& reason, const std::string& message);

 private:
  bool writable() const;
  /// Does what is due now and says when to look again.
  boost::asio::awaitable<base::TimePoint> step();
  core::GateState wanted() const;
  void watch_orders();
  bool taints_fit(core::GateState state) const;
  std::vector<kube::RawTaint> wanted_taints(core::GateState state) const;
  async::Task<void> write_taints(core::GateState state);
  async::Task<void> write_condition(core::GateState state);
  bool condition_due(core::GateState state, base::TimePoint& next) const;
  base::WallTime condition_since(bool open) const;
  void note_written(core::GateState state, bool repair, bool gate_moved);
  base::TimePoint retry_at(const base::Error& error, const char* what);

  GateWriterConfig config_;
  kube::KubeApi& api_;
  async::Timers& timers_;
  base::Random& random_;
  kube::EventRecorder* events_;
  std::unique_ptr<async::Waiter> waiter_;
  std::optional<GateWish> wish_;
  std::optional<kube::GateNode> node_;
  std::string newest_version_;
  core::RepairBrake brake_;
  /// The state in which the Node was last seen right, and which Node that was: who changes it then is a foreigner.
  std::optional<core::GateState> settled_;
  std::string settled_uid_;
  std::optional<core::GateOverride> told_order_;
  std::string told_order_problem_;
  base::TimePoint condition_written_{};
  int failed_in_a_row_ = 0;
  base::Gauge& overridden_;
  base::Counter& conflicts_;
  base::Counter& repairs_;
  base::Counter& failures_;
  base::Histogram& decision_seconds_;
};

}  // namespace spillway::control
