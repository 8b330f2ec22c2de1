#include "vk-provider/core/usage_book.hpp"

#include <algorithm>
#include <chrono>

namespace spillway::core {
namespace {

/// Nanoseconds of CPU per second. Empty if the samples do not say.
std::optional<std::uint64_t> rate(const UsageSample& before, const UsageSample& after) {
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(after.at - before.at).count();
  if (!before.cpu_ns || !after.cpu_ns || passed <= 0) return std::nullopt;
  const double used = static_cast<double>(*after.cpu_ns - *before.cpu_ns);
  return static_cast<std::uint64_t>(used * 1e9 / static_cast<double>(passed));
}

}  // namespace

const ContainerUsage* PodUsage::find(std::string_view container) const {
  const auto it = std::ranges::find_if(containers, [&](const auto& c) { return c.name == container; });
  return it == containers.end() ? nullptr : &*it;
}

void UsageBook::note(const std::string& node, const base::PodUid& pod, const base::SharedText& container,
                     const UsageSample& sample) {
  PodUsage& usage = pods_[pod];
  auto it = std::ranges::find(usage.containers, container, &ContainerUsage::name);
  const bool first = it == usage.containers.end();
  if (first) {
    usage.containers.emplace_back().name = container;
    it = usage.containers.end() - 1;
  }
  ContainerUsage& c = *it;
  if (!first && (sample.at <= c.last.at || sample.run < c.last.run)) return;
  // A counter that went back is that of a run which nobody has told us of yet; once somebody does, it is no other.
  const bool went_on = sample.cpu_ns.value_or(c.counted_cpu_ns) >= c.counted_cpu_ns;
  const bool told_late = c.ahead && sample.run == c.last.run + 1;
  const bool same_run = !first && went_on && (sample.run == c.last.run || told_late);
  if (!same_run) c.counted_cpu_ns = 0;
  c.ahead = !first && sample.run == c.last.run && (c.ahead || !went_on);
  c.nano_cores = same_run ? rate(c.last, sample) : std::nullopt;
  if (sample.cpu_ns) {
    const std::uint64_t fresh = *sample.cpu_ns - c.counted_cpu_ns;
    c.counted_cpu_ns = *sample.cpu_ns;
    c.total_cpu_ns += fresh;
    node_cpu_ns_[node] += fresh;
  }
  c.last = sample;
}

const PodUsage* UsageBook::find(const base::PodUid& pod) const {
  const auto it = pods_.find(pod);
  return it == pods_.end() ? nullptr : &it->second;
}

std::optional<std::uint64_t> UsageBook::node_cpu_ns(const std::string& node) const {
  const auto it = node_cpu_ns_.find(node);
  return it == node_cpu_ns_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace spillway::core
