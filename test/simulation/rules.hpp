// What must never be seen, and what must be so once everybody is calm.
//
// A rule is a pure function over the facts and what has just happened; it returns what is wrong, or nothing. All of
// them are in the table of rules.cpp. They are asked at every event, so each must be O(1) or O(instances of one pod).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "test/simulation/facts.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::simulation {

/// A write of a daemon to a pod that reached the API server and was accepted.
struct PodWrite {
  /// What it ends the pod with, as far as that is its owner's fault.
  enum class Blame : std::uint8_t { kNone, kCrashed, kRefused };
  const kube::KubeRequest* request = nullptr;
  const PodFacts* before = nullptr;   // the pod that stood there
  const PodFacts* after = nullptr;    // the same pod, also if it is gone now
  test::api_model::ObjectPtr object;  // as it stands now; null if it is gone
  bool changed = false;
  std::string writer;  // which daemon
  Blame blame{};
};

/// A create of a daemon that reached a cloud, before the cloud has looked at it.
struct Purchase {
  std::string provider;
  std::string tag;
  std::string holder;  // of the installation's lease, as it stands at the API server
  std::string buyer;   // the daemon's name in that lease, without its random part
};

/// What all instances of ours cost once one more has appeared, where an installation has a limit and prices stand
/// still.
struct Burn {
  std::int64_t now = 0;  // micro-dollars per hour
  std::int64_t limit = 0;
};

/// Something that a daemon does to one instance: terminate it, or control its containers.
struct Touch {
  const InstanceFacts* instance = nullptr;  // null: there is none of that id
  std::string_view call;
};

/// How often a daemon has made one call of a provider within the last minute.
struct CallRate {
  std::string provider;
  providers::fake::Call call{};
  int calls = 0;
  int things = 0;  // pods and instances that existed within that minute
};

/// What is looked at every few seconds.
struct Moment {
  base::TimePoint now;
  /// For how long one daemon has held the lease, not frozen, with the API server in order.
  base::Duration good_for{0};
  /// By node: when its lease was last renewed.
  const std::map<std::string, base::TimePoint>* node_leases = nullptr;
};

struct Rule {
  std::string_view name;
  std::string (*write)(const Facts&, const PodWrite&) = nullptr;
  std::string (*purchase)(const Facts&, const Purchase&) = nullptr;
  std::string (*touch)(const Facts&, const Touch&) = nullptr;
  std::string (*sight)(const Facts&, const InstanceFacts&) = nullptr;
  std::string (*burn)(const Facts&, const Burn&) = nullptr;
  std::string (*rate)(const Facts&, const CallRate&) = nullptr;
  std::string (*moment)(const Facts&, const Moment&) = nullptr;
};

const std::vector<Rule>& rules();

struct Violation {
  std::string rule;
  std::string what;
};

}  // namespace spillway::simulation
