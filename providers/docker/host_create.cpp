#include <algorithm>
#include <utility>

#include "providers/docker/gpu_slots.hpp"
#include "providers/docker/host.hpp"
#include "providers/docker/sandbox_image.hpp"
#include "providers/docker/volume_codec.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

// For so long the GPUs of a create without an answer stay promised: a hung engine may still carry it out.
constexpr base::Duration kReservationTime = std::chrono::seconds(120);

/// A read before anything was bought.
base::Error nothing_bought(base::Error error) {
  if (error.kind == ErrorKind::kDeadline) error.kind = ErrorKind::kUnavailable;
  return error;
}

}  // namespace

async::Task<model::Instance> Host::create(model::Placement placement, model::ResolvedPod pod, base::Deadline deadline) {
  const auto gpu_count = gpus_of_offer(config_, placement.offer);
  if (!gpu_count || *gpu_count != placement.gpu_count) {
    co_return base::fail(ErrorKind::kInvalid, "docker host " + config_.name + " has no offer " + placement.offer.str() +
                                                  " with " + std::to_string(placement.gpu_count) + " GPUs");
  }
  const auto api = co_await client_.api(deadline);
  if (!api) co_return base::fail(nothing_bought(api.error()));
  auto possible = check_pod(pod, *api);
  if (!possible) co_return base::fail(std::move(possible.error()));
  const std::string tag = placement.tag.str();
  InstancePlan plan = make_plan(placement, std::move(pod), std::vector<int>(), price_of(config_, *gpu_count));

  auto sandbox = co_await find_or_make_sandbox(plan, *gpu_count, deadline);
  if (!sandbox) co_return base::fail(std::move(sandbox.error()));
  plan.gpus = sandbox->gpus;
  // A sandbox that ran and ended took the network along: the instance is lost, and is shown as that.
  const bool usable = sandbox->state == "created" || sandbox->state == "running";
  if (sandbox->id.empty() || !usable || work_of(tag)->progress.ending) co_return co_await get(tag, deadline);
  if (sandbox->state == "created") {
    auto started = co_await start_sandbox(sandbox->id, deadline);
    if (!started) co_return base::fail(std::move(started.error()));
  }
  model::Instance instance = fresh_instance(plan);
  begin_bring_up(std::move(plan), sandbox->id);
  if (!sandbox->existed) co_return instance;
  co_return co_await get(tag, deadline);
}

model::Instance Host::fresh_instance(const InstancePlan& plan) const {
  model::Instance instance;
  instance.ref = model::InstanceRef(context_.provider, to_instance_id(config_.name, plan.tag));
  instance.tag = base::InstanceTag(plan.tag);
  instance.state = model::InstanceState::kPending;
  instance.price_per_hour = plan.price_per_hour;
  for (const model::ResolvedContainer& container : plan.containers) {
    model::InstanceContainer& waiting = instance.containers.emplace_back();
    waiting.name = container.name;
    waiting.reason = "ContainerCreating";
  }
  return instance;
}

async::Task<Host::Sandbox> Host::find_or_make_sandbox(InstancePlan plan, int gpu_count, base::Deadline deadline) {
  // Held until the sandbox exists: the next one who looks sees its labels.
  const async::Semaphore::Permit permit = co_await purchases_.acquire(deadline);
  if (!permit) {
    co_return base::fail(ErrorKind::kUnavailable,
                         "docker host " + config_.name + ": earlier purchases took until the deadline");
  }
  auto listing = co_await client_.list(std::string(kLabelTag), deadline);
  if (!listing) co_return base::fail(nothing_bought(std::move(listing.error())));
  InstanceGroups groups = group_by_tag(listing->entries);
  const auto existing = groups.find(plan.tag);
  if (existing != groups.end()) {
    Sandbox sandbox = to_sandbox(existing->second);
    groups.erase(existing);
    if (sandbox.state != "created" || !overlap(sandbox.gpus, holdings(groups))) co_return sandbox;
    // It was made by a daemon that died, so late that its GPUs had been given to another. It never ran.
    auto removed = co_await remove_unused(sandbox.id, deadline);
    if (!removed) co_return base::fail(std::move(removed.error()));
  }

  const Holdings held = holdings(groups);
  auto gpus = choose_gpus(config_.gpu_count, held.gpus, gpu_count);
  if (gpu_count > 0 && (!gpus || !held.gpus_known)) {
    co_return base::fail(ErrorKind::kNoCapacity,
                         "docker host " + config_.name + " has no " + std::to_string(gpu_count) + " free GPUs");
  }
  if (held.instances >= config_.max_instances) {
    co_return base::fail(ErrorKind::kNoCapacity, "docker host " + config_.name + " is full: maxInstances is " +
                                                     std::to_string(config_.max_instances));
  }
  plan.gpus = std::move(*gpus);
  const std::string tag = plan.tag;
  auto sandbox = co_await make_sandbox(std::move(plan), deadline);
  if (!sandbox || sandbox->gpus.empty()) co_return sandbox;
  auto checked = co_await check_gpus(tag, *sandbox, deadline);
  if (!checked) co_return base::fail(std::move(checked.error()));
  co_return sandbox;
}

/// A create of a daemon that died may have been carried out between our look and our own create. Whoever has not
/// started yet gives way.
async::Task<void> Host::check_gpus(std::string tag, Sandbox sandbox, base::Deadline deadline) {
  const auto listing = co_await client_.list(std::string(kLabelTag), deadline);
  if (!listing) co_return base::fail(ErrorKind::kUnknownOutcome, listing.error().message);
  InstanceGroups groups = group_by_tag(listing->entries);
  groups.erase(tag);
  if (!overlap(sandbox.gpus, holdings(groups))) co_return base::Result<void>();
  const auto removed = co_await remove_unused(sandbox.id, deadline);
  if (!removed) co_return base::fail(removed.error());
  co_return base::fail(ErrorKind::kUnavailable,
                       "docker host " + config_.name + ": another instance took the same GPUs; try again");
}

async::Task<void> Host::remove_unused(std::string id, base::Deadline deadline) {
  const auto removed = co_await client_.remove(id, deadline);
  if (removed && (removed->ok() || removed->status == 404)) co_return base::Result<void>();
  co_return base::fail(ErrorKind::kUnknownOutcome, "docker host " + config_.name + ": removal of a sandbox: " +
                                                       (removed ? removed->text : removed.error().message));
}

Host::Sandbox Host::to_sandbox(const InstanceGroup& group) {
  Sandbox sandbox;
  sandbox.existed = true;
  if (group.sandbox == nullptr) return sandbox;
  sandbox.id = group.sandbox->id;
  sandbox.state = group.sandbox->state;
  sandbox.gpus = from_gpu_label(label(group.sandbox->labels, kLabelGpus)).value_or(std::vector<int>());
  return sandbox;
}

bool Host::overlap(const std::vector<int>& gpus, const Holdings& held) {
  return std::any_of(gpus.begin(), gpus.end(), [&held](int gpu) { return held.gpus.contains(gpu); });
}

async::Task<Host::Sandbox> Host::make_sandbox(InstancePlan plan, base::Deadline deadline) {
  auto image = co_await ensure_sandbox_image(deadline);
  if (!image) co_return base::fail(std::move(image.error()));
  Reservation reservation;
  reservation.gpus = plan.gpus;
  reservation.until = in(kReservationTime);
  reservations_.insert_or_assign(plan.tag, std::move(reservation));

  auto answer = co_await client_.create(plan.tag, encode_sandbox(plan, config_), deadline);
  if (answer && answer->status == 404) {  // somebody pruned our image
    sandbox_image_present_ = false;
    image = co_await ensure_sandbox_image(deadline);
    if (!image) {
      reservations_.erase(plan.tag);
      co_return base::fail(std::move(image.error()));
    }
    answer = co_await client_.create(plan.tag, encode_sandbox(plan, config_), deadline);
  }
  if (!answer && answer.error().kind != ErrorKind::kUnknownOutcome) {
    reservations_.erase(plan.tag);
    co_return base::fail(std::move(answer.error()));
  }
  if (!answer || !answer->ok()) {
    auto found = co_await look_up_sandbox(plan.tag, std::move(answer), deadline);
    if (found) found->gpus = plan.gpus;
    const bool unknown = !found && found.error().kind == ErrorKind::kUnknownOutcome;
    if (!unknown) reservations_.erase(plan.tag);
    co_return found;
  }
  reservations_.erase(plan.tag);
  Sandbox sandbox;
  sandbox.id = answer->text;
  sandbox.state = "created";
  sandbox.gpus = std::move(plan.gpus);
  co_return sandbox;
}

/// A create that was refused or not answered. Engines say 400, 409 or 500 for a name that is taken, and a busy one says
/// 500 to what it then does: only the name tells.
async::Task<Host::Sandbox> Host::look_up_sandbox(std::string tag, base::Result<Answer> answer,
                                                 base::Deadline deadline) {
  const std::string said =
      answer ? "the engine answered " + std::to_string(answer->status) + ": " + answer->text : answer.error().message;
  const int status = answer ? answer->status : 0;
  const std::string prefix = "docker host " + config_.name + ": create of sandbox " + tag + ": ";

  const auto facts = co_await client_.inspect(tag, deadline);
  if (facts) {
    if (label(facts->labels, kLabelTag) != tag || label(facts->labels, kLabelRole) != kRoleSandbox) {
      co_return base::fail(ErrorKind::kInvalid,
                           prefix + "the name is taken by a container that is not ours; remove it");
    }
    Sandbox sandbox;
    sandbox.id = facts->id;
    sandbox.state = facts->state;
    sandbox.existed = true;
    co_return sandbox;
  }
  const bool absent = facts.error().kind == ErrorKind::kNotFound;
  if (absent && status == 409) co_return base::fail(ErrorKind::kUnavailable, prefix + said);  // the name frees up now
  if (absent && status >= 400 && status < 500) co_return base::fail(ErrorKind::kInvalid, prefix + said);
  co_return base::fail(ErrorKind::kUnknownOutcome, prefix + said);
}

async::Task<void> Host::start_sandbox(std::string id, base::Deadline deadline) {
  const auto answer = co_await client_.start(id, deadline);
  if (answer && answer->ok()) co_return base::Result<void>();
  const std::string said = answer ? answer->text : answer.error().message;
  const std::string prefix = "docker host " + config_.name + ": start of the sandbox: " + said;

  const auto facts = co_await client_.inspect(id, deadline);
  if (facts && facts->running()) co_return base::Result<void>();
  if (!facts || !answer) co_return base::fail(ErrorKind::kUnknownOutcome, prefix);
  const auto removed = co_await remove_unused(id, deadline);
  if (!removed) co_return base::fail(ErrorKind::kUnknownOutcome, prefix);
  // "no available IPv4 addresses on this network's address pools": the bridge is full, not broken.
  const bool full = said.contains("no available IPv4 addresses");
  co_return base::fail(full ? ErrorKind::kNoCapacity : ErrorKind::kUnavailable, prefix);
}

async::Task<void> Host::ensure_sandbox_image(base::Deadline deadline) {
  if (sandbox_image_present_) co_return base::Result<void>();
  const auto present = co_await client_.has_image(sandbox_image_name(), deadline);
  if (!present) co_return base::fail(nothing_bought(present.error()));
  if (!*present) {
    const auto architecture = co_await client_.architecture(deadline);
    if (!architecture) co_return base::fail(nothing_bought(architecture.error()));
    if (*architecture != kSandboxArchitecture) {
      co_return base::fail(ErrorKind::kUnsupported, "docker host " + config_.name + " is " + *architecture +
                                                        "; the sandbox exists for " +
                                                        std::string(kSandboxArchitecture) + " only");
    }
    auto imported = co_await client_.import_image(std::string(kSandboxRepository), std::string(kSandboxTag),
                                                  sandbox_image_tar(), deadline);
    // An image is no purchase: whatever became of this call, the next one looks again.
    if (!imported) co_return base::fail(ErrorKind::kUnavailable, imported.error().message);
  }
  sandbox_image_present_ = true;
  co_return base::Result<void>();
}

}  // namespace spillway::providers::docker
