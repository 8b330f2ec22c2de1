// One cloud of the simulated world.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "providers/fake/fake_cloud.hpp"
#include "test/simulation/plan.hpp"
#include "test/simulation/randomness.hpp"

namespace spillway::simulation {

struct CloudSite {
  /// `seen` is told of every instance that comes, changes or goes.
  CloudSite(std::uint64_t seed, int number, const CloudTraits& t, base::Now start,
            std::function<void(const providers::fake::Sight&)> seen);

  /// What stays wrong with it also when all else is well: its traits.
  void apply_traits(base::TimePoint now);

  int index;
  std::string name;
  CloudTraits traits;
  providers::fake::FakeCloud cloud;
  Stream latencies;
  bool lies = false;  // listings that leave everything out and call themselves complete are planned
  /// When calls of each daemon were made within the last minute, by its name and the call.
  std::map<std::pair<std::string, providers::fake::Call>, std::deque<base::TimePoint>> calls;
};

}  // namespace spillway::simulation
