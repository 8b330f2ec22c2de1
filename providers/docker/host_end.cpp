// The end of an instance, and start or stop of one of its containers. Stops take up to the pod's grace and therefore
// run in the background; terminate() is repeated by its caller until nothing is left.
#include <algorithm>
#include <array>

#include "providers/docker/host.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

constexpr base::Duration kCallTime = std::chrono::seconds(60);
// The engine kills by itself when the grace is over; we only when it does not.
constexpr base::Duration kEngineMargin = std::chrono::seconds(2);
constexpr std::chrono::seconds kLeastGrace{1};

}  // namespace

async::Task<void> Host::terminate(std::string tag, std::chrono::seconds grace, base::Deadline deadline) {
  grace = std::max(grace, std::chrono::seconds(0));
  const auto listing = co_await client_.list(std::string(kLabelTag) + "=" + tag, deadline);
  if (!listing) co_return base::fail(listing.error());
  if (context_.background->stopping()) co_return base::fail(ErrorKind::kCancelled, "the daemon is shutting down");
  const auto known = works_.find(tag);
  const bool at_work = known != works_.end() && (known->second->progress.active || known->second->progress.ending);
  if (listing->entries.empty() && !at_work) {
    const auto left = co_await has_volumes(tag, deadline);
    if (!left) co_return base::fail(left.error());
    if (!*left) {
      co_return base::fail(ErrorKind::kNotFound, "docker host " + config_.name + " has no instance " + tag);
    }
  }
  const WorkPtr work = work_of(tag);
  const base::TimePoint force_at = in(grace.count() == 0 ? base::Duration::zero() : grace + kEngineMargin);
  if (work->progress.ending) {
    if (force_at < work->force_at) {
      work->force_at = force_at;
      work->changed->wake();
    }
    co_return base::Result<void>();
  }
  work->progress.ending = true;
  work->force_at = force_at;
  context_.background->spawn(end_instance(work, tag));
  co_return base::Result<void>();
}

async::Loop Host::end_instance(WorkPtr work, std::string tag) {
  // If something cannot be reached the rest is left to the next terminate.
  struct Finish {
    Work& work;
    ~Finish() { work.progress.ending = false; }
  } finish{*work};
  work->cancel_pull.emit(boost::asio::cancellation_type::terminal);
  work->pause->wake();
  while (work->progress.active) co_await work->finished->wait();

  const auto listing = co_await client_.list(std::string(kLabelTag) + "=" + tag, in(kCallTime));
  if (!listing) co_return;
  const InstanceGroups groups = group_by_tag(listing->entries);
  const auto it = groups.find(tag);
  const InstanceGroup group = it == groups.end() ? InstanceGroup() : it->second;
  co_await stop_in_order(work, group);

  // The sandbox last: while its labels exist its GPUs are taken, and the instance can be found.
  bool all_gone = true;
  const auto note = [&all_gone](const base::Result<Answer>& answer) {
    all_gone = all_gone && answer && (answer->ok() || answer->status == 404);
  };
  for (const ContainerEntry* const entry : group.containers) {
    const auto removed = co_await client_.remove(entry->id, in(kCallTime));
    note(removed);
  }
  const std::array<const ContainerEntry*, 2> last = {group.keeper, group.sandbox};
  for (const ContainerEntry* const entry : last) {
    if (entry == nullptr || !all_gone) continue;
    const auto removed = co_await client_.remove(entry->id, in(kCallTime));
    note(removed);
  }
  if (all_gone) co_await remove_left_volumes(tag);
}

/// Sidecars have what the others have left of the grace, and at least the time to be told.
boost::asio::awaitable<void> Host::stop_in_order(WorkPtr work, InstanceGroup group) {
  for (const auto& batch : stop_order(group)) {
    if (context_.timers->now() >= work->force_at) co_return;
    const base::Duration left = work->force_at - kEngineMargin - context_.timers->now();
    const auto grace = std::max(std::chrono::ceil<std::chrono::seconds>(left), kLeastGrace);
    for (const ContainerEntry* const entry : batch) {
      ++work->stopping;
      context_.background->spawn(stop_container(work, entry->id, grace));
    }
    while (work->stopping > 0 && context_.timers->now() < work->force_at) {
      co_await work->changed->wait_until(work->force_at);
    }
  }
}

async::Loop Host::stop_container(WorkPtr work, std::string id, std::chrono::seconds grace) {
  struct Finish {
    Work& work;
    ~Finish() {
      --work.stopping;
      work.changed->wake();
    }
  } finish{*work};
  // Whatever the answer is: end_instance removes it by force.
  static_cast<void>(co_await client_.stop(id, grace, in(grace + kCallTime)));
}

async::Task<void> Host::control(std::string tag, std::string container, provider::ContainerAction action,
                                std::chrono::seconds grace, base::Deadline deadline) {
  const auto facts = co_await client_.inspect(container_name(tag, container), deadline);
  if (!facts) co_return base::fail(facts.error());
  if (label(facts->labels, kLabelTag) != tag) {
    co_return base::fail(ErrorKind::kNotFound,
                         "docker host " + config_.name + ": instance " + tag + " has no container " + container);
  }
  const bool running = facts->running();
  if (action == provider::ContainerAction::kStart && running) co_return base::Result<void>();
  if (action == provider::ContainerAction::kStop && !running) co_return base::Result<void>();
  if (!running) co_return co_await start_again(tag, container, *facts, deadline);
  context_.background->spawn(stop_or_restart(tag, container, *facts, action, grace));
  co_return base::Result<void>();
}

async::Task<void> Host::start_again(std::string tag, std::string container, ContainerFacts before,
                                    base::Deadline deadline) {
  const std::string id = before.id;
  if (!before.never_started() && before.labels.contains(kLabelMessage)) {
    const auto turned = co_await turn_page(tag, container, before, deadline);
    if (!turned) co_return base::fail(turned.error());
  }
  auto parts = co_await make_parts(tag, before, deadline);
  if (!parts) co_return base::fail(std::move(parts.error()));
  const auto answer = co_await client_.start(id, deadline);
  facts_.erase(id);
  if (!answer) co_return base::fail(answer.error());
  if (answer->ok()) co_return base::Result<void>();
  const auto facts = co_await client_.inspect(id, deadline);
  if (facts && facts->running()) co_return base::Result<void>();
  if (facts && facts->start_failed() && answer->text.contains(facts->error)) {
    // It was tried, and the container shows how it ended: that is an exit, not a failure of this call.
    failed_starts_[id] = context_.timers->wall();
    facts_.erase(id);
    co_return base::Result<void>();
  }
  co_return base::fail(answer->status == 404 ? ErrorKind::kNotFound : ErrorKind::kUnavailable,
                       "docker host " + config_.name + ": start of container " + id + ": " + answer->text);
}

async::Loop Host::stop_or_restart(std::string tag, std::string container, ContainerFacts facts,
                                  provider::ContainerAction action, std::chrono::seconds grace) {
  // The next listing shows what came of it.
  if (action == provider::ContainerAction::kStop) {
    static_cast<void>(co_await client_.stop(facts.id, grace, in(grace + kCallTime)));
  } else if (!facts.labels.contains(kLabelMessage)) {
    static_cast<void>(co_await client_.restart(facts.id, grace, in(grace + kCallTime)));
  } else {
    // In two steps, because the next run has a message of its own.
    static_cast<void>(co_await client_.stop(facts.id, grace, in(grace + kCallTime)));
    const auto ended = co_await client_.inspect(facts.id, in(kCallTime));
    facts.state = "exited";
    static_cast<void>(
        co_await start_again(std::move(tag), std::move(container), ended ? *ended : facts, in(kCallTime)));
  }
  facts_.erase(facts.id);
}

}  // namespace spillway::providers::docker
