#include "test/bench/placebench/calibration.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <queue>

#include "test/bench/placebench/draw.hpp"
#include "test/bench/placebench/world.hpp"
#include "vk-provider/core/beliefs.hpp"

namespace spillway::placebench {
namespace {

constexpr Seconds kShortest = 60;
constexpr Seconds kLongest = 12 * 3600;

/// The pools of the availability set with the most pools of one kind.
std::vector<const PoolTrace*> pools_of(const Dataset& data) {
  std::map<std::string, std::vector<const PoolTrace*>> sets;
  for (const PoolTrace& t : data.traces) {
    if (t.kind == "availability" && t.nodes == 1) sets[t.set + t.instance].push_back(&t);
  }
  std::vector<const PoolTrace*> most;
  for (auto& [name, pools] : sets) {
    if (pools.size() > most.size()) most = pools;
  }
  return most;
}

struct Probe {
  Seconds when = 0;
  size_t pool = 0;
  std::uint64_t number = 0;
  bool operator>(const Probe& other) const { return when > other.when; }
};

Seconds gap(std::uint64_t round, size_t pool, std::uint64_t number) {
  return kShortest * std::pow(kLongest / kShortest, unit(mixed_all(round, 3U, pool, number)));
}

/// Calls ask(pool, trace, when) for each probe, in the order of time.
void probe_all(const std::vector<const PoolTrace*>& pools, std::uint64_t round,
               const std::function<void(size_t, bool, Seconds)>& ask) {
  std::priority_queue<Probe, std::vector<Probe>, std::greater<>> probes;
  for (size_t i = 0; i < pools.size(); ++i) probes.push({gap(round, i, 0), i, 0});
  while (!probes.empty()) {
    const Probe p = probes.top();
    probes.pop();
    const PoolTrace& pool = *pools[p.pool];
    if (p.when >= pool.trace.length()) continue;
    ask(p.pool, pool.trace.up(p.when), p.when);
    probes.push({p.when + gap(round, p.pool, p.number + 1), p.pool, p.number + 1});
  }
}

core::PoolKey key_of(const PoolTrace& trace) {
  core::PoolKey key;
  key.provider = base::ProviderName(trace.cloud);
  key.region = trace.zone;
  key.gpu_model = trace.instance;
  key.gpu_count = 1;
  key.capacity_type = model::CapacityType::kSpot;
  return key;
}

using Guess = std::function<double(bool asked, bool up, Seconds ago)>;

std::vector<Bet> calibrate_by(const Dataset& data, int rounds, const Guess& guess) {
  const auto pools = pools_of(data);
  std::vector<Bet> bets;
  for (int round = 0; round < rounds; ++round) {
    struct Last {
      bool asked = false;
      bool up = false;
      Seconds when = 0;
    };
    std::vector<Last> last(pools.size());
    probe_all(pools, static_cast<std::uint64_t>(round), [&](size_t pool, bool up, Seconds when) {
      bets.push_back({guess(last[pool].asked, last[pool].up, when - last[pool].when), up});
      last[pool] = {true, up, when};
    });
  }
  return bets;
}

}  // namespace

std::vector<Bet> calibrate(const Dataset& data, int rounds) {
  const auto pools = pools_of(data);
  std::vector<Bet> bets;
  for (int round = 0; round < rounds; ++round) {
    core::PoolIndex index;
    std::vector<core::PoolId> ids;
    for (const PoolTrace* const trace : pools) ids.push_back(index.intern(key_of(*trace)));
    core::Beliefs beliefs(index);
    probe_all(pools, static_cast<std::uint64_t>(round), [&](size_t pool, bool up, Seconds when) {
      bets.push_back({beliefs.chance(ids[pool], at(when)), up});
      core::Beliefs::Report report;
      report.pool = ids[pool];
      report.result = up ? core::LaunchResult::kAccepted : core::LaunchResult::kSoldOut;
      beliefs.learn(report, at(when));
    });
  }
  return bets;
}

std::vector<Bet> calibrate_last_outcome(const Dataset& data, int rounds) {
  return calibrate_by(data, rounds, [](bool asked, bool up, Seconds) { return !asked ? 0.7 : up ? 1.0 : 0.0; });
}

std::vector<Bet> calibrate_three_minutes(const Dataset& data, int rounds) {
  return calibrate_by(data, rounds,
                      [](bool asked, bool up, Seconds ago) { return asked && !up && ago < 180 ? 0.0 : 1.0; });
}

}  // namespace spillway::placebench
