#include "vk-provider/control/endpoint_controller.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>

#include <boost/asio/this_coro.hpp>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/endpoint_parts.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::control {
namespace asio = boost::asio;

namespace {

// How long a change waits for others that come with it.
constexpr base::Duration kDebounce = std::chrono::milliseconds(100);
// At most that part of the time is spent on evaluations: with ten thousand pods one takes a while.
constexpr int kShare = 10;
// What nobody tells: that the pods are known, or that the lease is ours again.
constexpr base::Duration kLookEvery = std::chrono::milliseconds(200);
// A change behind a dead connection is seen after this time (docs/adr/0005).
constexpr base::Duration kWatchTime = std::chrono::seconds(30);
// Ports appear a while after their pod: only what lasts is told to a person.
constexpr base::Duration kGapPatience = std::chrono::seconds(30);
constexpr size_t kWritesAtOnce = 8;
constexpr base::Duration kForgetFailures = std::chrono::minutes(10);

kube::ReflectorConfig watch_of(std::string name, std::string path) {
  kube::ReflectorConfig config;
  config.name = std::move(name);
  config.path = std::move(path);
  config.watch_time = kWatchTime;
  return config;
}

kube::ReflectorConfig watch_of_slices(const std::string& installation) {
  kube::ReflectorConfig config = watch_of("endpoint-slices", "/apis/discovery.k8s.io/v1/endpointslices");
  config.label_selector = std::string(model::kLabelEndpointManager) + "=" + std::string(core::kEndpointManager) + "," +
                          std::string(model::kLabelInstallation) + "=" + installation;
  return config;
}

}  // namespace

EndpointController::EndpointController(EndpointDeps deps)
    : d_(std::move(deps)),
      service_sink_(std::make_unique<ServiceSink>(*this)),
      slice_sink_(std::make_unique<SliceSink>(*this)),
      services_(watch_of("endpoint-services", "/api/v1/services"), *d_.api, *service_sink_, *d_.timers, *d_.random,
                *d_.metrics),
      slices_(watch_of_slices(d_.scope.installation), *d_.api, *slice_sink_, *d_.timers, *d_.random, *d_.metrics),
      waiter_(d_.timers->make_waiter()),
      group_(d_.executor),
      writes_(group_, kWritesAtOnce, [this](Job job) { return write(std::move(job)); }),
      update_seconds_(d_.metrics->histogram("spillway_endpoint_update_seconds",
                                            "From a change of a pod or Service to the written EndpointSlice.", {},
                                            base::latency_bounds())) {}

EndpointController::~EndpointController() = default;

async::Loop EndpointController::run() {
  group_.spawn(services_.run());
  group_.spawn(slices_.run());
  std::exception_ptr end;
  try {
    for (;;) co_await wait_until_due(evaluate());
  } catch (...) {  // cancellation; the parts are joined before it goes on
    end = std::current_exception();
  }
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await group_.stop();
  if (end) std::rethrow_exception(end);
}

// What is known.

kube::ReflectorSink& EndpointController::watch_labels(kube::ReflectorSink& next) {
  return *label_sinks_.emplace_back(std::make_unique<LabelSink>(*this, next));
}

void EndpointController::on_pod(const model::PodRecord& record) {
  const auto labels = labels_.find(record.key().uid);
  auto pod = labels == labels_.end() ? std::nullopt : core::endpoint_pod(record, labels->second, d_.timers->both());
  if (record.api_gone && labels != labels_.end()) labels_.erase(labels);
  const std::string& ns = record.key().ns;
  const auto known = namespaces_.find(ns);
  if (!pod) {
    if (known != namespaces_.end() && known->second.pods.erase(record.key().uid) > 0) note_change(ns);
    return;
  }
  auto& pods = known != namespaces_.end() ? known->second.pods : namespaces_[ns].pods;
  const auto it = pods.find(record.key().uid);
  if (it != pods.end() && it->second == *pod) return;
  pods.insert_or_assign(record.key().uid, std::move(*pod));
  note_change(ns);
}

void EndpointController::note_change(const std::string& name) {
  const auto ns = namespaces_.find(name);
  if (ns == namespaces_.end()) return;
  const base::TimePoint now = d_.timers->now();
  if (!ns->second.changed_at) ns->second.changed_at = now;
  if (changed_at_) return;
  changed_at_ = now;
  waiter_->wake();
}

/// Events and answers overtake one another: the newest version holds.
void EndpointController::absorb(model::EndpointSlice slice) {
  const std::string ns = slice.ns;
  auto& slices = namespaces_[ns].slices;
  const auto it = slices.find(slice.name);
  if (it != slices.end() && it->second.uid == slice.uid) {
    if (it->second.resource_version == slice.resource_version) return;
    if (model::is_older_version(slice.resource_version, it->second.resource_version)) return;
  }
  slices.insert_or_assign(slice.name, std::move(slice));
  note_change(ns);
}

void EndpointController::forget(const Key& key) {
  const auto ns = namespaces_.find(key.first);
  if (ns != namespaces_.end() && ns->second.slices.erase(key.second) > 0) note_change(key.first);
}

asio::awaitable<void> EndpointController::wait_until_due(base::TimePoint next) {
  for (;;) {
    const base::Duration pause = std::max(kDebounce, kShare * cost_);
    const base::TimePoint due = changed_at_ ? std::min(next, *changed_at_ + pause) : next;
    if (d_.timers->now() >= due) break;
    const bool woken = !co_await waiter_->wait_until(due);
    // A list has ended, or what is to be waited for has become less.
    if (woken && !begun_) break;
  }
}

// What is to be done.

base::TimePoint EndpointController::evaluate() {
  const base::TimePoint now = d_.timers->now();
  changed_at_.reset();  // each namespace remembers its own
  // What we do not know must not be taken for gone.
  const bool known = service_sink_->listed() && slice_sink_->listed() && d_.pods_known();
  if (!known || !d_.holds_lease()) return now + kLookEvery;
  std::erase_if(failures_, [now](const auto& item) { return now - item.second.retry_at > kForgetFailures; });
  base::TimePoint next = base::TimePoint::max();
  for (auto it = namespaces_.begin(); it != namespaces_.end();) {
    Namespace& ns = it->second;
    if (ns.changed_at || ns.look_at <= now || !begun_) evaluate(it->first, ns);
    next = std::min(next, ns.look_at);
    const bool empty = ns.services.empty() && ns.slices.empty() && ns.pods.empty();
    it = empty ? namespaces_.erase(it) : std::next(it);
  }
  begun_ = true;
  if (under_way_.empty()) reconciled_ = true;
  show();
  cost_ = d_.timers->now() - now;
  return next;
}

void EndpointController::evaluate(const std::string& name, Namespace& ns) {
  const base::TimePoint changed_at = std::exchange(ns.changed_at, std::nullopt).value_or(d_.timers->now());
  ns.look_at = base::TimePoint::max();
  std::vector<const core::EndpointPod*> pods;
  for (const auto& [uid, pod] : ns.pods) pods.push_back(&pod);
  std::vector<const model::EndpointSlice*> existing;
  for (const auto& [key, slice] : ns.slices) existing.push_back(&slice);
  std::vector<core::EndpointGap> gaps;
  std::set<std::string> wanted;
  std::vector<Job> jobs;
  for (const auto& [key, service] : ns.services) {
    if (pods.empty()) break;
    core::EndpointPlan plan = core::plan_endpoints(d_.scope, service, pods, existing);
    std::ranges::move(plan.gaps, std::back_inserter(gaps));
    for (model::EndpointSlice& slice : plan.slices) {
      wanted.insert(slice.name);
      const auto stands = ns.slices.find(slice.name);
      if (stands != ns.slices.end() && stands->second == slice) continue;
      Job& job = jobs.emplace_back();
      if (stands != ns.slices.end()) {
        job.verb = Job::Verb::kPatch;
        slice.uid = stands->second.uid;
        slice.resource_version = stands->second.resource_version;
      }
      job.slice = std::move(slice);
    }
  }
  for (const model::EndpointSlice* slice : existing) {
    if (wanted.contains(slice->name)) continue;
    Job& job = jobs.emplace_back();
    job.verb = Job::Verb::kDelete;
    job.slice = *slice;
  }
  for (Job& job : jobs) {
    job.changed_at = changed_at;
    start(std::move(job), ns);
  }
  follow_gaps(name, ns, gaps);
}

void EndpointController::start(Job job, Namespace& ns) {
  Key key{job.slice.ns, job.slice.name};
  if (const auto failed = failures_.find(key); failed != failures_.end()) {
    job.changed_at = std::min(job.changed_at, failed->second.changed_at);
    if (failed->second.retry_at > d_.timers->now()) {
      ns.look_at = std::min(ns.look_at, failed->second.retry_at);
      return;
    }
  }
  // Of two writes of one slice under way the older one could land last; its end has us look again.
  if (!under_way_.insert(std::move(key)).second) return;
  writes_.push(std::move(job));
}

void EndpointController::follow_gaps(const std::string& name, Namespace& ns,
                                     const std::vector<core::EndpointGap>& found) {
  const Gaps before = std::exchange(gaps_[name], {});
  if (found.empty()) {
    gaps_.erase(name);
    return;
  }
  const base::TimePoint now = d_.timers->now();
  for (const core::EndpointGap& gap : found) {
    GapKey key{gap.service->uid, gap.port};
    Gap entry;
    entry.text = core::explain(gap);
    entry.since = now;
    const auto known = before.find(key);
    if (known != before.end() && known->second.text == entry.text) entry = known->second;
    if (!entry.told && now - entry.since >= kGapPatience) {
      entry.told = true;
      tell(gap, entry.text);
    }
    if (!entry.told) ns.look_at = std::min(ns.look_at, entry.since + kGapPatience);
    gaps_[name].insert_or_assign(std::move(key), std::move(entry));
  }
}

void EndpointController::tell(const core::EndpointGap& gap, const std::string& text) {
  const model::EndpointService& service = *gap.service;
  base::log::warn("a port of a Service reaches no rented pod",
                  {{"service", service.ns + "/" + service.name}, {"why", text}});
  if (d_.events == nullptr) return;
  kube::EventTarget target;
  target.kind = "Service";
  target.ns = service.ns;
  target.name = service.name;
  target.uid = service.uid;
  d_.events->warning(target, "EndpointPortUnreached", text);
}

void EndpointController::show() const {
  size_t slices = 0;
  std::array<size_t, 3> counts{};
  for (const auto& [name, ns] : namespaces_) {
    slices += ns.slices.size();
    for (const auto& [key, slice] : ns.slices) {
      for (const model::Endpoint& e : slice.endpoints) ++counts.at(e.terminating ? 2 : e.ready ? 0 : 1);
    }
  }
  size_t gaps = 0;
  for (const auto& [name, found] : gaps_) gaps += found.size();
  constexpr std::array kStates{"ready", "unready", "terminating"};
  d_.metrics->gauge("spillway_endpoint_slices", "EndpointSlices of ours.", {}).set(static_cast<double>(slices));
  d_.metrics->gauge("spillway_endpoint_gaps", "Ports of Services at which no rented pod is reached.", {})
      .set(static_cast<double>(gaps));
  for (size_t i = 0; i < kStates.size(); ++i) {
    d_.metrics->gauge("spillway_endpoint_addresses", "Endpoints in our EndpointSlices.", {{"state", kStates.at(i)}})
        .set(static_cast<double>(counts.at(i)));
  }
}

}  // namespace spillway::control
