// What the pods of one node use, put together from the records and the usage book for one answer. Pure.
//
// A value that is not known is absent, never zero: a container that was not measured yet, or not for two minutes. A sum
// is known if all of its parts are; the node's is the sum of what is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/pod_view.hpp"
#include "vk-provider/core/usage_book.hpp"

namespace spillway::api {

struct Measure {
  std::optional<std::uint64_t> cpu_ns;       // used in all
  std::optional<std::uint64_t> nano_cores;   // nanoseconds per second, of late
  std::optional<std::uint64_t> working_set;  // bytes
  base::WallTime at;                         // of the newest part
};

struct ContainerMeasure {
  const model::ContainerSpec* spec = nullptr;
  const model::ContainerRecord* record = nullptr;
  Measure use;
};

/// A pod that runs, with those of its containers that run. Points into the records.
struct PodMeasure {
  const model::PodRecord* record = nullptr;
  std::vector<ContainerMeasure> containers;
  Measure use;

  /// True if nothing of it is unknown: only then a sum over its containers is the pod's.
  bool complete() const { return use.cpu_ns && use.working_set; }
};

struct NodeMeasure {
  std::string name;
  std::vector<PodMeasure> pods;
  Measure use;
};

/// Holds until the caller waits for something.
NodeMeasure measure_node(const core::PodView& pods, const core::UsageBook& usage, std::string node, base::Now now);

}  // namespace spillway::api
