// Limits on disk space are kept by looking: engines have no quota for volumes. While a pod has one, the engine is asked
// now and then what everything takes; what that means is in disk_limits.hpp.
#include <algorithm>

#include "providers/docker/disk_limits.hpp"
#include "providers/docker/host.hpp"

namespace spillway::providers::docker {
namespace {

// An engine that has to look at millions of files may take minutes.
constexpr base::Duration kMeasureTime = std::chrono::minutes(10);
// It rests for so many times as long as it took.
constexpr int kRest = 9;

}  // namespace

void Host::consider_disk(const Observed& all, const std::vector<VolumeEntry>& volumes) {
  const auto is_limited = [](const auto& entry) { return has_disk_limit(entry.labels); };
  const bool limited = std::ranges::any_of(volumes, is_limited) || std::ranges::any_of(all.entries, is_limited);
  if (!limited || measuring_ || context_.timers->now() < measure_at_) return;
  measuring_ = true;
  context_.background->spawn(measure_disk());
}

async::Loop Host::measure_disk() {
  struct Finish {
    Host& host;
    base::TimePoint began;
    ~Finish() {
      const base::TimePoint now = host.context_.timers->now();
      host.measuring_ = false;
      host.measure_at_ = now + std::max(host.context_.disk_usage_every, (now - began) * kRest);
    }
  } finish{*this, context_.timers->now()};
  // An engine that refuses, because it answers somebody else's question of this kind, is asked the next time.
  const auto usage = co_await client_.disk_usage(in(kMeasureTime));
  if (!usage) co_return;
  for (auto& [tag, why] : broken_limits(*usage)) {
    const auto work = works_.find(tag);
    if (work != works_.end()) work->second->progress.broken_limit = std::move(why);
  }
}

}  // namespace spillway::providers::docker
