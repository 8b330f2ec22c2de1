// Runs the drains home: feeds their policies, carries out what they ask for, and tells people.
//
// One per process, whatever the number of gates; owned by daemon/gate_runner beside the GateController, and like it
// only while the gates' Lease is held; reactor thread only. Pods, home and the gates' decisions come from the
// GateController; it watches PodDisruptionBudgets itself. Decides nothing: core/drain_policy does. It writes pods by
// two requests only: an Eviction of that very pod, and (mode surge) one patch of a label and two annotations.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/control/gate_controller.hpp"
#include "vk-provider/control/gate_listener.hpp"
#include "vk-provider/core/drain_policy.hpp"

namespace spillway::control {

class DrainController final : public GateListener {
 public:
  /// Listens to the gates from now on. They, and all that is in `deps`, must outlive it; run() must have ended before.
  DrainController(GateController& gates, GateDeps deps);
  ~DrainController() override;
  DrainController(const DrainController&) = delete;
  DrainController& operator=(const DrainController&) = delete;

  /// Runs until it is cancelled. What it has begun stands on the pods, and the next one goes on with it.
  async::Loop run();

  void on_pods_begin() override;
  void on_pods_end() override;
  void on_pod(const model::HomePod& pod) override;
  void on_pod_deleted(const std::string& uid) override;
  void on_decision(size_t gate, const core::GateDecision& decision, std::set<std::string> closed_nodes) override;

 private:
  struct Drain;
  class BudgetSink;

  /// Soon: what changes together is looked at once.
  void note_change();
  void note_at_once();
  boost::asio::awaitable<void> wait_until_due(base::TimePoint next);
  base::TimePoint step_all(async::TaskGroup& parts);
  void show(Drain& drain, const core::DrainStep& step);
  void tell(const Drain& drain, const core::DrainNotice& notice);
  async::Loop perform(size_t gate, core::DrainOrder order);

  GateDeps d_;
  std::vector<std::unique_ptr<Drain>> drains_;
  std::unique_ptr<BudgetSink> budget_sink_;
  std::unique_ptr<kube::Reflector> budgets_;  // null if every drain is off
  std::unique_ptr<async::Waiter> waiter_;
  std::optional<base::TimePoint> due_;
};

}  // namespace spillway::control
