#include "vk-provider/control/gate_controller.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/control/gate_parts.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::control {
namespace asio = boost::asio;

namespace {

using core::GateNotice;
using core::GateState;

// How long a change waits for others that come with it.
constexpr base::Duration kDebounce = std::chrono::seconds(1);
// A change behind a dead connection is seen after this time, as with the pods of our own nodes (docs/adr/0005).
constexpr base::Duration kWatchTime = std::chrono::seconds(30);

// Before all that a gate remembers.
constexpr base::Duration kLongAgo = std::chrono::hours(1);

kube::ReflectorConfig watch_of(std::string name, std::string path) {
  kube::ReflectorConfig config;
  config.name = std::move(name);
  config.path = std::move(path);
  config.watch_time = kWatchTime;
  return config;
}

struct Words {
  bool warning;
  const char* reason;
  const char* text;
};

/// What is said of a notice; opening and closing are told by who writes the taint.
std::optional<Words> words_of(GateNotice notice) {
  switch (notice) {
    case GateNotice::kOpened:
    case GateNotice::kClosed: return std::nullopt;
    case GateNotice::kDataMissing: return Words{true, "GateDataMissing", "without data of Prometheus"};
    case GateNotice::kDataRestored: return Words{false, "GateDataRestored", "told by Prometheus again"};
    case GateNotice::kDisagreement:
      return Words{true, "GateDisagreement", "told different things by Prometheus and the API server"};
    case GateNotice::kAgreement:
      return Words{false, "GateAgreement", "told the same by Prometheus and the API server again"};
    case GateNotice::kFlapping: return Words{true, "GateFlapping", "flapping: closeAfter and minOpen are doubled"};
    case GateNotice::kNoHome: return Words{true, "GateNoHome", "without any home node"};
    case GateNotice::kHomeUnknown: return Words{true, "GateDataMissing", "without a view of nodes and pods"};
    case GateNotice::kHomeKnown: return Words{false, "GateDataRestored", "in view of nodes and pods again"};
  }
  return std::nullopt;
}

base::Gauge& slots_gauge(base::Metrics& metrics, const std::string& gate, const char* source) {
  return metrics.gauge("spillway_gate_free_slots", "Slots free at home, less the demand ahead.",
                       {{"gate", gate}, {"source", source}});
}

base::Gauge& threshold_gauge(base::Metrics& metrics, const std::string& gate, const char* kind) {
  return metrics.gauge("spillway_gate_threshold", "Slots below which the gate opens, and at which it closes.",
                       {{"gate", gate}, {"kind", kind}});
}

base::Gauge& age_gauge(base::Metrics& metrics, const std::string& gate, const char* source) {
  return metrics.gauge("spillway_gate_data_age_seconds", "Age of what the gate decides by.",
                       {{"gate", gate}, {"source", source}});
}

base::Gauge& gate_gauge(base::Metrics& metrics, const std::string& gate, const char* name, const char* help) {
  return metrics.gauge(name, help, {{"gate", gate}});
}

double seconds_of(base::Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

GateController::Gate::Gate(GateSettings s, const GateDeps& deps)
    : settings(std::move(s)),
      book(settings.home),
      policy(settings.rules),
      metrics(*deps.metrics),
      open(gate_gauge(metrics, settings.name, "spillway_gate_open", "1 while burst pods may leave home.")),
      slots_kubernetes(slots_gauge(metrics, settings.name, "kubernetes")),
      slots_prometheus(slots_gauge(metrics, settings.name, "prometheus")),
      free_gpus(
          gate_gauge(metrics, settings.name, "spillway_gate_home_free_gpus", "GPUs free at home, sick ones left out.")),
      demand(gate_gauge(metrics, settings.name, "spillway_gate_hi_demand_gpus",
                        "GPUs that pods ahead of the burst pods wait for.")),
      pending(gate_gauge(metrics, settings.name, "spillway_gate_pending_eligible", "Burst pods that wait.")),
      open_below(threshold_gauge(metrics, settings.name, "openBelow")),
      close_at(threshold_gauge(metrics, settings.name, "closeAt")),
      blind(gate_gauge(metrics, settings.name, "spillway_gate_blind", "1 while nothing can be decided.")),
      age_kubernetes(age_gauge(metrics, settings.name, "kubernetes")),
      age_prometheus(age_gauge(metrics, settings.name, "prometheus")),
      known_at(deps.timers->now()) {
  for (const core::VirtualNode& node : settings.home.virtual_nodes) {
    GateWriterConfig config;
    config.gate = settings.name;
    config.node = node.name;
    config.installation = deps.installation;
    config.soft_taint = settings.soft_taint;
    writers.push_back(
        std::make_unique<GateWriter>(std::move(config), *deps.api, *deps.timers, *deps.random, metrics, deps.events));
  }
}

GateWriter* GateController::Gate::writer_of(const std::string& node) {
  const auto it = std::ranges::find_if(writers, [&](const auto& writer) { return writer->name() == node; });
  return it == writers.end() ? nullptr : it->get();
}

GateController::GateController(std::vector<GateSettings> gates, GateDeps deps)
    : d_(std::move(deps)),
      node_sink_(std::make_unique<NodeSink>(*this)),
      pod_sink_(std::make_unique<PodSink>(*this)),
      nodes_(watch_of("gate-nodes", "/api/v1/nodes"), *d_.api, *node_sink_, *d_.timers, *d_.random, *d_.metrics),
      pods_(watch_of("gate-pods", "/api/v1/pods"), *d_.api, *pod_sink_, *d_.timers, *d_.random, *d_.metrics),
      waiter_(d_.timers->make_waiter()),
      evaluation_seconds_(d_.metrics->histogram("spillway_gate_evaluation_seconds", "One evaluation of all gates.", {},
                                                base::latency_bounds())) {
  for (GateSettings& settings : gates) gates_.push_back(std::make_unique<Gate>(std::move(settings), d_));
}

GateController::~GateController() = default;

const GateSettings& GateController::settings(size_t gate) const { return gates_.at(gate)->settings; }

const core::HomeBook& GateController::book(size_t gate) const { return gates_.at(gate)->book; }

bool GateController::synced() const { return nodes_.synced() && pods_.synced(); }

async::Loop GateController::run() {
  async::TaskGroup parts(co_await asio::this_coro::executor);
  parts.spawn(nodes_.run());
  parts.spawn(pods_.run());
  for (const auto& gate : gates_) {
    for (const auto& writer : gate->writers) parts.spawn(writer->run());
    if (d_.prometheus != nullptr) parts.spawn(poll(*gate));
  }
  std::exception_ptr end;
  try {
    for (;;) co_await wait_until_due(evaluate_all());
  } catch (...) {  // cancellation; the parts are joined before it goes on
    end = std::current_exception();
  }
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await parts.stop();
  if (end) std::rethrow_exception(end);
}

void GateController::note_change() {
  if (changed_at_) return;
  changed_at_ = d_.timers->now();
  waiter_->wake();
}

asio::awaitable<void> GateController::wait_until_due(base::TimePoint next) {
  for (;;) {
    const base::TimePoint due = changed_at_ ? std::min(next, *changed_at_ + kDebounce) : next;
    if (d_.timers->now() >= due) break;
    co_await waiter_->wait_until(due);
  }
  changed_at_.reset();
}

base::TimePoint GateController::evaluate_all() {
  const base::TimePoint begun = d_.timers->now();
  base::TimePoint next = begun + core::GatePolicy::kTick;
  const bool known = synced();
  for (size_t i = 0; i < gates_.size(); ++i) {
    const auto& gate = gates_[i];
    if (known && !gate->adopted) adopt(*gate);
    if (!gate->adopted) continue;
    std::optional<core::HomeSight> home;
    if (known) {
      home = gate->book.look(begun);
      gate->known_at = begun;
    }
    const core::GateDecision decision = gate->policy.evaluate(home, begun);
    next = std::min({next, decision.next, gate->book.next_change()});
    show(*gate, decision);
    if (listener_ != nullptr) tell_listener(i, decision);
  }
  evaluation_seconds_.observe(seconds_of(d_.timers->now() - begun));
  return std::max(next, begun);
}

/// A gate is what its nodes show: a restart must not change it. Open only if each node that stands is without the taint
/// and says that we opened it; nodes that a person has given an order say nothing.
void GateController::adopt(Gate& gate) {
  gate.adopted = true;
  const base::Now now = d_.timers->both();
  bool open = false;
  std::optional<base::WallTime> since;
  for (const auto& writer : gate.writers) {
    const auto& node = writer->node();
    if (!node || writer->order()) continue;
    const bool says_open =
        node->gate_status == "True" && !node->has_taint(kube::make_taint(model::kTaintGateKey, "NoSchedule"));
    since = node->gate_status.empty() || node->gate_reason == core::to_string(core::GateReason::kStarted)
                ? std::nullopt
                : node->gate_since;
    open = says_open;
    if (!open) break;
  }
  // Who knows of no change made none lately: a need at the very start need not wait.
  base::Duration ago = kLongAgo;
  if (since) ago = std::clamp<base::Duration>(now.wall - *since, base::Duration::zero(), kLongAgo);
  gate.policy.adopt(open ? GateState::kOpen : GateState::kClosed, now.steady - ago);
  gate.shown = gate.policy.state();
  gate.rule_since = now.steady;
}

void GateController::show(Gate& gate, const core::GateDecision& decision) {
  gate.open.set(decision.state == GateState::kOpen ? 1 : 0);
  gate.blind.set(decision.blindness == core::GateBlindness::kNone ? 0 : 1);
  gate.open_below.set(static_cast<double>(gate.settings.rules.open_below));
  const base::TimePoint now = d_.timers->now();
  gate.age_kubernetes.set(seconds_of(now - gate.known_at));
  if (gate.polled_at) gate.age_prometheus.set(seconds_of(now - *gate.polled_at));
  if (decision.blindness != core::GateBlindness::kHomeUnknown) {
    gate.free_gpus.set(static_cast<double>(decision.home.free_gpus));
    gate.demand.set(static_cast<double>(decision.home.demand_gpus));
    gate.pending.set(static_cast<double>(decision.home.pending));
    gate.close_at.set(static_cast<double>(decision.close_at));
  }
  if (decision.free_slots_kubernetes) gate.slots_kubernetes.set(static_cast<double>(*decision.free_slots_kubernetes));
  if (decision.free_slots_prometheus) gate.slots_prometheus.set(static_cast<double>(*decision.free_slots_prometheus));
  if (decision.state != gate.shown) {
    gate.shown = decision.state;
    gate.rule_since = decision.rule_since;
    gate.metrics
        .counter("spillway_gate_transitions_total", "Changes of the gate.",
                 {{"gate", gate.settings.name},
                  {"to", std::string(to_string(decision.state))},
                  {"reason", std::string(to_string(decision.reason))}})
        .add();
  }
  GateWish wish;
  wish.state = decision.state;
  wish.reason = to_string(decision.reason);
  wish.message = core::explain_gate(decision, gate.settings.rules);
  wish.since = gate.policy.since();
  wish.rule_since = gate.rule_since;
  for (const auto& writer : gate.writers) writer->want(wish);
  for (const GateNotice notice : decision.notices) tell(gate, notice, decision);
}

void GateController::tell_listener(size_t gate, const core::GateDecision& decision) {
  std::set<std::string> closed;
  for (const auto& writer : gates_[gate]->writers) {
    const auto order = writer->order();
    const bool opened = order && order->state == GateState::kOpen;
    if (writer->node() && writer->node()->has_taint(kube::make_taint(model::kTaintGateKey, "NoSchedule")) && !opened) {
      closed.insert(writer->name());
    }
  }
  listener_->on_decision(gate, decision, std::move(closed));
}

void GateController::tell(Gate& gate, GateNotice notice, const core::GateDecision& decision) {
  const auto words = words_of(notice);
  if (!words) return;
  const std::string text = std::string(words->text) + "; " + core::explain_gate(decision, gate.settings.rules);
  for (const auto& writer : gate.writers) writer->tell(words->warning, words->reason, text);
}

}  // namespace spillway::control
