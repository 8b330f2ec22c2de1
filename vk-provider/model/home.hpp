// What the capacity gate and the drain read of Nodes and Pods of the whole cluster: a few plain values of each.
//
// Values, made by kube/home_codec and taken in by core/home_book and core/drain_roster. "home" is every node that is
// not virtual.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/money.hpp"

namespace spillway::model {

/// Whole GPUs by extended resource.
struct GpuAmounts {
  GpuAmounts() = default;
  std::int64_t nvidia = 0;
  std::int64_t amd = 0;
  bool none() const { return nvidia == 0 && amd == 0; }
  bool operator==(const GpuAmounts&) const = default;
};

enum class GpuResource : std::uint8_t { kNvidia, kAmd };
inline std::int64_t amount_of(const GpuAmounts& amounts, GpuResource resource) {
  return resource == GpuResource::kNvidia ? amounts.nvidia : amounts.amd;
}

/// spec.taints[] of a Node.
struct Taint {
  Taint() = default;
  Taint(std::string k, std::string v, std::string e) : key(std::move(k)), value(std::move(v)), effect(std::move(e)) {}
  std::string key;
  std::string value;
  std::string effect;
  bool operator==(const Taint&) const = default;
};

/// spec.tolerations[] of a Pod. An empty key (with kExists) tolerates every key, an empty effect every effect.
struct Toleration {
  enum class Operator : std::uint8_t { kEqual, kExists };
  Toleration() = default;
  std::string key;
  Operator op = Operator::kEqual;
  std::string value;
  std::string effect;
  bool operator==(const Toleration&) const = default;
};

/// One of matchExpressions (of labels) or matchFields (of metadata.name).
struct NodeRequirement {
  enum class Operator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt, kUnknown };
  NodeRequirement() = default;
  std::string key;
  bool of_field = false;
  Operator op = Operator::kUnknown;
  std::vector<std::string> values;
};

/// All of them must hold; one without requirements matches nothing.
using NodeTerm = std::vector<NodeRequirement>;

struct HomeNode {
  HomeNode() = default;
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  GpuAmounts allocatable;
  bool has_nvidia = false;  // the resource is named in capacity or allocatable, be it with 0
  bool has_amd = false;
  bool ready = false;
  bool unschedulable = false;
  bool deleting = false;
  std::int64_t unhealthy_gpus = 0;  // of the annotation spillway.dev/unhealthy-gpus
};

/// What stands on a pod that was taken from its ReplicaSet, so that a later process can go on: the annotations
/// spillway.dev/draining (the hash) and state.spillway.dev/drain (all else).
struct DetachNote {
  DetachNote() = default;
  std::string hash;  // that its label pod-template-hash had
  std::string owner_name;
  std::string owner_uid;
  base::WallTime since{};
};

/// What a drain wants to know of a pod beside.
struct DrainFacts {
  DrainFacts() = default;
  std::string ns;
  std::string name;
  std::string resource_version;
  std::string owner_kind;  // of the controller; empty for a pod without one
  std::string owner_name;
  std::string owner_uid;
  base::WallTime created{};
  bool pending = false;  // phase Pending: nothing of it serves yet
  bool ready = false;
  base::WallTime ready_since{};
  std::optional<base::Money> price;  // an hour, as the daemon noted it
  bool keep = false;                 // spillway.dev/do-not-drain
  bool evict_anyway = false;         // descheduler.alpha.kubernetes.io/evict
  bool rather_not = false;           // descheduler.alpha.kubernetes.io/prefer-no-eviction
  std::string draining;              // of spillway.dev/draining
  std::optional<DetachNote> note;    // only if it was written for this very pod
};

/// A PodDisruptionBudget, as far as it says which pods it is about.
struct DisruptionBudget {
  DisruptionBudget() = default;
  std::string ns;
  std::string name;
  bool selects_none = false;  // without a selector
  NodeTerm selector;          // all must hold; empty: every pod of the namespace
};

struct HomePod {
  HomePod() = default;
  std::string uid;
  GpuAmounts gpus;  // what its containers hold at once; all that follows is read only if it is not none()
  std::string node_name;
  std::string nominated_node;
  int priority = 0;
  bool terminal = false;  // Succeeded or Failed
  bool deleting = false;
  bool gated = false;          // has scheduling gates
  bool unschedulable = false;  // PodScheduled=False with reason Unschedulable
  std::map<std::string, std::string> labels;
  std::vector<Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  std::vector<NodeTerm> node_terms;  // of the required node affinity: one of them must match; empty: no affinity
  bool has_node_terms = false;
  DrainFacts drain;
};

}  // namespace spillway::model
