#include "vk-provider/core/pod_fsm.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"
#include "vk-provider/core/pod_step.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::core {
namespace {

using base::TimePoint;
using model::Admitted;
using model::Booting;
using model::Creating;
using model::Finished;
using model::Instance;
using model::Running;
using model::StateAnnotation;
using model::Stopping;
using model::Waiting;

/// What was written on the pod is needed once, when it is joined; from then on only whether it changed.
void keep_fingerprint(model::ObservedPod& observed) {
  auto& status = observed.status;
  if (!status.containers.empty() || !status.init_containers.empty()) {
    status.containers_fingerprint = model::fingerprint(status.containers, status.init_containers);
    std::exchange(status.containers, {});  // to clear it would keep its memory
    std::exchange(status.init_containers, {});
  }
  if (!observed.state.record) return;
  observed.state_fingerprint = model::fingerprint(*observed.state.record);
  observed.state.record.reset();
}

}  // namespace

void PodStep::on(const event::PodSeen& e) {
  // The watch lags behind the answers to our own writes.
  if (model::is_older_version(e.observed.resource_version, r_.observed.resource_version)) return;
  r_.observed = e.observed;
  if (r_.observed.deletion_timestamp) {
    const bool news = note_deletion();
    if (news || is<Stopping>()) return on_delete();
  }
  // Somebody else ended the pod (C045): what it says is respected, and what it bought is given back.
  if (model::is_terminal(r_.observed.status.phase) && !r_.outcome && !is<Admitted>()) {
    r_.outcome = observed_outcome();
    end_because_terminal();
  }
  if (is<Finished>()) progress_finish();
}

void PodStep::on(const event::PodGone&) {
  r_.api_gone = true;
  // A graceful deletion keeps the object until we let it go: this one was forced.
  if (!std::exchange(r_.deleting, true) || r_.delete_by > now_.steady) r_.delete_by = now_.steady;
  on_delete();
}

void PodStep::on(const event::StatusWritten& e) {
  if (!model::is_older_version(e.resource_version, r_.observed.resource_version)) {
    r_.observed.resource_version = e.resource_version;
    r_.observed.status = e.status;
    r_.observed.addresses = e.addresses;
    if (e.state) {
      r_.observed.state.kind = StateAnnotation::Kind::kRecord;
      r_.observed.state.record = *e.state;
    }
  }
  if (is<Finished>()) progress_finish();
}

void PodStep::on(const event::Tick&) {
  if (const auto* waiting = find<Waiting>()) return tick_waiting(*waiting);
  if (auto* creating = find<Creating>()) return tick_creating(*creating);
  if (auto* booting = find<Booting>()) return tick_booting(*booting);
  if (is<Running>()) return follow_containers();
  if (auto* stopping = find<Stopping>()) {
    if (stopping->gone) return look_for_late_creates();
    if (stopping->call_under_way) return;
    if (now_.steady < stopping->retry_at) return wake_at(stopping->retry_at);
    if (stopping->hooks_left > 0) tell(true, "FailedPreStopHook", std::string(kHookTooSlow));
    return terminate(*stopping);
  }
  auto* finished = find<Finished>();
  if (finished == nullptr || finished->step != Finished::Step::kDeleting || finished->delete_under_way) return;
  if (now_.steady < finished->retry_at) return wake_at(finished->retry_at);
  delete_pod(*finished);
}

/// True if nothing was known of it.
bool PodStep::note_deletion() {
  const TimePoint by = now_.steady + r_.observed.deletion_grace;
  if (!r_.deleting || by < r_.delete_by) r_.delete_by = by;
  return !std::exchange(r_.deleting, true);
}

void PodStep::tell(bool warning, std::string reason, std::string message) {
  act(action::Tell{warning, std::move(reason), std::move(message)});
}

void PodStep::wake_at(TimePoint when) {
  if (when != TimePoint::max()) act(action::WakeAt{when});
}

void PodStep::enter(model::Stage stage) {
  r_.stage = std::move(stage);
  r_.entered.at(r_.stage.index()) = now_.steady;
  r_.missing = 0;
  r_.confirms = 0;
  r_.confirm_at = {};
}

std::chrono::seconds PodStep::grace_left() const {
  if (!r_.deleting || r_.delete_by <= now_.steady) return std::chrono::seconds(0);
  return std::chrono::ceil<std::chrono::seconds>(r_.delete_by - now_.steady);
}

const Instance* PodStep::current_instance() const { return instance_of(r_); }

std::optional<size_t> PodStep::find_container(const std::string& name) const {
  const auto it = std::ranges::find_if(r_.containers, [&](const auto& c) { return c.claim.name == name; });
  if (it == r_.containers.end()) return std::nullopt;
  return static_cast<size_t>(it - r_.containers.begin());
}

model::Outcome PodStep::observed_outcome() const {
  model::Outcome outcome;
  outcome.phase = r_.observed.status.phase;
  outcome.reason = r_.observed.status.reason;
  outcome.message = r_.observed.status.message;
  return outcome;
}

void PodStep::fail(std::string reason, std::string message, std::string disruption) {
  model::Outcome outcome;
  outcome.reason = std::move(reason);
  outcome.message = std::move(message);
  outcome.disruption = std::move(disruption);
  r_.outcome = std::move(outcome);
}

bool is_placeholder(const model::PodSpec& spec, const model::ObservedPod& observed) {
  const bool bought = observed.state.kind == StateAnnotation::Kind::kRecord ||
                      observed.state.kind == StateAnnotation::Kind::kUnreadable;
  return spec.owner.kind == "DaemonSet" && spec.tolerates_everything && !bought;
}

model::PodRecord admit(model::PodSpecPtr spec, model::ObservedPod observed, base::Now now) {
  model::PodRecord record;
  record.spec = std::move(spec);
  record.observed = std::move(observed);
  record.stage = Admitted{};
  record.entered.at(record.stage.index()) = now.steady;
  if (record.observed.deletion_timestamp) {
    record.deleting = true;
    record.delete_by = now.steady + record.observed.deletion_grace;
  }
  return record;
}

Actions advance(model::PodRecord& record, const Event& event, base::Now now, const PodPolicy& policy) {
  PodStep step(record, now, policy);
  std::visit([&](const auto& e) { step.on(e); }, event);
  step.after();
  if (!std::holds_alternative<Admitted>(record.stage)) keep_fingerprint(record.observed);
  return step.take();
}

}  // namespace spillway::core
