// Owns the pods: feeds pod_fsm with what happens, and performs the actions that come of it.
//
// Owned by the daemon; reactor thread only; the single writer of the pod store. It decides nothing itself: what to do
// is core/'s, when a purchase may be made is the installation lease's. Every purchase is preceded by an intent on the
// pod, and no create starts before the providers were asked what they hold.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/control/lane.hpp"
#include "vk-provider/control/ledger_keeper.hpp"
#include "vk-provider/control/placer.hpp"
#include "vk-provider/control/pod_metrics.hpp"
#include "vk-provider/control/pod_resolver.hpp"
#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/control/probe_controller.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/control/token_keeper.hpp"
#include "vk-provider/core/offer_book.hpp"
#include "vk-provider/core/owner_brake.hpp"
#include "vk-provider/core/pod_fsm.hpp"
#include "vk-provider/core/work_queue.hpp"
#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/event_recorder.hpp"
#include "vk-provider/kube/reflector.hpp"
#include "vk-provider/model/ownership.hpp"

namespace spillway::control {

/// What the pod controller uses; all of it outlives the controller.
struct PodDeps {
  boost::asio::any_io_executor executor;
  async::Timers* timers = nullptr;
  base::Random* random = nullptr;
  base::Metrics* metrics = nullptr;
  kube::Client* client = nullptr;
  kube::EventRecorder* events = nullptr;
  ProviderSet* providers = nullptr;
  provider::HandlerRunner* handlers = nullptr;
  core::OfferBook* offers = nullptr;
  Placer* placer = nullptr;
  LedgerKeeper* ledger = nullptr;
  model::Ownership ownership;
  std::vector<model::NodeProfile> nodes;
  core::PodPolicy policy;
  base::Duration create_deadline{std::chrono::seconds(20)};
  /// Whether the lease is ours until then. Nothing is changed, out there or at the API server, without it; a create may
  /// start only if its deadline lies inside it.
  std::function<bool(base::Deadline)> lease_covers;
  /// Until when a create of a former holder may still be under way.
  base::TimePoint old_creates_end{};
  /// Somebody should look at the provider soon.
  std::function<void(const base::ProviderName&)> ask_provider;
  /// A pod is new, has changed, or goes. May be empty.
  std::function<void(const model::PodRecord&)> pod_changed;
  /// Something of the provider is on its way: it should be looked at more often.
  std::function<void(const base::ProviderName&)> stir_provider;
};

class PodController {
 public:
  explicit PodController(PodDeps deps);
  ~PodController();
  PodController(const PodController&) = delete;
  PodController& operator=(const PodController&) = delete;

  /// The sink for the pods of one node (of the configuration).
  kube::ReflectorSink& sink(const std::string& node);

  /// Wakes pods whose time has come; runs until it is cancelled.
  async::Loop run();
  /// Runs the probes of their containers; until it is cancelled.
  async::Loop run_probes() { return probes_.run(); }

  /// Removes Failed pods that nobody needs any more (core/failed_pods); until it is cancelled.
  async::Loop run_cleanup();

  /// A listing of one provider, complete or not, that began at `began`.
  void on_listing(const base::ProviderName& provider, const provider::OwnedList& list, base::TimePoint began);
  /// After this, pods without an intent may be bought for although some provider was never listed completely.
  void stop_waiting_for_providers();

  /// The ledger holds all there is to say about what was bought for the pod.
  void entry_closed(const base::PodUid& uid) { post(uid, core::event::EntryClosed{}); }

  /// True if a record stands for this instance: the sweep must leave it alone.
  bool owns(const base::PodUid& uid, int attempt) const;
  /// True if something of this provider is on its way in or out.
  bool busy(const base::ProviderName& provider) const;
  /// True once every node's pods were listed completely.
  bool synced() const;
  bool recovered() const { return recovered_; }

  const PodStore& pods() const { return store_; }
  core::OwnerBrake& brake() { return brake_; }
  const core::ProbeView& probes() const { return probes_; }

  /// Begins nothing new; returns when what is under way has ended, or at the deadline.
  boost::asio::awaitable<void> drain(base::Deadline deadline);
  /// Cancels what is under way.
  boost::asio::awaitable<void> stop();

 private:
  class NodeSink;
  struct Job {
    base::PodUid uid;
    core::Action action;
    base::InstanceTag tag{};  // of a call to a provider: the attempt that it is about
  };
  /// What our annotations should say and do not.
  struct Stale {
    std::optional<model::StateRecord> state;
    std::optional<std::string> addresses;
  };
  struct ProviderLanes {
    std::unique_ptr<Lane<Job>> create;
    std::unique_ptr<Lane<Job>> other;
  };

  // Events in, actions out (pod_controller.cpp).
  void pod_seen(NodeSink& sink, std::string_view json);
  /// True if the object holds nothing that we do not know: most events are echoes of our own writes.
  bool is_echo(std::string_view json);
  void pod_gone(const base::PodUid& uid);
  void join(PodEntry& entry);
  void post(const base::PodUid& uid, core::Event event);
  bool holds_lease() const { return d_.lease_covers(d_.timers->now()); }
  void step(const base::PodUid& uid, const core::Event& event);
  void tell_placed(PodEntry& entry);
  void perform(const base::PodUid& uid, PodEntry& entry, core::Action action);
  void log_move(const PodEntry& entry) const;

  // Probes and hooks (pod_handlers.cpp).
  static kube::EventTarget target_of(const model::PodKey& key);
  ProbeDeps probe_deps();
  async::Loop run_hook(base::PodUid uid, core::action::RunHook hook);

  void finish_recovery();
  /// A complete listing does not hold what these pods expect.
  void tell_missing(const base::ProviderName& provider, const std::unordered_set<base::PodUid>& present,
                    base::TimePoint began);

  // The purchase and the rest of provider calls (pod_purchase.cpp).
  void choose(const base::PodUid& uid, PodEntry& entry);
  async::Loop resolve_then_buy(Job job);
  static const core::Requirements& needs_of(PodEntry& entry);
  boost::asio::awaitable<std::expected<model::ResolvedPod, core::Hindrance>> resolve(PodEntry& entry);
  /// The offer to buy. Without one the pod is told why, and waits.
  std::optional<core::Candidate> select(const base::PodUid& uid, PodEntry& entry);
  void refuse(const base::PodUid& uid, PodEntry& entry, std::string message,
              model::WaitReason why = model::WaitReason::kRefused);
  /// Leaves it as it is for a moment: nothing is to be told to anybody.
  void choose_again(const base::PodUid& uid, PodEntry& entry);
  void hold(const base::PodUid& uid, PodEntry& entry, model::WaitReason why, std::string message,
            std::optional<base::TimePoint> again_at);
  void buy(const base::PodUid& uid, PodEntry& entry);
  async::Loop create(Job job);
  async::Loop call_provider(Job job);
  ProviderLanes& lanes(const base::ProviderName& provider);

  // Writes to the API server (pod_writes.cpp).
  void consider_status(const base::PodUid& uid, PodEntry& entry);
  async::Loop write(Job job);
  /// The version that the pod then has. After a conflict the pod was read again, and the caller finds that noted.
  async::Task<std::string> send_patch(kube::PodStatusPatch patch);
  async::Loop write_intent(base::PodUid uid);
  async::Loop write_status(base::PodUid uid);
  async::Loop delete_pod(base::PodUid uid);
  static Stale stale_annotations(const model::PodRecord& record);
  /// True if the pod does not show that status, or if its annotations are to be written now.
  bool is_due(const PodEntry& entry, const model::PodStatus& wanted, const Stale& stale, base::TimePoint now) const;
  void write_ended(const base::PodUid& uid, PodEntry& entry);
  void note_published(PodEntry& entry, bool running, bool ready);

  PodDeps d_;
  PodStore store_;
  model::SpecPool specs_;
  core::OwnerBrake brake_;
  core::WorkQueue<base::PodUid> wakes_;
  std::unique_ptr<async::Waiter> waker_;
  std::unordered_set<base::PodUid> again_;  // to be chosen for again: the first prices or the ledger are awaited
  PodMetrics metrics_;
  ProbeController probes_;
  std::map<std::string, std::unique_ptr<NodeSink>> sinks_;

  std::deque<std::pair<base::PodUid, core::Event>> events_;
  bool stepping_ = false;

  // Recovery: what each provider holds, until its pods are joined.
  std::map<base::ProviderName, base::TimePoint> listed_;  // began of the newest complete listing
  std::unordered_map<base::PodUid, model::Instance> found_;
  std::unordered_set<base::PodUid> unjoined_;
  bool recovered_ = false;

  async::TaskGroup group_;
  async::TaskGroup keepers_;  // loops without an end, for which a shutdown does not wait
  Lane<Job> writes_;          // intents, statuses, deletions
  Lane<Job> reads_;           // of what pods refer to
  PodResolver resolver_;
  TokenKeeper tokens_;
  ChangeNotice changes_;
  std::map<base::ProviderName, ProviderLanes> lanes_;
};

}  // namespace spillway::control
