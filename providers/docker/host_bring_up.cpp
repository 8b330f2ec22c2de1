// From a running sandbox to running containers. Runs in the background after create() has returned, is bounded by
// terminate(), and holds the pod's environment for as long as its images take to come.
#include <algorithm>

#include "providers/docker/host.hpp"
#include "providers/docker/volume_codec.hpp"
#include "vk-provider/base/backoff.hpp"

namespace spillway::providers::docker {
namespace {

namespace asio = boost::asio;
using base::ErrorKind;

// An engine under load takes seconds to make and start a container.
constexpr base::Duration kCallTime = std::chrono::seconds(60);
// While the engine itself cannot be reached.
const base::BackoffPolicy kEngineBackoff{std::chrono::seconds(1), std::chrono::seconds(15)};
// A busy engine refuses what it does a moment later.
constexpr int kMostRefusals = 3;

StartFailure failure(std::string reason, std::string message) {
  StartFailure out;
  out.reason = std::move(reason);
  out.message = std::move(message);
  return out;
}

}  // namespace

void Host::begin_bring_up(InstancePlan plan, std::string sandbox_id) {
  const WorkPtr work = work_of(plan.tag);
  if (work->progress.active || work->progress.ending || context_.background->stopping()) return;
  work->progress.active = true;
  work->progress.failures.clear();
  work->progress.activity = "starting";
  work->pause = context_.timers->make_waiter();
  work->finished = context_.timers->make_waiter();
  context_.background->spawn(
      bring_up(work, std::make_shared<const InstancePlan>(std::move(plan)), std::move(sandbox_id)));
}

async::Loop Host::bring_up(WorkPtr work, PlanPtr plan, std::string sandbox_id) {
  struct Finish {
    Work& work;
    async::Timers& timers;
    ~Finish() {
      work.progress.active = false;
      work.finished_at = timers.now();
      work.finished->wake();
    }
  } finish{*work, *context_.timers};
  for (int attempt = 1; !work->progress.ending; ++attempt) {
    const Step step = co_await try_bring_up(work, plan, sandbox_id);
    if (step != Step::kAgain) co_return;
    co_await work->pause->wait_until(in(base::backoff_delay(kEngineBackoff, attempt)));
  }
}

/// One way through: whatever an earlier attempt, or an earlier process, has done is found and carried on with. All
/// images come before the first container is made, and all are made before the first is started: a pod that cannot be
/// complete never begins.
asio::awaitable<Host::Step> Host::try_bring_up(WorkPtr work, PlanPtr plan, std::string sandbox_id) {
  const auto ids = std::make_shared<Ids>(plan->containers.size());
  const auto to_start = std::make_shared<Ids>(plan->containers.size());
  Step step = co_await look(work, plan, ids, to_start);
  for (size_t i = 0; i < ids->size() && step == Step::kDone && !work->progress.ending; ++i) {
    if ((*ids)[i].empty()) step = co_await ensure_image(work, plan, i);
  }
  if (step == Step::kDone) step = co_await make_containers(work, plan, sandbox_id, ids, to_start);
  for (size_t i = 0; i < ids->size() && step == Step::kDone && !work->progress.ending; ++i) {
    const model::ResolvedContainer& container = plan->containers[i];
    if (!container.start_at_once || (*to_start)[i].empty()) continue;
    step = co_await start_container(work, plan, i, (*to_start)[i]);
  }
  co_return step;
}

/// Which of the containers exist, and which of those were never started.
asio::awaitable<Host::Step> Host::look(WorkPtr work, PlanPtr plan, std::shared_ptr<Ids> ids,
                                       std::shared_ptr<Ids> to_start) {
  for (size_t i = 0; i < ids->size() && !work->progress.ending; ++i) {
    const std::string& name = plan->containers[i].name;
    const auto existing = co_await client_.inspect(container_name(plan->tag, name), in(kCallTime));
    if (!existing && existing.error().kind == ErrorKind::kNotFound) continue;
    if (!existing) co_return Step::kAgain;
    if (label(existing->labels, kLabelTag) != plan->tag) {
      work->progress.failures[name] =
          failure("CreateContainerError", "the name of the container is taken by one that is not ours; remove it");
      co_return Step::kFailed;
    }
    (*ids)[i] = existing->id;
    if (existing->never_started()) (*to_start)[i] = existing->id;
  }
  co_return Step::kDone;
}

asio::awaitable<Host::Step> Host::make_containers(WorkPtr work, PlanPtr plan, std::string sandbox_id,
                                                  std::shared_ptr<Ids> ids, std::shared_ptr<Ids> to_start) {
  const auto first = static_cast<size_t>(std::find(ids->begin(), ids->end(), "") - ids->begin());
  if (first == ids->size() || work->progress.ending) co_return Step::kDone;
  const auto around = std::make_shared<Surroundings>();
  around->sandbox_id = std::move(sandbox_id);
  Step step = co_await surround(work, plan, first, around);
  for (size_t i = first; i < ids->size() && step == Step::kDone && !work->progress.ending; ++i) {
    if (!(*ids)[i].empty()) continue;
    step = co_await make_container(work, plan, i, around, ids);
    (*to_start)[i] = (*ids)[i];
  }
  co_return step;
}

asio::awaitable<Host::Step> Host::make_container(WorkPtr work, PlanPtr plan, size_t index,
                                                 std::shared_ptr<Surroundings> around, std::shared_ptr<Ids> ids) {
  const model::ResolvedContainer& container = plan->containers[index];
  const Step user = co_await check_user(work, plan, index, around);
  if (user != Step::kDone) co_return user;
  auto body = encode_container(*plan, index, *around, config_);
  if (!body) {
    work->progress.failures[container.name] = failure("CreateContainerConfigError", body.error().message);
    co_return Step::kFailed;
  }
  const std::string name = container_name(plan->tag, container.name);
  const auto answer = co_await client_.create(name, std::move(*body), in(kCallTime));
  if (answer && answer->ok()) {
    work->progress.seen.emplace(container.name, context_.timers->now());
    (*ids)[index] = answer->text;
    co_return Step::kDone;
  }
  if (!answer) co_return Step::kAgain;  // unknown: the next attempt begins with a look
  const auto facts = co_await client_.inspect(name, in(kCallTime));
  if (facts || facts.error().kind != ErrorKind::kNotFound) co_return Step::kAgain;
  // Taken, and yet nobody has it: the create of a daemon that died is still being carried out.
  if (answer->status == 409) co_return Step::kAgain;
  work->progress.failures[container.name] = failure("CreateContainerError", answer->text);
  co_return Step::kFailed;
}

asio::awaitable<Host::Step> Host::start_container(WorkPtr work, PlanPtr plan, size_t index, std::string id) {
  const model::ResolvedContainer& container = plan->containers[index];
  if (mounts_parts(*plan, container)) {
    const auto made = co_await client_.inspect(id, in(kCallTime));
    if (!made) co_return Step::kAgain;
    const auto parts = co_await make_parts(plan->tag, *made, in(kCallTime));
    if (!parts) co_return Step::kAgain;
  }
  for (int refusals = 1; !work->progress.ending; ++refusals) {
    const auto answer = co_await client_.start(id, in(kCallTime));
    if (answer && answer->ok()) co_return Step::kDone;
    const auto facts = co_await client_.inspect(id, in(kCallTime));
    if (!facts || !answer) co_return Step::kAgain;
    // Running after all, or refused for good: then the container shows exit code and text by itself.
    if (!facts->never_started()) co_return Step::kDone;
    if (refusals >= kMostRefusals) {
      work->progress.failures[container.name] = failure("RunContainerError", answer->text);
      co_return Step::kFailed;
    }
    co_await work->pause->wait_until(in(base::backoff_delay(kEngineBackoff, refusals)));
  }
  co_return Step::kDone;
}

}  // namespace spillway::providers::docker
