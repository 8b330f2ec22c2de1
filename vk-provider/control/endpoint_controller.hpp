// Keeps our EndpointSlices: watches Services and our slices, follows the pods, and writes what core/endpoint_slices
// wants to stand.
//
// Owned by daemon/active while the installation lease is held; reactor thread only. One watch of all Services and one
// of our own slices; the pods come from the pod controller. The only writer of our slices; it touches no others, writes
// nothing that stands already, and each write is valid only at the version that it was computed from.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/control/lane.hpp"
#include "vk-provider/core/endpoint_slices.hpp"
#include "vk-provider/kube/event_recorder.hpp"
#include "vk-provider/kube/reflector.hpp"

namespace spillway::control {

/// What the controller uses; all of it outlives the controller.
struct EndpointDeps {
  EndpointDeps() = default;
  boost::asio::any_io_executor executor;
  kube::KubeApi* api = nullptr;
  async::Timers* timers = nullptr;
  base::Random* random = nullptr;
  base::Metrics* metrics = nullptr;
  kube::EventRecorder* events = nullptr;  // may be null
  core::EndpointScope scope;
  /// The pods of all nodes were listed: until then nothing is concluded from a pod that is not known.
  std::function<bool()> pods_known;
  std::function<bool()> holds_lease;
};

class EndpointController {
 public:
  explicit EndpointController(EndpointDeps deps);
  ~EndpointController();
  EndpointController(const EndpointController&) = delete;
  EndpointController& operator=(const EndpointController&) = delete;

  /// A sink that reads the labels of the pods of one node and hands all on to `next`; fed by nobody once that is gone.
  kube::ReflectorSink& watch_labels(kube::ReflectorSink& next);
  /// To be called for each pod that is new, has changed, or goes.
  void on_pod(const model::PodRecord& record);

  /// Runs until it is cancelled.
  async::Loop run();

  /// What was found at the start was brought to what should stand, or was tried once.
  bool reconciled() const { return reconciled_; }

 private:
  class ServiceSink;
  class SliceSink;
  class LabelSink;
  using Key = std::pair<std::string, std::string>;  // namespace, name
  struct Namespace {
    std::map<std::string, model::EndpointService> services;  // by name
    std::map<std::string, model::EndpointSlice> slices;      // by name
    std::map<base::PodUid, core::EndpointPod> pods;          // those that may have an endpoint
    std::optional<base::TimePoint> changed_at;               // since when it is to be looked at
    base::TimePoint look_at = base::TimePoint::max();        // when it is, although nothing has changed
  };
  struct Job {
    enum class Verb : std::uint8_t { kCreate, kPatch, kDelete };
    Verb verb = Verb::kCreate;
    model::EndpointSlice slice;
    base::TimePoint changed_at{};
  };
  struct Failure {
    int count = 0;
    base::TimePoint retry_at{};
    base::TimePoint changed_at{};
  };
  struct Gap {
    std::string text;
    base::TimePoint since{};
    bool told = false;
  };
  using GapKey = std::pair<std::string, size_t>;  // UID of the Service, index of its port
  using Gaps = std::map<GapKey, Gap>;

  // What is known (endpoint_controller.cpp).
  void note_change(const std::string& ns);
  void absorb(model::EndpointSlice slice);
  void forget(const Key& key);
  boost::asio::awaitable<void> wait_until_due(base::TimePoint next);
  /// Starts the writes that are due; says when to look again.
  base::TimePoint evaluate();
  void evaluate(const std::string& name, Namespace& ns);
  void start(Job job, Namespace& ns);
  void follow_gaps(const std::string& name, Namespace& ns, const std::vector<core::EndpointGap>& found);
  void tell(const core::EndpointGap& gap, const std::string& text);
  void show() const;

  // What is written (endpoint_writes.cpp).
  async::Loop write(Job job);
  boost::asio::awaitable<base::Result<void>> send(const Job& job);
  /// What stands now, after a write that failed.
  boost::asio::awaitable<void> read_again(Key key);
  void note_failure(const Job& job, const base::Error& error);

  EndpointDeps d_;
  std::unordered_map<base::PodUid, base::SharedText> labels_;  // of all pods of our nodes
  std::vector<std::unique_ptr<LabelSink>> label_sinks_;
  std::map<std::string, Namespace> namespaces_;
  std::map<std::string, Gaps> gaps_;  // by namespace
  std::set<Key> under_way_;
  std::map<Key, Failure> failures_;
  std::unique_ptr<ServiceSink> service_sink_;
  std::unique_ptr<SliceSink> slice_sink_;
  kube::Reflector services_;
  kube::Reflector slices_;
  std::unique_ptr<async::Waiter> waiter_;
  std::optional<base::TimePoint> changed_at_;
  base::Duration cost_{};  // of the last evaluation
  bool begun_ = false;
  bool reconciled_ = false;
  async::TaskGroup group_;
  Lane<Job> writes_;
  base::Histogram& update_seconds_;
};

}  // namespace spillway::control
