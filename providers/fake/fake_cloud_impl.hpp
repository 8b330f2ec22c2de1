// Private to the fake cloud's two source files: a machine, and what is due when.
#pragma once

#include "providers/fake/fake_cloud.hpp"

namespace spillway::providers::fake {

struct FakeCloud::Machine {
  Serial serial = 0;
  bool foreign = false;
  model::Instance view;  // what the cloud says of it, always current
  PodOrders orders;
  std::string image_error;
  base::TimePoint created;
  std::vector<int> runs;  // by container: how often it was started
  std::vector<int> public_ports;
  std::optional<base::TimePoint> gone_at;
  std::optional<base::TimePoint> meter_since;
};

/// One thing that happens at its time. `run` makes the end of an earlier run of a container void.
struct FakeCloud::Todo {
  enum class What : std::uint8_t { kBoot, kContainerEnds, kPreempt, kGone, kGhost };
  What what = What::kBoot;
  Serial serial = 0;
  size_t container = 0;
  int run = 0;
  std::shared_ptr<CreateRequest> ghost;
};

}  // namespace spillway::providers::fake
