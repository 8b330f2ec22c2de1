#include "vk-provider/control/service_cache.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::control {
namespace {

constexpr base::Duration kFresh = std::chrono::seconds(1);
// The API server's own service keeps its address for the life of a cluster.
constexpr base::Duration kApiFresh = std::chrono::minutes(1);

}  // namespace

async::Task<std::vector<model::Service>> ServiceCache::services_for(std::string ns, bool links,
                                                                    base::Deadline deadline) {
  std::vector<model::Service> out;
  if (links) {
    auto own = co_await listed(std::move(ns), deadline);
    if (!own) co_return base::fail(std::move(own.error()));
    out = **own;
  }
  auto api = co_await listed({}, deadline);
  if (!api) co_return base::fail(std::move(api.error()));
  std::ranges::copy(**api, std::back_inserter(out));
  co_return out;
}

async::Task<ServiceCache::Services> ServiceCache::listed(std::string ns, base::Deadline deadline) {
  const base::TimePoint asked = timers_.now();
  forget_old();
  std::shared_ptr<Entry>& known = entries_[ns];
  if (!known) known = std::make_shared<Entry>(timers_);
  const std::shared_ptr<Entry> entry = known;
  const async::Semaphore::Permit permit = co_await entry->turn.acquire(deadline);
  if (!permit) {
    co_return base::fail(base::ErrorKind::kDeadline, "the services of the namespace were not listed in time");
  }
  // Measured against when this pod asked: however long a list takes, those who waited for it take it.
  if (entry->good_until <= asked) {
    const base::TimePoint began = timers_.now();
    const bool api = ns.empty();
    entry->services = co_await list(std::move(ns), deadline);
    const bool found = entry->services && !(*entry->services)->empty();
    entry->good_until = began + (api && found ? kApiFresh : kFresh);
  }
  co_return entry->services;
}

async::Task<ServiceCache::Services> ServiceCache::list(std::string ns, base::Deadline deadline) {
  if (!ns.empty()) {
    auto services = co_await client_.list_services(std::move(ns), deadline);
    if (!services) co_return base::fail(std::move(services.error()));
    co_return std::make_shared<const std::vector<model::Service>>(std::move(*services));
  }
  std::vector<model::Service> services;
  auto api = co_await client_.get_service("default", "kubernetes", deadline);
  if (!api && api.error().kind != base::ErrorKind::kNotFound) co_return base::fail(std::move(api.error()));
  if (api) services.push_back(std::move(*api));
  co_return std::make_shared<const std::vector<model::Service>>(std::move(services));
}

void ServiceCache::forget_old() {
  std::erase_if(entries_, [this](const auto& item) {
    // Nobody else holds it, so nobody lists.
    return item.second.use_count() == 1 && item.second->good_until <= timers_.now();
  });
}

}  // namespace spillway::control
