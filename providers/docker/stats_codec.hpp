// What an engine says of a container's use of its machine.
//
// Pure. What it does not say is left out, never taken for zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::providers::docker {

struct ContainerStats {
  ContainerStats() = default;
  std::optional<base::WallTime> read_at;  // by the engine's clock; empty: it does not run
  std::optional<std::uint64_t> cpu_ns;
  /// As a kubelet counts: what is in use, without the pages of files that could be dropped at once.
  std::optional<std::uint64_t> working_set;
};

/// Answer of GET /containers/{id}/stats?one-shot=true, from a machine with cgroups of version 1 or 2.
base::Result<ContainerStats> decode_stats(std::string_view body);

}  // namespace spillway::providers::docker
