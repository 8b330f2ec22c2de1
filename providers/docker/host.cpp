#include "providers/docker/host.hpp"

#include <algorithm>
#include <charconv>

#include "providers/docker/gpu_slots.hpp"
#include "providers/docker/status_text.hpp"

namespace spillway::providers::docker {
namespace {

// At once: the engine's other callers, and ours, want to be answered meanwhile.
constexpr size_t kMostMeasurements = 8;

base::OfferId offer_id(const HostConfig& host, int gpu_count) {
  return base::OfferId(host.name + (gpu_count == 0 ? "/cpu" : "/gpu-" + std::to_string(gpu_count)));
}

/// Also of instances whose containers are gone: somebody removed those without their volumes.
std::set<std::string> tags_of(const std::vector<VolumeEntry>& volumes) {
  std::set<std::string> tags;
  for (const VolumeEntry& volume : volumes) tags.insert(label(volume.labels, kLabelTag));
  return tags;
}

bool is_container(const ContainerEntry& entry) { return label(entry.labels, kLabelRole) == kRoleContainer; }

}  // namespace

std::optional<int> gpus_of_offer(const HostConfig& host, const base::OfferId& offer) {
  for (int count = 0; count <= host.gpu_count; ++count) {
    if (offer == offer_id(host, count)) return count;
  }
  return std::nullopt;
}

base::Money price_of(const HostConfig& host, int gpu_count) {
  return gpu_count == 0 ? host.price_per_hour : host.price_per_gpu_hour * gpu_count;
}

Host::Host(HostConfig config, std::unique_ptr<net::HttpClient> http, HostContext context)
    : config_(std::move(config)),
      context_(std::move(context)),
      client_(config_.name, std::move(http), *context_.timers),
      purchases_(*context_.timers, 1),
      measurements_(*context_.timers, kMostMeasurements) {}

Host::WorkPtr Host::work_of(const std::string& tag) {
  WorkPtr& work = works_[tag];
  if (!work) {
    work = std::make_shared<Work>();
    work->pause = context_.timers->make_waiter();
    work->finished = context_.timers->make_waiter();
    work->changed = context_.timers->make_waiter();
  }
  return work;
}

/// A listing tells states, but neither exit codes nor times. What an inspection told is used again as long as the
/// listing's words agree with it, so that a listing of many quiet containers costs one request.
bool Host::needs_inspection(const ContainerEntry& entry, std::optional<base::WallTime> engine_time) const {
  const auto it = facts_.find(entry.id);
  if (it == facts_.end()) return true;
  const ContainerFacts& known = it->second;
  if (known.state != entry.state) return true;
  if (entry.state == "created") return !known.start_failed();
  const auto status = parse_status(entry.status);
  if (!status || !engine_time) return true;
  if (entry.state == "running") {
    return !status->running || !known.started_at || !agrees(*status, *known.started_at, *engine_time);
  }
  if (entry.state == "exited") {
    return status->exit_code != known.exit_code || !known.finished_at ||
           !agrees(*status, *known.finished_at, *engine_time);
  }
  return true;
}

void Host::remember(ContainerFacts facts) {
  if (facts.start_failed()) {
    // The engine notes no time for a start in vain. Without one, a second failure would look like the first.
    const auto attempt = failed_starts_.find(facts.id);
    const auto when = attempt != failed_starts_.end() ? attempt->second
                      : facts.finished_at             ? facts.finished_at
                                                      : facts.created;
    facts.started_at = when;
    facts.finished_at = when;
  }
  std::string id = facts.id;
  facts_.insert_or_assign(std::move(id), std::move(facts));
}

async::Task<Host::Observed> Host::observe(std::string label, base::Deadline deadline) {
  Observed observed;
  observed.asked_at = context_.timers->now();
  auto listing = co_await client_.list(std::move(label), deadline);
  if (!listing) co_return base::fail(std::move(listing.error()));
  for (ContainerEntry& entry : listing->entries) {
    if (is_container(entry) && needs_inspection(entry, listing->engine_time)) {
      auto facts = co_await look_at(entry, deadline);
      if (!facts && facts.error().kind == base::ErrorKind::kNotFound) continue;  // removed since it was listed
      if (!facts) co_return base::fail(std::move(facts.error()));
      remember(std::move(*facts));
    }
    const auto known = facts_.find(entry.id);
    if (known != facts_.end()) observed.facts.insert(*known);
    observed.entries.push_back(std::move(entry));
  }
  for (const auto& [tag, group] : group_by_tag(observed.entries)) {
    if (group.containers.empty()) continue;
    const WorkPtr work = work_of(tag);
    for (const ContainerEntry* const entry : group.containers) {
      work->progress.seen.emplace(docker::label(entry->labels, kLabelContainer), observed.asked_at);
    }
  }
  co_return observed;
}

async::Task<ContainerFacts> Host::look_at(ContainerEntry entry, base::Deadline deadline) {
  auto facts = co_await client_.inspect(entry.id, deadline);
  if (!facts || facts->running() || facts->never_started()) co_return facts;
  auto message = co_await termination_message(std::move(entry), *facts, deadline);
  if (!message) co_return base::fail(std::move(message.error()));
  facts->termination_message = std::move(*message);
  co_return facts;
}

model::Instance Host::view(const std::string& tag, const InstanceGroup& group, const Observed& observed) const {
  ViewContext context;
  context.provider = context_.provider;
  context.host = config_.name;
  context.container_scheme = context_.container_scheme;
  context.listed_at = observed.asked_at;
  const auto work = works_.find(tag);
  return to_instance(context, tag, group, observed.facts, work == works_.end() ? nullptr : &work->second->progress);
}

/// What came into being after the listing was asked for is not in it, and not gone.
void Host::forget_what_is_gone(const Observed& all) {
  std::set<std::string> ids;
  std::set<std::string> names;
  std::set<std::string> tags;
  for (const ContainerEntry& entry : all.entries) {
    ids.insert(entry.id);
    names.insert(entry.name);
    tags.insert(label(entry.labels, kLabelTag));
  }
  const auto is_gone = [&ids](const auto& item) { return !ids.contains(item.first); };
  std::erase_if(facts_, is_gone);
  std::erase_if(failed_starts_, is_gone);
  std::erase_if(left_execs_, [&names](const auto& item) { return !names.contains(item.first.first); });
  std::erase_if(works_, [&](const auto& item) {
    const Work& work = *item.second;
    if (tags.contains(item.first) || work.progress.active || work.progress.ending) return false;
    return !work.finished_at || *work.finished_at < all.asked_at;
  });
}

async::Task<std::vector<model::Instance>> Host::list_owned(std::string tag_prefix, base::Deadline deadline) {
  // Volumes first: one of an instance that is made meanwhile is then not taken for what is left of another.
  const auto volumes = co_await client_.list_volumes(std::string(kLabelTag), deadline);
  if (!volumes) co_return base::fail(volumes.error());
  const auto observed = co_await observe(std::string(kLabelTag), deadline);
  if (!observed) co_return base::fail(observed.error());
  const InstanceGroups groups = group_by_tag(observed->entries);
  std::vector<model::Instance> instances;
  for (const auto& [tag, group] : groups) {
    if (tag.starts_with(tag_prefix)) instances.push_back(view(tag, group, *observed));
  }
  for (const std::string& tag : tags_of(*volumes)) {
    const bool being_made = reservations_.contains(tag);
    if (being_made || groups.contains(tag) || !tag.starts_with(tag_prefix)) continue;
    // All that is left of an instance, or a listing that leaves its containers out: which of them, a second look tells.
    auto left = co_await get(tag, deadline);
    if (!left && left.error().kind == base::ErrorKind::kNotFound) continue;
    if (!left) co_return base::fail(std::move(left.error()));
    instances.push_back(std::move(*left));
  }
  forget_what_is_gone(*observed);
  consider_disk(*observed, *volumes);
  co_return instances;
}

async::Task<model::Instance> Host::get(std::string tag, base::Deadline deadline) {
  const auto observed = co_await observe(std::string(kLabelTag) + "=" + tag, deadline);
  if (!observed) co_return base::fail(observed.error());
  InstanceGroups groups = group_by_tag(observed->entries);
  if (groups.empty()) {
    const auto left = co_await has_volumes(tag, deadline);
    if (!left) co_return base::fail(left.error());
    if (*left) groups.try_emplace(tag);
  }
  const auto it = groups.find(tag);
  if (it == groups.end()) {
    co_return base::fail(base::ErrorKind::kNotFound, "docker host " + config_.name + " has no instance " + tag);
  }
  co_return view(tag, it->second, *observed);
}

Host::Holdings Host::holdings(const InstanceGroups& groups) {
  Holdings held;
  const auto hold = [&held](const std::vector<int>& gpus) {
    held.gpus.insert(gpus.begin(), gpus.end());
    ++held.instances;
  };
  for (const auto& [tag, group] : groups) {
    if (has_ended_for_good(group, facts_)) continue;
    if (group.sandbox == nullptr) {
      ++held.instances;
      continue;
    }
    const auto gpus = from_gpu_label(label(group.sandbox->labels, kLabelGpus));
    if (!gpus) held.gpus_known = false;
    hold(gpus.value_or(std::vector<int>()));
  }
  const base::TimePoint now = context_.timers->now();
  std::erase_if(reservations_,
                [&](const auto& item) { return item.second.until <= now || groups.contains(item.first); });
  for (const auto& [tag, reservation] : reservations_) hold(reservation.gpus);
  return held;
}

std::vector<model::Offer> Host::offers(const std::optional<Holdings>& held) const {
  std::vector<model::Offer> out;
  for (int count = 0; count <= config_.gpu_count; ++count) {
    model::Offer offer;
    offer.provider = context_.provider;
    offer.id = offer_id(config_, count);
    offer.region = config_.region;
    offer.gpu_count = count;
    if (count > 0) {
      offer.gpu_model = config_.gpu_model;
      offer.gpu_memory = config_.gpu_memory;
    }
    offer.cpu_milli = config_.cpu_milli;
    offer.memory = config_.memory;
    offer.price_per_hour = price_of(config_, count);
    offer.seen_at = context_.timers->now();
    offer.available = held && held->instances < config_.max_instances &&
                      (count == 0 || (held->gpus_known && choose_gpus(config_.gpu_count, held->gpus, count)));
    out.push_back(std::move(offer));
  }
  return out;
}

std::vector<model::Offer> Host::unavailable_offers() const { return offers(std::nullopt); }

async::Task<std::vector<model::Offer>> Host::list_offers(base::Deadline deadline) {
  const auto observed = co_await observe(std::string(kLabelTag), deadline);
  if (!observed) co_return base::fail(observed.error());
  co_return offers(holdings(group_by_tag(observed->entries)));
}

void Host::cancel_pulls() {
  for (const auto& [tag, work] : works_) work->cancel_pull.emit(boost::asio::cancellation_type::terminal);
}

}  // namespace spillway::providers::docker
