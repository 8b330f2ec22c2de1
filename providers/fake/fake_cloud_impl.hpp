// Private to the fake cloud's two source files: a machine, its account, and what is due when.
#pragma once

#include "providers/fake/fake_cloud.hpp"

namespace spillway::providers::fake {

struct FakeCloud::Machine {
  Serial serial = 0;
  bool foreign = false;
  model::Instance view;  // what the cloud says of it, always current
  std::shared_ptr<const PodOrders> orders;
  base::SharedText image_error;
  base::TimePoint created;
  std::vector<int> runs;            // by container: how often it was started
  std::vector<bool> start_at_boot;  // by container
  std::vector<int> public_ports;
  std::optional<base::TimePoint> gone_at;
  std::optional<base::TimePoint> meter_since;
};

/// What is never forgotten of a machine: its part of the invoice and of the audit.
struct FakeCloud::Account {
  base::SharedText tag;
  base::SharedText offer;
  base::Money price_per_hour;
  std::chrono::seconds billed{0};
  base::WallTime created;
  std::optional<base::WallTime> gone;
  std::string_view ended_by;
  int terminate_calls = 0;
  bool foreign = false;
};

/// One thing that happens at its time. `run` makes the end of an earlier run of a container void.
struct FakeCloud::Todo {
  enum class What : std::uint8_t { kBoot, kContainerEnds, kContainerStops, kPreempt, kGone, kGhost };
  What what = What::kBoot;
  Serial serial = 0;
  size_t container = 0;
  int run = 0;
  int exit_code = 0;   // of a container that stops
  bool again = false;  // then it is started again
  std::shared_ptr<CreateRequest> ghost;
};

/// Tells the observer, if there is one.
void tell(const CloudSettings& settings, const model::Instance& instance, bool foreign, Sight::What what,
          base::TimePoint at);

}  // namespace spillway::providers::fake
