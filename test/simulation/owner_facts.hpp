// What became of the pods of each controller, generation by generation, under the daemon that holds the lease.
//
// Part of Facts. A generation is all pods that were made before the first of them failed; whoever replaces that one
// makes the next. The daemon's brake is written down a little later than it is pulled, so a new holder of the lease may
// begin anew, and so do these.
// Decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/clock.hpp"

namespace spillway::simulation {

struct Generation {
  base::TimePoint made;    // its first pod that failed
  base::TimePoint failed;  // when that one was written Failed: who was made later is of the next generation
  int launches = 0;        // intents of pods that were made later, and before the next generation failed
};

/// How the pods of one controller failed in one way. By time.
class Failures {
 public:
  /// A pod that was made then failed now.
  void add(base::TimePoint made, base::TimePoint now);
  /// A pod that was made then is launched.
  void note_launch(base::TimePoint made);
  /// How many generations had failed when this pod was made.
  size_t before(base::TimePoint made) const;
  const std::vector<Generation>& generations() const { return generations_; }
  void clear() { generations_.clear(); }

 private:
  std::vector<Generation> generations_;
};

struct OwnerFacts {
  base::TimePoint first_pod;
  Failures crashed;  // they could not be started, or ended with a failure
  Failures refused;  // nobody can run them
};

class Owners {
 public:
  /// `daemon` took the lease, and knows nothing of what its predecessors saw.
  void begin_term(std::string daemon, base::TimePoint now);
  const std::string& daemon() const { return daemon_; }
  base::TimePoint term_began() const { return term_began_; }

  /// A controller made a pod. Pods without one have no key, and are none of ours.
  void pod_made(const std::string& key, base::TimePoint now);
  /// Null if no pod has such a controller.
  OwnerFacts* find(const std::string& key);
  const OwnerFacts* find(const std::string& key) const;

 private:
  std::string daemon_;
  base::TimePoint term_began_{};
  // Only looked up in; the order in which a new term clears them does not matter.
  std::unordered_map<std::string, OwnerFacts> owners_;
};

}  // namespace spillway::simulation
