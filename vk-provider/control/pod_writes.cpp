// pod_controller, third part: what is written to the API server. The only writer of pod status.
#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/pod_controller.hpp"
#include "vk-provider/core/pod_status.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr base::Duration kWriteDeadline = std::chrono::seconds(30);
constexpr base::BackoffPolicy kWriteBackoff{std::chrono::milliseconds(500), std::chrono::seconds(15)};
constexpr base::Duration kRejectedRetry = std::chrono::minutes(1);

bool is_running(const model::PodStatus& status) { return status.phase == model::PodPhase::kRunning; }

bool is_ready(const model::PodStatus& status) {
  return status.condition(model::ConditionType::kReady).status == model::PodCondition::Status::kTrue;
}

/// Below that of any pod at home, which is 0, and the lower the dearer: in cents per hour.
int deletion_cost(base::Money per_hour) {
  constexpr std::int64_t kMicrosPerCent = 10'000;
  return static_cast<int>(-1 - std::min<std::int64_t>(per_hour.micros() / kMicrosPerCent, 1'000'000'000));
}

/// A status that the API server rejects must not keep a pod from being deleted.
bool must_go_on(const PodEntry& entry) { return entry.record.deleting && entry.record.outcome.has_value(); }

}  // namespace

PodController::Stale PodController::stale_annotations(const model::PodRecord& record) {
  Stale stale;
  stale.state = core::wanted_state(record);
  if (stale.state && record.observed.state_fingerprint == model::fingerprint(*stale.state)) stale.state.reset();
  stale.addresses = core::wanted_addresses(record);
  if (*stale.addresses == record.observed.addresses) stale.addresses.reset();
  return stale;
}

bool PodController::is_due(const PodEntry& entry, const model::PodStatus& wanted, const Stale& stale,
                           base::TimePoint now) const {
  const model::PodRecord& r = entry.record;
  if (stale.addresses || !model::shows(r.observed.status, wanted)) return true;
  const auto* booting = std::get_if<model::Booting>(&r.stage);
  const bool too_early = booting != nullptr && now - booting->since < d_.policy.write_instance_after;
  return stale.state && !too_early;
}

void PodController::consider_status(const base::PodUid& uid, PodEntry& entry) {
  if (entry.write_under_way) return;
  const base::Now now = d_.timers->both();
  if (now.steady < entry.write_again_at) {
    // Asked for again each time: a wake that comes earlier takes the place of this one.
    wakes_.add(uid, entry.write_again_at);
    return waker_->wake();
  }
  const auto wanted = core::wanted_status(entry.record, entry.profile->internal_ip, now);
  if (!wanted || !is_due(entry, *wanted, stale_annotations(entry.record), now.steady)) return;
  entry.write_under_way = true;
  writes_.push(Job{uid, core::action::WriteStatus{}});
}

async::Loop PodController::write(Job job) {
  // A process that stood still may find its answers before it finds that its lease is gone: then somebody else writes.
  if (!holds_lease()) co_return;
  if (std::holds_alternative<core::action::WriteIntent>(job.action)) {
    co_await write_intent(std::move(job.uid));
  } else if (std::holds_alternative<core::action::DeletePod>(job.action)) {
    co_await delete_pod(std::move(job.uid));
  } else {
    co_await write_status(std::move(job.uid));
  }
}

async::Task<std::string> PodController::send_patch(kube::PodStatusPatch patch) {
  const model::PodKey key = patch.key;
  auto version = co_await d_.client->patch_pod_status(std::move(patch), d_.timers->now() + kWriteDeadline);
  metrics_.status_written(version ? "ok" : std::string(to_string(version.error().kind)));
  if (version || version.error().kind != base::ErrorKind::kConflict) co_return version;
  // Somebody wrote before us, or an answer to us was lost. The watch will say so, but it may lag.
  auto pod = co_await d_.client->get_pod(key.ns, key.name, d_.timers->now() + kWriteDeadline);
  if (pod && pod->key.uid == key.uid) {
    post(key.uid, core::event::PodSeen{std::move(pod->observed)});
  } else if (pod || pod.error().kind == base::ErrorKind::kNotFound) {
    pod_gone(key.uid);
  }
  co_return version;
}

async::Loop PodController::write_intent(base::PodUid uid) {
  PodEntry* entry = store_.find(uid);
  if (entry == nullptr) co_return;
  const model::PodRecord& r = entry->record;
  if (r.deleting || r.outcome) {
    // It was deleted, or ended by somebody, while the intent waited for its turn.
    write_ended(uid, *entry);
    co_return post(uid, core::event::IntentFailed{base::Error(base::ErrorKind::kCancelled, "the pod ends")});
  }
  kube::PodStatusPatch patch;
  patch.key = r.key();
  patch.resource_version = r.observed.resource_version;
  patch.status = core::starting_status(r, entry->profile->internal_ip, d_.timers->both());
  patch.previous = r.observed.status;
  patch.state = core::wanted_state(r);
  if (entry->launch) patch.why = entry->launch->why;
  // Written once: with the intent it costs no request.
  const bool replaced_by_others = !r.spec->owner.uid.empty() && !r.observed.deletion_cost;
  if (replaced_by_others) patch.deletion_cost = deletion_cost(r.placement->price_per_hour);
  patch.note_withheld_token = r.spec->service_account_token_withheld && !r.observed.withheld_note;
  core::event::StatusWritten written;
  written.status = patch.status;
  written.state = patch.state;
  written.addresses = r.observed.addresses;
  auto version = co_await send_patch(std::move(patch));
  entry = store_.find(uid);
  if (entry == nullptr) co_return;
  write_ended(uid, *entry);
  if (!version) {
    log::warn("intent not written", {{"pod", entry->record.key().to_string()}, {"error", version.error()}});
    co_return post(uid, core::event::IntentFailed{std::move(version.error())});
  }
  written.resource_version = std::move(*version);
  post(uid, std::move(written));
  post(uid, core::event::IntentWritten{});
}

async::Loop PodController::write_status(base::PodUid uid) {
  PodEntry* entry = store_.find(uid);
  if (entry == nullptr) co_return;
  const model::PodRecord& r = entry->record;
  const base::Now now = d_.timers->both();
  const auto wanted = core::wanted_status(r, entry->profile->internal_ip, now);
  Stale stale = stale_annotations(r);
  // What was to be written may have passed while the job waited.
  if (!wanted || !is_due(*entry, *wanted, stale, now.steady)) co_return write_ended(uid, *entry);
  kube::PodStatusPatch patch;
  patch.key = r.key();
  // What somebody wrote before us, and the watch has not brought yet, may be an end of the pod: it is not overwritten.
  patch.resource_version = r.observed.resource_version;
  patch.status = *wanted;
  patch.previous = r.observed.status;
  patch.state = std::move(stale.state);
  patch.addresses = std::move(stale.addresses);

  // Compared now: the watch may bring the new status before the answer comes.
  const bool becomes_running = is_running(*wanted) && !is_running(r.observed.status);
  const bool becomes_ready = is_ready(*wanted) && !is_ready(r.observed.status);

  core::event::StatusWritten written;
  written.status = *wanted;
  written.state = patch.state;
  written.addresses = patch.addresses.value_or(r.observed.addresses);
  const std::string known_version = r.observed.resource_version;
  auto version = co_await send_patch(std::move(patch));
  entry = store_.find(uid);
  if (entry == nullptr) co_return;
  write_ended(uid, *entry);
  if (version) {
    entry->write_failures = 0;
    note_published(*entry, becomes_running, becomes_ready);
    written.resource_version = std::move(*version);
    co_return post(uid, std::move(written));
  }
  const base::Error& error = version.error();
  if (error.kind == base::ErrorKind::kNotFound) co_return pod_gone(uid);
  if (entry->record.observed.resource_version != known_version) co_return consider_status(uid, *entry);
  log::warn("status not written", {{"pod", entry->record.key().to_string()}, {"error", error}});
  if (error.kind == base::ErrorKind::kInvalid && must_go_on(*entry)) {
    written.resource_version = entry->record.observed.resource_version;
    co_return post(uid, std::move(written));
  }
  ++entry->write_failures;
  base::Duration delay = base::backoff_delay(kWriteBackoff, entry->write_failures);
  if (error.kind == base::ErrorKind::kInvalid) delay = kRejectedRetry;
  entry->write_again_at = d_.timers->now() + base::heed_retry_after(delay, error);
  wakes_.add(uid, entry->write_again_at);
  waker_->wake();
}

void PodController::write_ended(const base::PodUid& uid, PodEntry& entry) {
  entry.write_under_way = std::exchange(entry.intent_waits, false);
  if (entry.write_under_way) writes_.push(Job{uid, core::action::WriteIntent{}});
}

void PodController::note_published(PodEntry& entry, bool running, bool ready) {
  ready = ready && !std::exchange(entry.status_seen_ready, true);
  metrics_.published(entry, running, ready, d_.timers->now());
}

async::Loop PodController::delete_pod(base::PodUid uid) {
  PodEntry* entry = store_.find(uid);
  if (entry == nullptr) co_return;
  auto done = co_await d_.client->delete_pod(entry->record.key(), d_.timers->now() + kWriteDeadline);
  if (store_.find(uid) == nullptr) co_return;
  if (done) co_return post(uid, core::event::PodDeleteAccepted{});
  post(uid, core::event::PodDeleteFailed{std::move(done.error())});
}

}  // namespace spillway::control
