// pod_controller, second part: choosing, buying and the other calls of a provider.
#include <algorithm>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/pod_controller.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr size_t kCreatesAtOnce = 32;
constexpr size_t kCallsAtOnce = 32;
constexpr base::Duration kCallDeadline = std::chrono::seconds(30);
constexpr base::BackoffPolicy kNoCapacityRetry{std::chrono::seconds(15), std::chrono::minutes(5)};
// So often others may have been unlucky, too. What fails more often may be at fault itself.
constexpr int kUnlucky = 3;
constexpr base::Duration kConfigRetry = std::chrono::seconds(10);
constexpr base::Duration kChooseAgain = std::chrono::milliseconds(200);
constexpr double kRetryJitter = 0.2;

/// Neither a late answer about an earlier attempt nor a call that waited in its lane says anything of the current one.
bool is_about(const PodEntry& entry, const base::InstanceTag& tag) {
  return entry.record.placement && entry.record.placement->tag == tag;
}

bool wants_create(const model::PodRecord& record) {
  if (std::holds_alternative<model::Booting>(record.stage)) return !record.deleting;
  const auto* creating = std::get_if<model::Creating>(&record.stage);
  return creating != nullptr && creating->step == model::Creating::Step::kCreate;
}

core::event::CreateFailed not_sent() {
  return {base::Error(base::ErrorKind::kUnavailable, "not asked for: the pod had moved on")};
}

}  // namespace

const core::Requirements& PodController::needs_of(PodEntry& entry) {
  if (!entry.needs) {
    entry.needs = std::make_unique<const core::Requirements>(
        core::compute_requirements(*entry.record.spec, entry.profile->public_ports));
  }
  return *entry.needs;
}

void PodController::choose(const base::PodUid& uid, PodEntry& entry) {
  const model::PodSpec& spec = *entry.record.spec;
  const base::TimePoint now = d_.timers->now();
  if (auto refusal = core::refusal(spec, needs_of(entry), d_.providers->abilities())) {
    return refuse(uid, entry, std::move(refusal->message), refusal->why);
  }
  if (const base::TimePoint launch_at = brake_.may_launch_at(spec.owner_key(), now); launch_at > now) {
    // A pod whose own image it was goes on to say so.
    const bool of_image = entry.record.image_failures > 0;
    return post(uid, core::event::Held{of_image ? model::WaitReason::kImagePull : model::WaitReason::kLaunchBackOff,
                                       of_image ? "the image could not be pulled; the next launch waits"
                                                : "an earlier pod of the same owner failed; the next launch waits",
                                       launch_at});
  }
  // What cannot be written down is not spent, and what an attempt has cost is written before the next one.
  if (!d_.ledger->problem().empty()) {
    return hold(uid, entry, model::WaitReason::kBudget, d_.ledger->problem(), {});
  }
  if (!d_.ledger->ready() || !d_.ledger->settled(uid)) return choose_again(uid, entry);
  // What nobody sells is not worth a read.
  if (!select(uid, entry)) return;
  // Not after the read: until then all other pods of the owner would find that they may be launched, too.
  brake_.note_launch(spec.owner_key(), now);
  reads_.push(Job{uid, core::action::Choose{}});
}

async::Loop PodController::resolve_then_buy(Job job) {
  PodEntry* const before = store_.find(job.uid);
  if (before == nullptr || !std::holds_alternative<model::Choosing>(before->record.stage)) co_return;
  auto pod = co_await resolve(*before);
  PodEntry* const entry = store_.find(job.uid);
  if (entry == nullptr || !std::holds_alternative<model::Choosing>(entry->record.stage)) co_return;
  if (!pod) {
    const base::Duration wait = d_.random->jittered(kConfigRetry, kRetryJitter);
    co_return post(job.uid, core::event::Held{pod.error().why, pod.error().message, d_.timers->now() + wait});
  }
  entry->resolved = std::make_shared<const model::ResolvedPod>(std::move(*pod));
  buy(job.uid, *entry);
}

boost::asio::awaitable<std::expected<model::ResolvedPod, core::Hindrance>> PodController::resolve(PodEntry& entry) {
  // The entry may go while the objects are read.
  const model::PodKey key = entry.record.key();
  Resolution resolution = co_await resolver_.resolve(entry.record.spec, *entry.profile, needs_of(entry).public_ports);
  for (core::Note& note : resolution.notes) {
    d_.events->warning(kube::target_of(key), std::move(note.reason), std::move(note.message));
  }
  changes_.given(key.uid, std::move(resolution.mounted));
  if (resolution.renew_tokens_at) tokens_.given(key.uid, *resolution.renew_tokens_at);
  co_return std::move(resolution.pod);
}

std::optional<core::Candidate> PodController::select(const base::PodUid& uid, PodEntry& entry) {
  const bool all_known = std::all_of(d_.providers->all().begin(), d_.providers->all().end(), [&](const auto& p) {
    return d_.offers->knows(p->info().name) || !p->reachable();
  });
  if (d_.offers->table().rows().empty() && !all_known) {
    // The first look at the prices is still under way.
    choose_again(uid, entry);
    return std::nullopt;
  }
  Placer::Answer answer = d_.placer->choose(entry, needs_of(entry), d_.timers->both());
  if (answer.best) return std::move(answer.best);
  if (answer.refused) {
    refuse(uid, entry, std::move(answer.message));
  } else if (std::ranges::none_of(d_.providers->all(), [](const auto& p) { return p->reachable(); })) {
    hold(uid, entry, model::WaitReason::kProviderUnavailable, "no provider answers", answer.again_at);
  } else {
    hold(uid, entry, answer.why, std::move(answer.message), answer.again_at);
  }
  return std::nullopt;
}

void PodController::refuse(const base::PodUid& uid, PodEntry& entry, std::string message, model::WaitReason why) {
  entry.resolved.reset();
  const base::TimePoint until = brake_.hold_refused(entry.record.spec->owner_key(), d_.timers->now());
  post(uid, core::event::Refused{std::move(message), until, why});
}

void PodController::choose_again(const base::PodUid& uid, PodEntry& entry) {
  entry.resolved.reset();
  again_.insert(uid);
  wakes_.add(uid, d_.timers->now() + kChooseAgain);
  waker_->wake();
}

void PodController::hold(const base::PodUid& uid, PodEntry& entry, model::WaitReason why, std::string message,
                         std::optional<base::TimePoint> again_at) {
  entry.resolved.reset();
  // What cools is tried by one first. A pod that fails everywhere lets others go first, or it would keep it cool for
  // all.
  const int failed = static_cast<int>(entry.record.tried.size());
  const base::Duration wait = base::backoff_delay(kNoCapacityRetry, std::max(1, failed - kUnlucky + 2));
  base::TimePoint again = d_.timers->now() + d_.random->jittered(wait, kRetryJitter);
  if (again_at && failed < kUnlucky) again = std::min(again, *again_at);
  post(uid, core::event::Held{why, std::move(message), again});
}

/// Chooses again: prices may have moved while the pod was resolved.
void PodController::buy(const base::PodUid& uid, PodEntry& entry) {
  const auto best = select(uid, entry);
  if (!best) return;
  const base::Now now = d_.timers->both();
  const auto tag = d_.ownership.make_tag(uid, entry.record.attempt + 1);
  if (!tag) {
    return refuse(uid, entry, "metadata.uid is not a UUID, or the pod was tried too often");
  }
  std::string why = d_.placer->tell_choice(entry, *best, now);
  // Nothing is awaited between the choice and this: of many pods at once each finds what the others have left.
  if (auto denied = d_.placer->reserve(entry, *best, *tag, now)) {
    return hold(uid, entry, denied->why, std::move(denied->message), {});
  }
  entry.launch->why = std::move(why);
  const model::Offer& offer = best->offer;
  core::event::Chosen chosen;
  chosen.placement.pod = uid;
  chosen.placement.provider = offer.provider;
  chosen.placement.offer = offer.id;
  chosen.placement.region = offer.region;
  chosen.placement.gpu_count = offer.gpu_count;
  chosen.placement.capacity_type = offer.capacity_type;
  chosen.placement.price_per_hour = *offer.price_per_hour;
  chosen.placement.tag = *tag;
  chosen.placement.attempt = entry.record.attempt + 1;
  chosen.provider = ProviderSet::facts(d_.providers->find(offer.provider)->info());
  chosen.price_cap = Placer::price_cap(entry);
  post(uid, std::move(chosen));
}

PodController::ProviderLanes& PodController::lanes(const base::ProviderName& provider) {
  ProviderLanes& lanes = lanes_[provider];
  if (!lanes.create) {
    // Two lanes, so that slow purchases never hold up the end of an instance.
    lanes.create =
        std::make_unique<Lane<Job>>(group_, kCreatesAtOnce, [this](Job job) { return create(std::move(job)); });
    lanes.other =
        std::make_unique<Lane<Job>>(group_, kCallsAtOnce, [this](Job job) { return call_provider(std::move(job)); });
  }
  return lanes;
}

async::Loop PodController::create(Job job) {
  PodEntry* entry = store_.find(job.uid);
  if (entry == nullptr || !is_about(*entry, job.tag)) co_return;
  // The job may have waited in its lane until the pod had moved on.
  if (!wants_create(entry->record)) co_return post(job.uid, not_sent());
  const model::Placement placement = *entry->record.placement;
  provider::ThrottledProvider* const provider = d_.providers->find(placement.provider);
  std::shared_ptr<const model::ResolvedPod> pod = entry->resolved;
  if (!pod) {
    auto resolved = co_await resolve(*entry);
    if (!resolved) {
      co_return post(job.uid,
                     core::event::CreateFailed{base::Error(base::ErrorKind::kUnavailable, resolved.error().message)});
    }
    pod = std::make_shared<const model::ResolvedPod>(std::move(*resolved));
    entry = store_.find(job.uid);
    if (entry == nullptr || !is_about(*entry, job.tag)) co_return;
    if (!wants_create(entry->record)) co_return post(job.uid, not_sent());
  }
  // Nothing may be awaited between this look at the lease and the call.
  const base::Deadline deadline = d_.timers->now() + d_.create_deadline;
  // What is carried on with is bought already.
  const bool exists = std::holds_alternative<model::Booting>(entry->record.stage);
  if (!d_.ledger->ready() && !exists) {
    co_return post(job.uid, core::event::CreateFailed{
                                base::Error(base::ErrorKind::kUnavailable, "the ledger cannot be read or written")});
  }
  if (!d_.lease_covers(deadline)) {
    co_return post(job.uid, core::event::CreateFailed{base::Error(
                                base::ErrorKind::kUnavailable, "the installation lease does not cover the purchase")});
  }
  // The intents of an earlier process are more than it could buy: of some it was told that they are sold out.
  if (const auto over = d_.placer->still_denied(*entry, d_.timers->both()); over && !exists) {
    co_return post(job.uid, core::event::CreateFailed{base::Error(base::ErrorKind::kNoCapacity, over->message())});
  }
  d_.placer->asked(*entry, d_.timers->now());
  auto instance = co_await provider->create(placement, *pod, deadline);
  entry = store_.find(job.uid);
  if (entry == nullptr || !is_about(*entry, placement.tag)) co_return;
  d_.placer->answered(*entry, instance ? nullptr : &instance.error(), d_.timers->now());
  if (instance) {
    entry->resolved.reset();
    entry->needs.reset();
    entry->shape.reset();
    core::event::Created created;
    if (instance->price_per_hour) {
      created.at_most = d_.placer->priced(*entry, *instance->price_per_hour, d_.timers->both());
    }
    created.instance = std::move(*instance);
    co_return post(job.uid, std::move(created));
  }
  log::warn("create failed", {{"pod", entry->record.key().to_string()},
                              {"provider", placement.provider},
                              {"offer", placement.offer},
                              {"tag", placement.tag},
                              {"error", instance.error()}});
  post(job.uid, core::event::CreateFailed{std::move(instance.error())});
}

async::Loop PodController::call_provider(Job job) {
  namespace a = core::action;
  PodEntry* entry = store_.find(job.uid);
  // A process that stood still finds what is due before it finds that its lease is gone: then somebody else acts.
  if (entry == nullptr || !is_about(*entry, job.tag) || !holds_lease()) co_return;
  provider::ThrottledProvider* const provider = d_.providers->find(entry->record.placement->provider);
  const base::Deadline deadline = d_.timers->now() + kCallDeadline;
  const auto answered = [this, &job](core::Event event) {
    const PodEntry* now = store_.find(job.uid);
    if (now != nullptr && is_about(*now, job.tag)) post(job.uid, std::move(event));
  };
  if (const auto* terminate = std::get_if<a::Terminate>(&job.action)) {
    auto done = co_await provider->terminate(terminate->ref, terminate->grace, deadline);
    if (done) co_return answered(core::event::TerminateAccepted{});
    co_return answered(core::event::TerminateFailed{std::move(done.error())});
  }
  if (const auto* confirm = std::get_if<a::Confirm>(&job.action)) {
    auto instance = co_await provider->get(confirm->ref, deadline);
    if (instance) co_return answered(core::event::InstanceSeen{std::move(*instance)});
    if (instance.error().kind == base::ErrorKind::kNotFound) co_return answered(core::event::InstanceGone{});
    co_return;
  }
  if (const auto* start = std::get_if<a::StartContainer>(&job.action)) {
    const std::string container = start->container;
    if (start->look_first) {
      auto seen = co_await provider->get(start->ref, deadline);
      if (!seen && seen.error().kind == base::ErrorKind::kNotFound) co_return answered(core::event::InstanceGone{});
      if (!seen) co_return answered(core::event::ContainerStartFailed{container, std::move(seen.error())});
      answered(core::event::InstanceSeen{std::move(*seen)});
      const PodEntry* now = store_.find(job.uid);
      if (now == nullptr || !is_about(*now, job.tag) || !core::is_being_started(now->record, container)) co_return;
      if (!holds_lease()) co_return;
    }
    auto done = co_await provider->control_container(start->ref, container, provider::ContainerAction::kStart,
                                                     std::chrono::seconds(0), deadline);
    if (done) co_return answered(core::event::ContainerStarted{container});
    answered(core::event::ContainerStartFailed{container, std::move(done.error())});
  }
  if (const auto* stop = std::get_if<a::StopContainer>(&job.action)) {
    const std::string container = stop->container;
    auto done = co_await provider->control_container(stop->ref, container, provider::ContainerAction::kStop,
                                                     stop->grace, deadline);
    if (done) co_return answered(core::event::ContainerStopAccepted{container});
    answered(core::event::ContainerStopFailed{container, std::move(done.error())});
  }
}

}  // namespace spillway::control
