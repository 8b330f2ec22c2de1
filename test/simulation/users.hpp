// The users of the simulated cluster and the controllers that work for them: they make pods, and react to what becomes
// of them.
//
// Owned by the World. One thread. Talks to the API server alone; knows neither clouds nor daemons.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "test/simulation/api_site.hpp"

namespace spillway::simulation {

struct Owner {
  enum class Kind : std::uint8_t {
    kReplicaSet,   // so many that are alive; a Failed one is replaced at once
    kJob,          // so many that succeeded, with at most a few failures
    kStatefulSet,  // so many with fixed names, which are used again at once
    kBare,         // made once
    kCount
  };
  Kind kind{};
  int number = 0;
  size_t shape = 0;
  std::int64_t wanted = 0;
  bool deleted = false;
  int made = 0;
  bool due = false;               // a look at its pods is on the agenda
  std::vector<std::string> pods;  // UIDs of those that exist, by age
  // UIDs of those that ended, also when they are gone: a Job counts them.
  std::set<std::string> succeeded;
  std::set<std::string> failed;

  std::string uid() const;
};

class Users {
 public:
  Users(std::uint64_t seed, std::int64_t nodes, ApiSite& api, Facts& facts, Coverage& coverage);

  void add_owner(Owner::Kind kind, size_t shape, std::int64_t replicas);
  void scale(size_t owner, std::int64_t replicas);
  void delete_owner(size_t owner, int grace);
  void delete_pod(size_t owner, size_t nth, int grace);
  /// `kubectl replace --force` of everything that the owner made: the same names at once, as other pods.
  void replace(size_t owner);
  enum class Edit : std::uint8_t { kLabel, kAnnotation, kCopiedState, kEndPod, kCount };
  void edit_pod(size_t owner, size_t nth, Edit edit);
  /// Deletes what has ended, as the garbage collector for terminated pods does.
  void collect();
  /// Controllers make no more pods: what is there has to come to rest.
  void rest() { resting_ = true; }
  /// Deletes everything.
  void leave();

  void pod_changed(const PodFacts& pod);
  const std::vector<Owner>& owners() const { return owners_; }
  /// Pods that were ever made.
  std::uint64_t lives() const { return lives_; }
  /// Whether a daemon is there to see what users do; for the coverage alone.
  bool daemon_runs = true;

 private:
  void look(Owner& owner);
  void reconcile(Owner& owner);
  void reconcile_set(Owner& owner, const std::vector<const PodFacts*>& active);
  void reconcile_job(Owner& owner, const std::vector<const PodFacts*>& active);
  void reconcile_stateful(Owner& owner);
  void make_pod(Owner& owner, const std::string& name);
  void remove(const PodFacts& pod, int grace);
  void let_go(const std::string& uid);
  const PodFacts* pick(size_t owner, size_t nth) const;

  ApiSite& api_;
  Facts& facts_;
  Coverage& coverage_;
  Stream delays_;
  std::int64_t nodes_;
  std::vector<Owner> owners_;
  std::uint64_t lives_ = 0;
  bool resting_ = false;
};

}  // namespace spillway::simulation
