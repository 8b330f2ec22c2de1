// How placements are chosen: what all contestants have to answer, and what they are told.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "test/bench/placebench/scenario.hpp"
#include "test/bench/placebench/world.hpp"

namespace spillway::placebench {

struct TryPool {
  size_t pool = 0;
};
struct WaitUntil {
  Seconds when = 0;
};
using Choice = std::variant<TryPool, WaitUntil>;

/// A job as its policy sees it.
struct JobView {
  std::uint64_t id = 0;
  Seconds checkpoint = 0;
  double value = 0;
  Seconds arrival = 0;
  Seconds has_run = 0;  // work that it has done
  Seconds left = 0;     // work to be done: only the clairvoyant looks
};

/// One chance that a policy believed in, and what came of it.
struct Bet {
  double chance = 0;
  bool won = false;
};

class Policy {
 public:
  explicit Policy(const World& world) : world_(world) {}
  virtual ~Policy() = default;

  virtual Choice choose(const JobView& job, Seconds now) = 0;
  /// What became of it. `took`: of the call; from accepted to Running.
  virtual void accepted(const JobView& /*job*/, size_t /*pool*/, Seconds /*took*/, Seconds /*now*/) {}
  virtual void sold_out(const JobView& /*job*/, size_t /*pool*/, Seconds /*took*/, Seconds /*now*/) {}
  virtual void ran(const JobView& /*job*/, size_t /*pool*/, Seconds /*took*/, Seconds /*now*/) {}
  virtual void never_ran(const JobView& /*job*/, size_t /*pool*/, Seconds /*now*/) {}
  virtual void lost(const JobView& /*job*/, size_t /*pool*/, bool /*had_run*/, Seconds /*now*/) {}
  virtual void ended(const JobView& /*job*/, size_t /*pool*/, bool /*had_run*/, Seconds /*now*/) {}

  /// A call is not waited for any more.
  virtual void given_up(const JobView& /*job*/, size_t /*pool*/, Seconds /*now*/) {}

  /// How long it waits for Running before it gives the instance up.
  virtual Seconds patience(size_t pool, Seconds now) const = 0;
  /// When to think about a second instance, after the first was accepted; and then, where.
  virtual std::optional<Seconds> hedge_after(const JobView& /*job*/, size_t /*pool*/, Seconds /*now*/) {
    return std::nullopt;
  }
  virtual std::optional<size_t> hedge(const JobView& /*job*/, size_t /*pool*/, Seconds /*waited*/, Seconds /*now*/) {
    return std::nullopt;
  }
  /// Every quarter of an hour while it runs: where to move to.
  virtual bool moves() const { return false; }
  virtual std::optional<size_t> move(const JobView& /*job*/, size_t /*pool*/, double /*price*/, Seconds /*ran*/,
                                     Seconds /*now*/) {
    return std::nullopt;
  }
  /// The calibration of what it believed.
  virtual std::vector<Bet> bets() const { return {}; }

 protected:
  const World& world_;
};

/// Names of all: cheapest5 random skypilot dstack karpenter index index+hedge clairvoyant.
const std::vector<std::string>& policy_names();
std::unique_ptr<Policy> make_policy(const std::string& name, const World& world, std::uint64_t seed);

std::unique_ptr<Policy> make_baseline(const std::string& name, const World& world, std::uint64_t seed);
std::unique_ptr<Policy> make_index_policy(const World& world, bool hedges);
std::unique_ptr<Policy> make_clairvoyant(const World& world);

}  // namespace spillway::placebench
