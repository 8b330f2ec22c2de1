#include "vk-provider/control/sample_controller.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr base::Duration kPeriod = std::chrono::seconds(10);
constexpr base::Duration kRoundDeadline = std::chrono::seconds(15);
constexpr base::Duration kInterest = std::chrono::minutes(5);

}  // namespace

SampleController::SampleController(const ProviderSet& providers, const PodStore& pods, async::Timers& timers)
    : pods_(pods), timers_(timers) {
  for (const auto& provider : providers.all()) {
    if (!provider->info().capabilities.has(model::Capability::kSamples)) continue;
    auto source = std::make_unique<Source>();
    source->provider = provider.get();
    source->waiter = timers.make_waiter();
    sources_.push_back(std::move(source));
  }
}

std::vector<async::Loop> SampleController::loops() {
  std::vector<async::Loop> out;
  out.reserve(sources_.size());
  for (const auto& source : sources_) out.push_back(run(*source));
  return out;
}

async::Loop SampleController::run(Source& source) {
  for (;;) {
    while (timers_.now() >= wanted_until_) co_await source.waiter->wait();
    const base::TimePoint next = timers_.now() + kPeriod;
    co_await measure(source);
    for (async::Waiter* const asker : askers_) asker->wake();
    while (timers_.now() < next) co_await source.waiter->wait_until(next);
  }
}

boost::asio::awaitable<void> SampleController::measure(Source& source) {
  const base::ProviderName& name = source.provider->info().name;
  const auto samples = co_await source.provider->samples(timers_.now() + kRoundDeadline);
  source.ended = timers_.now();
  if (samples) take(name, *samples);
  if (source.failing == !samples.has_value()) co_return;
  source.failing = !samples.has_value();
  if (source.failing) {
    log::warn("a provider cannot be asked what its containers use; kubectl top lacks them",
              {{"provider", name}, {"error", samples.error()}});
  } else {
    log::info("a provider tells again what its containers use", {{"provider", name}});
  }
}

void SampleController::take(const base::ProviderName& provider, const std::vector<provider::Sample>& samples) {
  std::unordered_map<std::string_view, const model::PodRecord*> records;
  for (const auto& [uid, entry] : pods_) {
    const model::Instance* const instance = core::instance_of(entry.record);
    if (instance != nullptr && instance->ref.provider == provider) {
      records.emplace(instance->ref.id.str(), &entry.record);
    }
  }
  for (const provider::Sample& sample : samples) {
    const auto it = records.find(sample.instance.id.str());
    if (it == records.end()) continue;
    const model::PodRecord& record = *it->second;
    const auto container = std::ranges::find_if(
        record.containers, [&](const model::ContainerRecord& c) { return c.claim.name == sample.container; });
    if (container == record.containers.end()) continue;
    // Measured while it was being started again: of the run before, whose number is not known any more.
    if (container->claim.started_at && sample.at < *container->claim.started_at) continue;
    core::UsageSample usage;
    usage.run = container->restarts;
    usage.cpu_ns = sample.cpu_ns;
    usage.working_set = sample.working_set;
    usage.at = sample.at;
    usage.noted = timers_.now();
    usage_.note(record.spec->node_name, record.key().uid, container->claim.name, usage);
  }
  usage_.forget([this](const base::PodUid& uid) { return pods_.find(uid) == nullptr; });
}

bool SampleController::all_ended_since(base::TimePoint when) const {
  return std::ranges::all_of(sources_, [&](const auto& source) { return source->ended && *source->ended >= when; });
}

boost::asio::awaitable<void> SampleController::refresh(base::Deadline deadline) {
  const base::TimePoint now = timers_.now();
  wanted_until_ = now + kInterest;
  for (const auto& source : sources_) source->waiter->wake();
  const base::TimePoint fresh = now - 2 * kPeriod;
  if (all_ended_since(fresh)) co_return;
  const std::unique_ptr<async::Waiter> waiter = timers_.make_waiter();
  struct Place {
    std::set<async::Waiter*>& askers;
    async::Waiter* waiter;
    ~Place() { askers.erase(waiter); }
  } place{askers_, waiter.get()};
  askers_.insert(waiter.get());
  while (!all_ended_since(fresh)) {
    if (co_await waiter->wait_until(deadline)) co_return;
  }
}

bool SampleController::failing() const {
  return std::ranges::any_of(sources_, [](const auto& source) { return source->failing; });
}

}  // namespace spillway::control
