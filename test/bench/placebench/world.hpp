// The clouds of a scenario: what they sell, when they have it, and what becomes of an order.
//
// Constant once made. Chance depends on pool, pod and minute only, so every policy meets the same luck.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/bench/placebench/trace.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::placebench {

inline base::TimePoint at(Seconds t) { return base::TimePoint(base::Duration(static_cast<std::int64_t>(t * 1e9))); }
inline base::Duration lasting(Seconds t) { return base::Duration(static_cast<std::int64_t>(t * 1e9)); }
inline Seconds seconds(base::TimePoint t) { return static_cast<double>(t.time_since_epoch().count()) / 1e9; }
inline Seconds seconds(base::Duration d) { return static_cast<double>(d.count()) / 1e9; }

struct Pool {
  model::Offer offer;  // its price is that at the beginning
  Trace stock;
  Seconds offset = 0;       // into the trace
  bool taken_back = false;  // when the stock ends, so do the instances
  PricePath price;
  Seconds price_offset = 0;
  double start_median = 150;  // seconds from accepted to Running
  double start_sigma = 0.38;
  double never_ready = 0.01;  // share of accepted orders that never run
};

/// What fate has in store for one order.
struct Draw {
  Seconds answer = 0;  // of the create call
  Seconds start = 0;   // from accepted to Running
  bool never = false;
};

class World {
 public:
  World(std::vector<Pool> pools, std::uint64_t seed) : pools_(std::move(pools)), seed_(seed) {}

  const std::vector<Pool>& pools() const { return pools_; }
  size_t size() const { return pools_.size(); }

  bool up(size_t pool, Seconds t) const { return pools_[pool].stock.up(t + pools_[pool].offset); }
  Seconds next_up(size_t pool, Seconds t) const;
  /// When an instance that runs at t is taken back; infinity if never.
  Seconds taken_back(size_t pool, Seconds t) const;
  /// Dollars per hour.
  double price(size_t pool, Seconds t) const;
  Seconds next_price(size_t pool, Seconds t) const;
  Draw draw(size_t pool, Seconds t, std::uint64_t pod) const;
  /// What the clouds list at t: every offer, in and out of stock alike.
  std::vector<model::Offer> offers(Seconds t) const;

 private:
  std::vector<Pool> pools_;
  std::uint64_t seed_;
};

}  // namespace spillway::placebench
