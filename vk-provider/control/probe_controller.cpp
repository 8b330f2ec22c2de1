#include "vk-provider/control/probe_controller.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "vk-provider/core/container_order.hpp"

namespace spillway::control {
namespace {

using base::ErrorKind;
using core::ProbeKind;
using model::ContainerRecord;

constexpr size_t kProbesAtOnce = 1024;
constexpr std::array kKinds{ProbeKind::kStartup, ProbeKind::kReadiness, ProbeKind::kLiveness};

const base::Boxed<model::Probe>& probe_of(const model::ContainerSpec& spec, ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup: return spec.startup_probe;
    case ProbeKind::kReadiness: return spec.readiness_probe;
    case ProbeKind::kLiveness: break;
  }
  return spec.liveness_probe;
}

std::string_view word(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup: return "Startup";
    case ProbeKind::kReadiness: return "Readiness";
    case ProbeKind::kLiveness: break;
  }
  return "Liveness";
}

bool has_probes(const model::PodSpec& spec) {
  const auto probed = [](const model::ContainerSpec& c) {
    return c.startup_probe || c.readiness_probe || c.liveness_probe;
  };
  return std::ranges::any_of(spec.containers, probed) || std::ranges::any_of(core::init_containers(spec), probed);
}

/// True if the probe belongs to what the container does now: the startup probe comes first, and alone.
bool is_wanted(const model::ContainerSpec& spec, const ContainerRecord& c, ProbeKind kind) {
  if (!probe_of(spec, kind) || !core::runs(c) || c.stop) return false;
  if (spec.post_start && c.post_start != ContainerRecord::PostStart::kDone) return false;
  if (kind == ProbeKind::kStartup) return !c.started;
  return !spec.startup_probe || c.started;
}

}  // namespace

ProbeController::ProbeController(ProbeDeps deps)
    : d_(std::move(deps)), waiter_(d_.timers->make_waiter()), group_(d_.executor) {}

void ProbeController::follow(const model::PodRecord& record) {
  if (!has_probes(*record.spec)) return;
  const model::Instance* instance = core::instance_of(record);
  if (instance == nullptr || record.deleting || record.outcome || record.placeholder) return forget(record.key().uid);
  Pod& pod = pods_[record.key().uid];
  pod.spec = record.spec;
  pod.ref = instance->ref;
  pod.address = record.provider.address_routable ? instance->address : base::SharedText();
  for (size_t i = 0; i < record.containers.size(); ++i) follow_container(pod, record, i);
}

void ProbeController::follow_container(Pod& pod, const model::PodRecord& record, size_t index) {
  const model::ContainerSpec& spec = core::spec_of(*record.spec, index);
  const ContainerRecord& c = record.containers[index];
  for (const ProbeKind kind : kKinds) {
    const bool wanted = is_wanted(spec, c, kind);
    std::erase_if(pod.probes, [&](const Watched& w) {
      return w.container == index && w.kind == kind && (!wanted || w.run != c.restarts);
    });
    if (!wanted) continue;
    const bool known =
        std::ranges::any_of(pod.probes, [&](const Watched& w) { return w.container == index && w.kind == kind; });
    if (known) continue;
    const base::Now now = d_.timers->both();
    const base::Duration age = c.claim.started_at ? now.wall - *c.claim.started_at : base::Duration(0);
    const core::ProbeFsm fsm(*probe_of(spec, kind), kind, now.steady - std::max(age, base::Duration(0)), now.steady,
                             kind == ProbeKind::kReadiness && c.ready);
    pod.probes.push_back(Watched{.id = next_id_++, .container = index, .run = c.restarts, .kind = kind, .fsm = fsm});
    queue_.add(record.key().uid, fsm.due());
    if (queue_.next_due() == fsm.due()) waiter_->wake();
  }
}

void ProbeController::forget(const base::PodUid& uid) {
  if (pods_.erase(uid) > 0) queue_.remove(uid);
}

async::Loop ProbeController::run() {
  for (;;) {
    while (const auto uid = queue_.take(d_.timers->now())) begin_due(*uid);
    co_await waiter_->wait_until(queue_.next_due().value_or(base::TimePoint::max()));
  }
}

void ProbeController::begin_due(const base::PodUid& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  auto& lane = lanes_[it->second.ref.provider];
  if (!lane) {
    lane = std::make_unique<Lane<Job>>(group_, kProbesAtOnce, [this](Job job) { return run_one(std::move(job)); });
  }
  const base::TimePoint now = d_.timers->now();
  for (Watched& watched : it->second.probes) {
    if (watched.fsm.under_way()) continue;
    if (watched.fsm.due() > now) {
      queue_.add(uid, watched.fsm.due());
      continue;
    }
    watched.fsm.begin(now);
    lane->push(Job{uid, watched.id});
  }
}

ProbeController::Watched* ProbeController::find(const Job& job) {
  const auto it = pods_.find(job.uid);
  if (it == pods_.end()) return nullptr;
  const auto watched = std::ranges::find(it->second.probes, job.probe, &Watched::id);
  return watched == it->second.probes.end() ? nullptr : &*watched;
}

async::Loop ProbeController::run_one(Job job) {
  const Watched* watched = find(job);
  if (watched == nullptr) co_return;
  const Pod& pod = pods_.at(job.uid);
  const model::ContainerSpec& spec = core::spec_of(*pod.spec, watched->container);
  const model::Probe& probe = *probe_of(spec, watched->kind);
  provider::HandlerTarget target;
  target.provider = d_.providers->find(pod.ref.provider);
  target.ref = pod.ref;
  target.container = spec.name;
  target.address = pod.address;
  const auto result = co_await d_.handlers->run(std::move(target), probe.handler, d_.timers->now() + probe.timeout);
  conclude(job, result);
}

std::optional<bool> ProbeController::meaning(const Pod& pod, const model::Probe& probe,
                                             const base::Result<void>& result) const {
  if (result) return true;
  if (result.error().kind == ErrorKind::kCancelled) return std::nullopt;
  // Whatever could not be asked for says nothing: an outage of a provider must not restart what runs well there.
  const bool direct = !pod.address.empty() || !probe.handler.host.empty();
  const bool by_provider = probe.handler.kind == model::Handler::Kind::kExec || !direct;
  if (!by_provider) return false;
  const bool answered = result.error().kind == ErrorKind::kInvalid || result.error().kind == ErrorKind::kDeadline;
  const bool refused = probe.handler.kind != model::Handler::Kind::kExec;
  if (!d_.providers->find(pod.ref.provider)->reachable() || !(answered || refused)) return std::nullopt;
  return false;
}

void ProbeController::conclude(const Job& job, const base::Result<void>& result) {
  Watched* watched = find(job);
  if (watched == nullptr) return;
  const Pod& pod = pods_.at(job.uid);
  const model::ContainerSpec& spec = core::spec_of(*pod.spec, watched->container);
  const model::Probe& probe = *probe_of(spec, watched->kind);
  const base::TimePoint now = d_.timers->now();
  const std::optional<bool> success = meaning(pod, probe, result);
  ++(!success ? watched->unknown : *success ? watched->successful : watched->failed);
  const std::optional<bool> verdict =
      success ? watched->fsm.end(probe, *success, now) : (watched->fsm.skip(probe, now), std::nullopt);
  if (watched->fsm.due() != base::TimePoint::max()) {
    queue_.add(job.uid, watched->fsm.due());
    if (queue_.next_due() == watched->fsm.due()) waiter_->wake();
  }
  core::event::ProbeChanged changed;
  if (success == false) changed.message = std::string(word(watched->kind)) + " probe failed: " + result.error().message;
  const size_t words = std::hash<std::string>()(changed.message);
  if (success == false && (watched->fsm.in_a_row() == 1 || verdict || words != watched->told)) {
    watched->told = words;
    d_.unhealthy(pod.spec->key, changed.message);
  }
  if (!verdict) return;
  changed.container = spec.name;
  changed.run = watched->run;
  changed.probe = watched->kind;
  changed.passes = *verdict;
  d_.changed(job.uid, std::move(changed));
}

void ProbeController::each_probe(std::string_view node, const Visit& visit) const {
  for (const auto& [uid, pod] : pods_) {
    if (pod.spec->node_name != node) continue;
    for (const Watched& watched : pod.probes) {
      core::ProbeCount count;
      count.pod = &pod.spec->key;
      count.container = core::spec_of(*pod.spec, watched.container).name;
      count.kind = watched.kind;
      count.successful = watched.successful;
      count.failed = watched.failed;
      count.unknown = watched.unknown;
      visit(count);
    }
  }
}

size_t ProbeController::size() const {
  size_t count = 0;
  for (const auto& [uid, pod] : pods_) count += pod.probes.size();
  return count;
}

}  // namespace spillway::control
