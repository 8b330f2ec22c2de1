#include "vk-provider/control/gate_writer.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/node_plan.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

using base::ErrorKind;
using core::GateState;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kCallDeadline{10};
// What the watch does not tell: a jump of the wall clock moves the end of an order.
constexpr seconds kLookEvery{15};
// A message that only has other numbers.
constexpr seconds kMessageEvery{60};
constexpr int kTries = 5;  // after conflicts
constexpr base::BackoffPolicy kConflict{milliseconds(100), seconds(2)};
constexpr base::BackoffPolicy kFailure{milliseconds(200), seconds(7)};
constexpr double kJitter = 0.2;

kube::RawTaint gate_taint() { return kube::make_taint(model::kTaintGateKey, "NoSchedule"); }
kube::RawTaint soft_taint() { return kube::make_taint(model::kTaintPreferHomeKey, "PreferNoSchedule"); }

std::string node_path(const std::string& name) { return "/api/v1/nodes/" + name; }

}  // namespace

GateWriter::GateWriter(GateWriterConfig config, kube::KubeApi& api, async::Timers& timers, base::Random& random,
                       base::Metrics& metrics, kube::EventRecorder* events)
    : config_(std::move(config)),
      api_(api),
      timers_(timers),
      random_(random),
      events_(events),
      waiter_(timers.make_waiter()),
      overridden_(metrics.gauge("spillway_gate_overridden", "1 while a person's order stands on the node.",
                                {{"gate", config_.gate}, {"node", config_.node}})),
      conflicts_(metrics.counter("spillway_gate_patch_conflicts_total",
                                 "Writes of taints that somebody else's write came before.", {{"gate", config_.gate}})),
      repairs_(metrics.counter("spillway_gate_repairs_total", "Taints of the gate that somebody else had changed.",
                               {{"gate", config_.gate}})),
      failures_(metrics.counter("spillway_gate_write_failures_total", "Writes of the gate that failed.",
                                {{"gate", config_.gate}})),
      decision_seconds_(metrics.histogram("spillway_gate_decision_seconds",
                                          "From the moment at which the rule began to hold to the written taint.",
                                          {{"gate", config_.gate}}, base::latency_bounds())) {}

async::Loop GateWriter::run() {
  for (;;) {
    const base::TimePoint when = co_await step();
    co_await waiter_->wait_until(when);
  }
}

void GateWriter::want(GateWish wish) {
  const bool changed = !wish_ || wish_->state != wish.state;
  wish_ = std::move(wish);
  if (changed) waiter_->wake();
}

void GateWriter::on_node(kube::GateNode node) {
  // Events and answers overtake one another.
  if (is_older(node.resource_version, newest_version_)) return;
  newest_version_ = node.resource_version;
  node_ = std::move(node);
  waiter_->wake();
}

void GateWriter::on_gone() { node_.reset(); }

std::optional<core::GateOverride> GateWriter::order() const {
  if (!node_) return std::nullopt;
  const auto order = core::read_override(node_->order, node_->order_until);
  return order && core::in_force(*order, timers_.wall()) ? *order : std::nullopt;
}

void GateWriter::tell(bool warning, const std::string& reason, const std::string& message) {
  log::info("gate", {{"gate", config_.gate}, {"node", config_.node}, {"what", reason}, {"message", message}});
  if (events_ == nullptr || !writable()) return;
  kube::EventTarget target;
  target.kind = "Node";
  target.name = node_->name;
  target.uid = node_->uid;
  const std::string text = "gate " + config_.gate + " is " + message;
  warning ? events_->warning(target, reason, text) : events_->normal(target, reason, text);
}

bool GateWriter::writable() const { return node_ && !node_->deleting && node_->installation == config_.installation; }

GateState GateWriter::wanted() const {
  const auto by_order = order();
  return by_order ? by_order->state : wish_->state;
}

void GateWriter::watch_orders() {
  const auto read = core::read_override(node_->order, node_->order_until);
  const std::string problem = read ? std::string() : read.error();
  if (problem != std::exchange(told_order_problem_, problem) && !problem.empty()) {
    tell(true, "GateOverrideInvalid", "not overridden: " + problem);
  }
  const auto now = order();
  overridden_.set(now ? 1 : 0);
  if (now == told_order_) return;
  told_order_ = now;
  if (!now) return tell(false, "GateOverride", "decided by its rules again");
  const std::string end = now->until ? " until " + base::to_rfc3339(*now->until) : ", without an end";
  tell(false, "GateOverride", std::string(to_string(now->state)) + " by the annotation spillway.dev/gate" + end);
}

boost::asio::awaitable<base::TimePoint> GateWriter::step() {
  if (!wish_ || !writable()) co_return base::TimePoint::max();
  watch_orders();
  const GateState state = wanted();
  if (!taints_fit(state)) {
    const bool repair = settled_ == state && settled_uid_ == node_->uid;
    if (repair && brake_.may_repair_at() > timers_.now()) {
      co_return std::min(brake_.may_repair_at(), timers_.now() + kLookEvery);
    }
    const bool gate_moves = node_->has_taint(gate_taint()) != (state == GateState::kClosed);
    const auto written = co_await write_taints(state);
    if (!written) co_return retry_at(written.error(), "the taints of the node cannot be written");
    note_written(state, repair, gate_moves);
  } else {
    settled_ = state;
    settled_uid_ = node_->uid;
  }
  base::TimePoint next = timers_.now() + kLookEvery;
  if (!writable()) co_return next;
  if (condition_due(state, next)) {
    const auto written = co_await write_condition(state);
    if (!written) co_return retry_at(written.error(), "the condition of the node cannot be written");
  }
  failed_in_a_row_ = 0;
  co_return next;
}

// Taints.

bool GateWriter::taints_fit(GateState state) const {
  return node_->has_taint(gate_taint()) == (state == GateState::kClosed) &&
         node_->has_taint(soft_taint()) == config_.soft_taint;
}

std::vector<kube::RawTaint> GateWriter::wanted_taints(GateState state) const {
  std::vector<kube::RawTaint> with;
  std::vector<kube::RawTaint> without;
  (state == GateState::kClosed ? with : without).push_back(gate_taint());
  (config_.soft_taint ? with : without).push_back(soft_taint());
  return kube::replace_taints(node_->taints, without, with);
}

async::Task<void> GateWriter::write_taints(GateState state) {
  for (int attempt = 1;; ++attempt) {
    kube::KubeRequest request;
    request.method = net::Method::kPatch;
    request.target = node_path(config_.node) + "?fieldManager=spillway-gate";
    request.content_type = "application/merge-patch+json";
    request.body = kube::encode_gate_taints(*node_, wanted_taints(state));
    auto answer = co_await api_.send(std::move(request), timers_.now() + kCallDeadline);
    if (answer) {
      auto node = kube::decode_gate_node(answer->body);
      if (!node) co_return base::fail(std::move(node.error()));
      on_node(std::move(*node));
      co_return base::Result<void>();
    }
    const ErrorKind kind = answer.error().kind;
    const bool moved = kind == ErrorKind::kConflict || kind == ErrorKind::kInvalid;  // 422: the UID is another one
    if (!moved || attempt >= kTries) co_return base::fail(std::move(answer.error()));
    conflicts_.add();
    co_await timers_.sleep_for(random_.jittered(base::backoff_delay(kConflict, attempt), kJitter));
    kube::KubeRequest look;
    look.target = node_path(config_.node);
    auto live = co_await api_.send(std::move(look), timers_.now() + kCallDeadline);
    if (!live) co_return base::fail(std::move(live.error()));
    auto node = kube::decode_gate_node(live->body);
    if (!node) co_return base::fail(std::move(node.error()));
    on_node(std::move(*node));
    if (!writable() || taints_fit(state)) co_return base::Result<void>();
  }
}

void GateWriter::note_written(GateState state, bool repair, bool gate_moved) {
  const base::TimePoint now = timers_.now();
  const bool first = !settled_ || (node_ && settled_uid_ != node_->uid);
  const bool changed = settled_ != state;
  settled_ = state;
  if (node_) settled_uid_ = node_->uid;
  if (repair) {
    repairs_.add();
    if (brake_.note_repair(now)) {
      tell(true, "GateContested",
           std::string(to_string(state)) +
               ", but somebody keeps changing its taints; they are left alone for 10 minutes");
    }
    return;
  }
  brake_.forget();
  // Neither the soft taint, nor a Node that was made anew, nor an order is a decision of the gate.
  if (!gate_moved || !changed || order()) return;
  if (!first) decision_seconds_.observe(std::chrono::duration<double>(now - wish_->rule_since).count());
  tell(false, state == GateState::kOpen ? "GateOpened" : "GateClosed", wish_->message);
}

// The condition.

bool GateWriter::condition_due(GateState state, base::TimePoint& next) const {
  const bool open = state == GateState::kOpen;
  if (node_->gate_status != (open ? "True" : "False")) return true;
  const std::string reason = order() ? "Override" : wish_->reason;
  if (node_->gate_reason != reason) return true;
  if (node_->gate_message == wish_->message) return false;
  const base::TimePoint due = condition_written_ + kMessageEvery;
  next = std::min(next, std::max(due, timers_.now() + seconds(1)));
  return timers_.now() >= due;
}

/// Of a state that stands already, as it stands there; a later process measures minOpen by it.
base::WallTime GateWriter::condition_since(bool open) const {
  if (node_->gate_since && node_->gate_status == (open ? "True" : "False")) return *node_->gate_since;
  return timers_.wall();
}

async::Task<void> GateWriter::write_condition(GateState state) {
  kube::GateCondition condition;
  condition.open = state == GateState::kOpen;
  condition.reason = order() ? "Override" : wish_->reason;
  condition.message = wish_->message;
  condition.since = condition_since(condition.open);
  condition.now = timers_.wall();
  kube::KubeRequest request;
  request.method = net::Method::kPatch;
  request.target = node_path(config_.node) + "/status?fieldManager=spillway-gate&force=true";
  request.content_type = "application/apply-patch+yaml";
  request.body = kube::encode_gate_condition(*node_, condition);
  condition_written_ = timers_.now();
  auto answer = co_await api_.send(std::move(request), timers_.now() + kCallDeadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  auto node = kube::decode_gate_node(answer->body);
  if (!node) co_return base::fail(std::move(node.error()));
  on_node(std::move(*node));
  co_return base::Result<void>();
}

base::TimePoint GateWriter::retry_at(const base::Error& error, const char* what) {
  failures_.add();
  const base::Duration own = random_.jittered(base::backoff_delay(kFailure, ++failed_in_a_row_), kJitter);
  const bool denied = error.kind == ErrorKind::kPermission;
  // A node identity may not write taints (NodeRestriction).
  const char* const remedy =
      denied ? "apply config/deploy/gate: the account lacks a right, or is a node's" : "retrying";
  if (failed_in_a_row_ == 1) {
    log::warn(what, {{"gate", config_.gate}, {"node", config_.node}, {"error", error}, {"remedy", remedy}});
  }
  return timers_.now() + base::heed_retry_after(own, error);
}

}  // namespace spillway::control
