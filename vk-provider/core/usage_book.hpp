// What containers used, as their providers last measured it, and the totals that never go back.
//
// Pure; owned and written by control/sample_controller, read by api/. A value that nobody measured is absent, never
// zero. A container's own counter begins anew when it is started again; the total of its pod and of its node goes on,
// from what this process has seen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/shared_text.hpp"

namespace spillway::core {

/// One measurement of one container.
struct UsageSample {
  std::int32_t run = 0;                      // how often the container had been started again by then
  std::optional<std::uint64_t> cpu_ns;       // used in this run
  std::optional<std::uint64_t> working_set;  // bytes
  base::WallTime at;                         // by the clock of whoever measured
  base::TimePoint noted{};                   // by ours
};

struct ContainerUsage {
  base::SharedText name;
  UsageSample last;
  std::optional<std::uint64_t> nano_cores;  // nanoseconds per second between the last two samples of this run
  std::uint64_t total_cpu_ns = 0;           // of all runs, as far as it was measured
  std::uint64_t counted_cpu_ns = 0;         // of this run: what of it is in the total
  bool ahead = false;                       // its counter shows a run that nobody has told us of yet
};

struct PodUsage {
  std::vector<ContainerUsage> containers;

  const ContainerUsage* find(std::string_view container) const;
};

class UsageBook {
 public:
  /// A sample that is not newer than the last one of that run is dropped.
  void note(const std::string& node, const base::PodUid& pod, const base::SharedText& container,
            const UsageSample& sample);
  /// Forgets the pods for which `is_gone` says so. What they used stays in the total of their node.
  template <class Predicate>
  void forget(Predicate is_gone) {
    std::erase_if(pods_, [&](const auto& item) { return is_gone(item.first); });
  }

  /// Null if nothing was measured.
  const PodUsage* find(const base::PodUid& pod) const;
  /// Of all containers that were ever measured on the node; absent before the first.
  std::optional<std::uint64_t> node_cpu_ns(const std::string& node) const;

 private:
  std::unordered_map<base::PodUid, PodUsage> pods_;
  std::map<std::string, std::uint64_t, std::less<>> node_cpu_ns_;
};

}  // namespace spillway::core
