#include "vk-provider/control/pod_controller.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/core/pod_fsm.hpp"
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

// Wide enough to keep an API server busy, narrow enough to leave it to others, too.
constexpr size_t kWritesAtOnce = 16;
constexpr size_t kReadsAtOnce = 16;

}  // namespace

/// The pods of one node. A complete list says which of them are gone.
class PodController::NodeSink final : public kube::ReflectorSink {
 public:
  NodeSink(PodController& controller, const model::NodeProfile& profile) : controller_(controller), profile_(profile) {}

  void on_list_begin() override {
    for (auto& [uid, entry] : controller_.store_) {
      if (entry.profile == &profile_) entry.in_list = false;
    }
  }
  void on_list_end() override {
    std::vector<base::PodUid> gone;
    for (const auto& [uid, entry] : controller_.store_) {
      if (entry.profile == &profile_ && !entry.in_list && !entry.record.api_gone) gone.push_back(uid);
    }
    for (const base::PodUid& uid : gone) controller_.pod_gone(uid);
    listed_ = true;
    controller_.finish_recovery();
  }
  void on_object(std::string_view json) override { controller_.pod_seen(*this, json); }
  void on_deleted(std::string_view json) override {
    const auto pod = kube::decode_pod(json, [](const base::PodUid&) { return true; });
    if (pod) controller_.pod_gone(pod->key.uid);
  }

  const model::NodeProfile& profile() const { return profile_; }
  bool listed() const { return listed_; }

 private:
  PodController& controller_;
  const model::NodeProfile& profile_;
  bool listed_ = false;
};

PodController::PodController(PodDeps deps)
    : d_(std::move(deps)),
      waker_(d_.timers->make_waiter()),
      metrics_(*d_.metrics),
      probes_(probe_deps()),
      group_(d_.executor),
      keepers_(d_.executor),
      writes_(group_, kWritesAtOnce, [this](Job job) { return write(std::move(job)); }),
      reads_(group_, kReadsAtOnce, [this](Job job) { return resolve_then_buy(std::move(job)); }),
      resolver_(*d_.client, *d_.timers),
      tokens_(store_, *d_.providers, *d_.client, *d_.timers, *d_.events, keepers_),
      changes_(store_, *d_.client, *d_.timers, *d_.events) {
  for (const model::NodeProfile& profile : d_.nodes)
    sinks_.emplace(profile.name, std::make_unique<NodeSink>(*this, profile));
}

PodController::~PodController() = default;

kube::ReflectorSink& PodController::sink(const std::string& node) { return *sinks_.at(node); }

async::Loop PodController::run() {
  keepers_.spawn(tokens_.run());
  keepers_.spawn(changes_.run());
  for (;;) {
    while (const auto uid = wakes_.take(d_.timers->now())) {
      PodEntry* const entry = store_.find(*uid);
      if (again_.erase(*uid) > 0 && entry != nullptr && std::holds_alternative<model::Choosing>(entry->record.stage)) {
        choose(*uid, *entry);
      } else {
        post(*uid, core::event::Tick{});
      }
    }
    co_await waker_->wait_until(wakes_.next_due().value_or(base::TimePoint::max()));
  }
}

bool PodController::is_echo(std::string_view json) {
  const kube::PodPeek peek = kube::peek_pod(json);
  PodEntry* entry = store_.find(base::PodUid(std::string(peek.uid)));
  if (entry == nullptr || std::holds_alternative<model::Admitted>(entry->record.stage)) return false;
  // Each of our writes counts only on top of what we knew: a version that it made, or an older one, holds no news.
  const std::string& known = entry->record.observed.resource_version;
  if (peek.resource_version != known && !model::is_older_version(peek.resource_version, known)) return false;
  entry->in_list = true;
  return true;
}

void PodController::pod_seen(NodeSink& sink, std::string_view json) {
  if (is_echo(json)) return;
  auto decoded =
      kube::decode_pod(json, [this](const base::PodUid& uid) { return store_.find(uid) != nullptr; }, &specs_);
  if (!decoded) {
    log::error("pod cannot be read", {{"node", sink.profile().name}, {"error", decoded.error()}});
    return;
  }
  const base::PodUid uid = decoded->key.uid;
  if (PodEntry* known = store_.find(uid)) {
    known->in_list = true;
    return post(uid, core::event::PodSeen{std::move(decoded->observed)});
  }
  if (decoded->is_static) return;
  // The selector is the server's; buying for a pod of another node would be ours to answer for.
  if (!decoded->spec || decoded->spec->node_name != sink.profile().name) return;
  const base::Now now = d_.timers->both();
  PodEntry entry;
  entry.record = core::admit(decoded->spec, std::move(decoded->observed), now);
  entry.profile = &sink.profile();
  entry.bound_at = now.steady;
  entry.in_list = true;
  PodEntry& stored = store_.insert(uid, std::move(entry));
  metrics_.added(stored);
  if (core::is_placeholder(*stored.record.spec, stored.record.observed)) {
    log::info("a DaemonSet's pod that tolerates everything is shown as Running; nothing is bought for it",
              {{"pod", stored.record.key().to_string()}, {"uid", uid}});
    return post(uid, core::event::Joined{});
  }
  unjoined_.insert(uid);
  if (d_.pod_changed) d_.pod_changed(stored.record);
  join(stored);
}

void PodController::pod_gone(const base::PodUid& uid) {
  if (store_.find(uid) != nullptr) post(uid, core::event::PodGone{});
}

bool PodController::synced() const {
  return std::all_of(sinks_.begin(), sinks_.end(), [](const auto& s) { return s.second->listed(); });
}

void PodController::post(const base::PodUid& uid, core::Event event) {
  events_.emplace_back(uid, std::move(event));
  if (stepping_) return;
  // Actions may post more events; they wait here instead of nesting.
  stepping_ = true;
  while (!events_.empty()) {
    const auto [next, what] = std::move(events_.front());
    events_.pop_front();
    step(next, what);
  }
  stepping_ = false;
}

void PodController::step(const base::PodUid& uid, const core::Event& event) {
  PodEntry* entry = store_.find(uid);
  if (entry == nullptr) return;
  const base::Now now = d_.timers->both();
  const size_t from = entry->record.stage.index();
  core::Actions actions = core::advance(entry->record, event, now, d_.policy);
  // Before anything is done about it: what follows may choose for other pods.
  d_.placer->follow(*entry, std::holds_alternative<core::event::Chosen>(event), now);
  tell_placed(*entry);
  if (entry->record.stage.index() != from) {
    metrics_.moved(*entry, from, now.steady);
    log_move(*entry);
    const bool under_way = std::holds_alternative<model::Booting>(entry->record.stage) ||
                           std::holds_alternative<model::Stopping>(entry->record.stage);
    if (under_way && entry->record.placement) d_.stir_provider(entry->record.placement->provider);
  }
  for (core::Action& action : actions) {
    if (std::holds_alternative<core::action::Forget>(action)) {
      metrics_.removed(*entry, now.steady);
      d_.placer->forget(*entry, now);
      if (d_.pod_changed) d_.pod_changed(entry->record);
      log::info("pod gone", {{"pod", entry->record.key().to_string()}, {"uid", uid}});
      wakes_.remove(uid);
      probes_.forget(uid);
      unjoined_.erase(uid);
      store_.erase(uid);
      return;
    }
    perform(uid, *entry, std::move(action));
  }
  probes_.follow(entry->record);
  consider_status(uid, *entry);
  if (d_.pod_changed) d_.pod_changed(entry->record);
}

/// Once its provider has accepted: what is sold out is no news of the pod.
void PodController::tell_placed(PodEntry& entry) {
  if (!entry.launch || entry.launch->why.empty() || !entry.launch->accepted) return;
  d_.events->normal(kube::target_of(entry.record.key()), "Placed", std::exchange(entry.launch->why, {}).str());
}

void PodController::perform(const base::PodUid& uid, PodEntry& entry, core::Action action) {
  namespace a = core::action;
  const model::PodKey& key = entry.record.key();
  if (std::holds_alternative<a::Choose>(action)) return choose(uid, entry);
  if (std::holds_alternative<a::LookUp>(action)) return d_.ask_provider(entry.record.placement->provider);
  if (std::holds_alternative<a::CloseEntry>(action)) {
    return d_.ledger->settled(uid) ? entry_closed(uid) : d_.ledger->await(uid);
  }
  if (const auto* tell = std::get_if<a::Tell>(&action)) {
    if (tell->warning) return d_.events->warning(kube::target_of(key), tell->reason, tell->message);
    return d_.events->normal(kube::target_of(key), tell->reason, tell->message);
  }
  if (std::holds_alternative<a::NoteFailure>(action)) {
    const base::TimePoint launched = entry.record.entered.at(model::Stage(model::Creating{}).index());
    return brake_.note_failure(entry.record.spec->owner_key(), entry.record.key().ns, launched, d_.timers->now());
  }
  if (const auto* wake = std::get_if<a::WakeAt>(&action)) {
    wakes_.add(uid, wake->when);
    if (wakes_.next_due() == wake->when) waker_->wake();
    return;
  }
  if (std::holds_alternative<a::WriteIntent>(action)) {
    // Of two writes under way the older one could land last.
    if (std::exchange(entry.write_under_way, true)) {
      entry.intent_waits = true;
      return;
    }
    return writes_.push(Job{uid, std::move(action)});
  }
  if (std::holds_alternative<a::DeletePod>(action)) return writes_.push(Job{uid, std::move(action)});
  if (!entry.record.placement) return;
  if (auto* hook = std::get_if<a::RunHook>(&action)) return group_.spawn(run_hook(uid, std::move(*hook)));
  const bool moves_container =
      std::holds_alternative<a::StartContainer>(action) || std::holds_alternative<a::StopContainer>(action);
  if (moves_container) d_.stir_provider(entry.record.placement->provider);
  ProviderLanes& provider = lanes(entry.record.placement->provider);
  Lane<Job>& lane = std::holds_alternative<a::Create>(action) ? *provider.create : *provider.other;
  lane.push(Job{uid, std::move(action), entry.record.placement->tag});
}

void PodController::log_move(const PodEntry& entry) const {
  const model::PodRecord& r = entry.record;
  // Choosing takes no time, and what comes of it has its own line.
  if (std::holds_alternative<model::Choosing>(r.stage)) return;
  const auto stage = model::stage_name(r.stage);
  const std::string provider = r.placement ? r.placement->provider.str() : "";
  const std::string tag = r.placement ? r.placement->tag.str() : "";
  std::string why;
  if (const auto* waiting = std::get_if<model::Waiting>(&r.stage)) why = to_string(waiting->why);
  if (const auto* stopping = std::get_if<model::Stopping>(&r.stage)) why = to_string(stopping->why);
  if (r.outcome && why.empty()) why = r.outcome->reason;
  log::info("pod moved", {{"pod", r.key().to_string()},
                          {"uid", r.key().uid},
                          {"stage", stage},
                          {"why", why},
                          {"provider", provider},
                          {"tag", tag}});
}

boost::asio::awaitable<void> PodController::drain(base::Deadline deadline) {
  writes_.close();
  reads_.close();
  for (auto& [name, lanes] : lanes_) {
    lanes.create->close();
    lanes.other->close();
  }
  constexpr base::Duration kLook = std::chrono::milliseconds(20);
  while (group_.size() > 0 && d_.timers->now() < deadline) co_await d_.timers->sleep_for(kLook);
}

boost::asio::awaitable<void> PodController::stop() {
  co_await probes_.stop();
  co_await keepers_.stop();
  co_await group_.stop();
}

}  // namespace spillway::control
