// Runs the probes of all containers, and tells of each change of a verdict.
//
// Owned by pod_controller; reactor thread only. One queue of times for all pods; a coroutine exists only for a probe
// that is being run, so many at once for each provider. A probe that hangs ends at its time-out and holds up no other.
// What a result means is core/probe_fsm's; what follows from a verdict is pod_fsm's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/control/lane.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/core/probe_fsm.hpp"
#include "vk-provider/core/probe_view.hpp"
#include "vk-provider/core/work_queue.hpp"
#include "vk-provider/model/pod_record.hpp"
#include "vk-provider/provider/handler_runner.hpp"

namespace spillway::control {

/// What it uses; all of it outlives the controller.
struct ProbeDeps {
  boost::asio::any_io_executor executor;
  async::Timers* timers = nullptr;
  provider::HandlerRunner* handlers = nullptr;
  ProviderSet* providers = nullptr;
  std::function<void(const base::PodUid&, core::event::ProbeChanged)> changed;
  /// For an event on the pod: "Readiness probe failed: ...". Told of the first failure in a row, of one with
  /// other words, and of a verdict.
  std::function<void(const model::PodKey&, std::string)> unhealthy;
};

class ProbeController final : public core::ProbeView {
 public:
  explicit ProbeController(ProbeDeps deps);

  /// Looks at a record that may have changed: which of its probes are to be run from now on.
  void follow(const model::PodRecord& record);
  void forget(const base::PodUid& uid);

  /// Runs what is due; until it is cancelled.
  async::Loop run();
  boost::asio::awaitable<void> stop() { co_await group_.stop(); }

  void each_probe(std::string_view node, const Visit& visit) const override;
  /// How many are watched; for tests.
  size_t size() const;

 private:
  struct Watched {
    std::uint64_t id = 0;
    size_t container = 0;
    std::int32_t run = 0;
    core::ProbeKind kind{};
    core::ProbeFsm fsm;
    size_t told = 0;  // hash of the words that were told last
    // How often it came out how.
    std::uint32_t successful = 0;
    std::uint32_t failed = 0;
    std::uint32_t unknown = 0;
  };
  struct Pod {
    model::PodSpecPtr spec;
    model::InstanceRef ref;
    base::SharedText address;
    std::vector<Watched> probes;
  };
  struct Job {
    base::PodUid uid;
    std::uint64_t probe = 0;
  };

  void follow_container(Pod& pod, const model::PodRecord& record, size_t index);
  void begin_due(const base::PodUid& uid);
  async::Loop run_one(Job job);
  Watched* find(const Job& job);
  /// What the result is for the count; empty if it says nothing about the container.
  std::optional<bool> meaning(const Pod& pod, const model::Probe& probe, const base::Result<void>& result) const;
  void conclude(const Job& job, const base::Result<void>& result);

  ProbeDeps d_;
  std::unordered_map<base::PodUid, Pod> pods_;
  core::WorkQueue<base::PodUid> queue_;
  std::unique_ptr<async::Waiter> waiter_;
  std::uint64_t next_id_ = 1;
  async::TaskGroup group_;
  std::map<base::ProviderName, std::unique_ptr<Lane<Job>>> lanes_;
};

}  // namespace spillway::control
