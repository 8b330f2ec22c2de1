#include "vk-provider/control/drain_controller.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "vk-provider/base/log.hpp"
#include "vk-provider/kube/drain_codec.hpp"
#include "vk-provider/kube/drain_requests.hpp"

namespace spillway::control {
namespace asio = boost::asio;
namespace log = base::log;

namespace {

using core::DrainEnd;
using core::DrainMode;
using core::DrainNotice;
using core::DrainOrder;
using core::DrainReply;

constexpr base::Duration kDebounce = std::chrono::milliseconds(500);
constexpr base::Duration kCallDeadline = std::chrono::seconds(10);
constexpr base::Duration kWatchTime = std::chrono::seconds(30);

const char* reason_of(DrainNotice::Kind kind) {
  switch (kind) {
    case DrainNotice::Kind::kStarted: return "DrainStarted";
    case DrainNotice::Kind::kDetached: return "DrainDetached";
    case DrainNotice::Kind::kDone: return "DrainDone";
    case DrainNotice::Kind::kBlocked: return "DrainBlocked";
    case DrainNotice::Kind::kAborted: return "DrainAborted";
  }
  return "DrainAborted";
}

kube::KubeRequest request_of(const DrainOrder& order) {
  switch (order.verb) {
    case DrainOrder::Verb::kDetach: return kube::detach_request(order.pod, order.note);
    case DrainOrder::Verb::kReturn: return kube::return_request(order.pod);
    case DrainOrder::Verb::kEvict: break;
  }
  return kube::eviction_request(order.pod);
}

DrainReply::Answer answer_of(DrainOrder::Verb verb, const base::Error& error) {
  using Answer = DrainReply::Answer;
  const bool evicts = verb == DrainOrder::Verb::kEvict;
  switch (error.kind) {
    case base::ErrorKind::kNotFound: return Answer::kGone;
    case base::ErrorKind::kConflict: return Answer::kConflict;
    case base::ErrorKind::kPermission: return Answer::kRefused;
    case base::ErrorKind::kRateLimited: return evicts ? Answer::kBudget : Answer::kFailed;
    // Of a patch: the UID is another one by now.
    case base::ErrorKind::kInvalid: return evicts ? Answer::kRefused : Answer::kConflict;
    default: break;
  }
  // The API server says this with 500.
  const bool two = error.message.find("more than one PodDisruptionBudget") != std::string::npos;
  return evicts && two ? Answer::kTwoBudgets : Answer::kFailed;
}

DrainReply reply_of(DrainOrder::Verb verb, const base::Result<kube::KubeResponse>& answer) {
  DrainReply out;
  if (answer) {
    out.answer = DrainReply::Answer::kDone;
    return out;
  }
  out.answer = answer_of(verb, answer.error());
  out.message = answer.error().message;
  out.retry_after = answer.error().retry_after;
  return out;
}

base::Gauge& drain_gauge(const GateDeps& deps, const std::string& gate, const char* name, const char* help) {
  return deps.metrics->gauge(name, help, {{"gate", gate}});
}

}  // namespace

struct DrainController::Drain {
  Drain(const GateSettings& settings, const core::HomeBook& book, const GateDeps& deps)
      : name(settings.name),
        rules(settings.drain),
        // What is less than that opens the gate.
        policy(settings.drain, std::max(settings.rules.reserve, settings.rules.open_below), book, deps.timers->now()),
        inflight(drain_gauge(deps, name, "spillway_drain_inflight", "Moves home that are under way.")),
        waiting(drain_gauge(deps, name, "spillway_pods_waiting_to_drain",
                            "Pods that could be moved home and for which home has room beyond the reserve.")),
        saved(drain_gauge(deps, name, "spillway_drain_saved_dollars_per_hour",
                          "Dollars an hour that pods cost which were moved home since the start.")) {}

  std::string name;
  core::DrainRules rules;
  core::DrainPolicy policy;
  std::optional<core::DrainSight> sight;  // none before the first decision
  base::Money saved_so_far;
  base::Gauge& inflight;
  base::Gauge& waiting;
  base::Gauge& saved;
};

class DrainController::BudgetSink final : public kube::ReflectorSink {
 public:
  explicit BudgetSink(DrainController& owner) : owner_(owner) {}

  void on_list_begin() override {
    for (const auto& drain : owner_.drains_) drain->policy.roster().begin_budgets();
  }
  void on_list_end() override { owner_.note_change(); }
  void on_object(std::string_view json) override {
    const auto budget = kube::decode_budget(json);
    if (!budget) return log::warn("a PodDisruptionBudget is left out", {{"error", budget.error()}});
    const std::int64_t allowed = kube::decode_disruptions_allowed(json);
    for (const auto& drain : owner_.drains_) drain->policy.put_budget(*budget, allowed);
    owner_.note_change();
  }
  void on_deleted(std::string_view json) override {
    const auto budget = kube::decode_budget(json);
    if (!budget) return;
    for (const auto& drain : owner_.drains_) drain->policy.roster().remove_budget(budget->ns, budget->name);
    owner_.note_change();
  }

 private:
  DrainController& owner_;
};

DrainController::DrainController(GateController& gates, GateDeps deps)
    : d_(std::move(deps)), waiter_(d_.timers->make_waiter()) {
  bool any = false;
  for (size_t i = 0; i < gates.gates(); ++i) {
    drains_.push_back(std::make_unique<Drain>(gates.settings(i), gates.book(i), d_));
    any = any || drains_.back()->rules.mode != DrainMode::kOff;
  }
  budget_sink_ = std::make_unique<BudgetSink>(*this);
  if (any) {
    kube::ReflectorConfig config;
    config.name = "drain-budgets";
    config.path = "/apis/policy/v1/poddisruptionbudgets";
    config.watch_time = kWatchTime;
    budgets_ = std::make_unique<kube::Reflector>(std::move(config), *d_.api, *budget_sink_, *d_.timers, *d_.random,
                                                 *d_.metrics);
  }
  gates.set_listener(this);
}

DrainController::~DrainController() = default;

async::Loop DrainController::run() {
  async::TaskGroup parts(co_await asio::this_coro::executor);
  if (budgets_) parts.spawn(budgets_->run());
  std::exception_ptr end;
  try {
    for (;;) co_await wait_until_due(step_all(parts));
  } catch (...) {  // cancellation; the parts are joined before it goes on
    end = std::current_exception();
  }
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await parts.stop();
  if (end) std::rethrow_exception(end);
}

void DrainController::note_change() {
  if (due_) return;
  due_ = d_.timers->now() + kDebounce;
  waiter_->wake();
}

void DrainController::note_at_once() {
  due_ = d_.timers->now();
  waiter_->wake();
}

asio::awaitable<void> DrainController::wait_until_due(base::TimePoint next) {
  for (;;) {
    const base::TimePoint due = due_ ? std::min(next, *due_) : next;
    if (d_.timers->now() >= due) break;
    co_await waiter_->wait_until(due);
  }
  due_.reset();
}

void DrainController::on_pods_begin() {
  for (const auto& drain : drains_) drain->policy.roster().begin_pods();
}

void DrainController::on_pods_end() {
  for (const auto& drain : drains_) drain->policy.roster().end_pods();
  note_change();
}

void DrainController::on_pod(const model::HomePod& pod) {
  for (const auto& drain : drains_) {
    // A drain that is off only gives back what an earlier one has left.
    if (drain->rules.mode == DrainMode::kOff && pod.drain.draining.empty()) {
      drain->policy.roster().remove_pod(pod.uid);
    } else {
      drain->policy.roster().put_pod(pod);
      note_change();
    }
  }
}

void DrainController::on_pod_deleted(const std::string& uid) {
  for (const auto& drain : drains_) drain->policy.roster().remove_pod(uid);
  note_change();
}

void DrainController::on_decision(size_t gate, const core::GateDecision& decision, std::set<std::string> closed_nodes) {
  Drain& drain = *drains_.at(gate);
  const bool turned = !drain.sight || drain.sight->gate.state != decision.state;
  if (!drain.sight) drain.sight.emplace();
  drain.sight->gate = decision;
  drain.sight->closed_nodes = std::move(closed_nodes);
  turned ? note_at_once() : note_change();
}

base::TimePoint DrainController::step_all(async::TaskGroup& parts) {
  const base::Now now = d_.timers->both();
  base::TimePoint next = now.steady + core::DrainPolicy::kTick;
  for (size_t i = 0; i < drains_.size(); ++i) {
    Drain& drain = *drains_[i];
    if (!drain.sight) continue;
    drain.sight->budgets_known = budgets_ && budgets_->synced();
    core::DrainStep step = drain.policy.step(*drain.sight, now);
    show(drain, step);
    for (core::DrainOrder& order : step.orders) parts.spawn(perform(i, std::move(order)));
    next = std::min(next, step.next);
  }
  return next;
}

void DrainController::show(Drain& drain, const core::DrainStep& step) {
  for (const DrainNotice& notice : step.notices) tell(drain, notice);
  for (const core::DrainResult& result : step.results) {
    const std::string mode(to_string(result.mode));
    d_.metrics
        ->counter("spillway_drain_moves_total", "Moves home that have ended.",
                  {{"gate", drain.name}, {"mode", mode}, {"result", std::string(to_string(result.end))}})
        .add();
    if (result.end != DrainEnd::kHome) continue;
    d_.metrics
        ->histogram("spillway_drain_seconds", "From the beginning of a move to the Ready replacement at home.",
                    {{"gate", drain.name}, {"mode", mode}}, base::latency_bounds())
        .observe(std::chrono::duration<double>(result.took).count());
    drain.saved_so_far = drain.saved_so_far + result.price.value_or(base::Money());
    drain.saved.set(static_cast<double>(drain.saved_so_far.micros()) / 1e6);
  }
  drain.inflight.set(static_cast<double>(step.inflight));
  drain.waiting.set(static_cast<double>(step.waiting));
  for (size_t i = 1; i < core::kDrainBars; ++i) {
    const std::string reason(to_string(static_cast<core::DrainBar>(i)));
    d_.metrics
        ->gauge("spillway_drain_blocked", "Pods on rented nodes that are not moved home now, by what bars them.",
                {{"gate", drain.name}, {"reason", reason}})
        .set(static_cast<double>(step.barred.at(i)));
  }
}

void DrainController::tell(const Drain& drain, const DrainNotice& notice) {
  const model::DrainFacts& facts = notice.pod.drain;
  const char* const reason = reason_of(notice.kind);
  log::info(
      "drain",
      {{"gate", drain.name}, {"pod", facts.ns + "/" + facts.name}, {"what", reason}, {"message", notice.message}});
  if (d_.events == nullptr) return;
  kube::EventTarget target;
  target.ns = facts.ns;
  target.name = facts.name;
  target.uid = notice.pod.uid;
  const bool warning = notice.kind == DrainNotice::Kind::kBlocked || notice.kind == DrainNotice::Kind::kAborted;
  warning ? d_.events->warning(target, reason, notice.message) : d_.events->normal(target, reason, notice.message);
}

async::Loop DrainController::perform(size_t gate, core::DrainOrder order) {
  const auto answer = co_await d_.api->send(request_of(order), d_.timers->now() + kCallDeadline);
  drains_.at(gate)->policy.on_reply(order.pod.uid, reply_of(order.verb, answer), d_.timers->both());
  note_at_once();
}

}  // namespace spillway::control
