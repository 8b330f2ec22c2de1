// What the containers of an engine use.
#include "providers/docker/gather.hpp"
#include "providers/docker/host.hpp"

namespace spillway::providers::docker {

using base::ErrorKind;

/// The engine has no call for all containers: they are asked one by one, some at a time.
async::Task<std::vector<provider::Sample>> Host::samples(base::Deadline deadline) {
  const auto listing = co_await client_.list(std::string(kLabelTag), deadline);
  if (!listing) co_return base::fail(listing.error());
  std::vector<async::Task<std::optional<provider::Sample>>> tasks;
  for (const ContainerEntry& entry : listing->entries) {
    if (entry.state != "running" || label(entry.labels, kLabelRole) != kRoleContainer) continue;
    tasks.push_back(measure(entry, deadline));
  }
  auto results =
      co_await gather<std::optional<provider::Sample>>(*context_.background, *context_.timers, std::move(tasks));
  std::vector<provider::Sample> samples;
  std::optional<base::Error> error;
  for (auto& result : results) {
    if (!result && !error) error = std::move(result.error());
    if (result && *result) samples.push_back(std::move(**result));
  }
  if (samples.empty() && error) co_return base::fail(std::move(*error));
  co_return samples;
}

/// Empty for one that has ended meanwhile.
async::Task<std::optional<provider::Sample>> Host::measure(ContainerEntry entry, base::Deadline deadline) {
  const async::Semaphore::Permit permit = co_await measurements_.acquire(deadline);
  if (!permit) co_return base::fail(ErrorKind::kDeadline, "docker host " + config_.name + " is slow to measure");
  const auto stats = co_await client_.stats(entry.id, deadline);
  if (!stats && (stats.error().kind == ErrorKind::kNotFound || stats.error().kind == ErrorKind::kConflict)) {
    co_return std::nullopt;
  }
  if (!stats) co_return base::fail(stats.error());
  if (!stats->read_at) co_return std::nullopt;
  provider::Sample sample;
  sample.instance = model::InstanceRef(context_.provider, to_instance_id(config_.name, label(entry.labels, kLabelTag)));
  sample.container = label(entry.labels, kLabelContainer);
  sample.cpu_ns = stats->cpu_ns;
  sample.working_set = stats->working_set;
  sample.at = *stats->read_at;
  co_return sample;
}

}  // namespace spillway::providers::docker
