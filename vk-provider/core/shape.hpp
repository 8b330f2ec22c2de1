// What of a pod and its node decides where it may go, and what its time is worth: the same for all pods of one shape.
//
// A value, made once per pod. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/core/requirements.hpp"
#include "vk-provider/model/node_profile.hpp"

namespace spillway::core {

struct Worth {
  base::Money value_of_time;  // per hour of delay
  base::Duration runtime{};   // how much longer it is expected to run
  /// Work is saved so often; 0: nothing is ever lost; empty: it begins again from the start.
  std::optional<base::Duration> checkpoint;
  bool operator==(const Worth&) const = default;
};

struct Shape {
  int gpu_count = 0;
  std::string gpu_resource;
  std::int64_t cpu_milli = 0;
  std::int64_t memory = 0;  // bytes
  model::CapabilitySet capabilities;
  model::OfferFilter node;
  std::optional<base::Money> node_cap;  // per hour of one instance
  model::Wishes pod;
  bool spot_tolerated = false;
  bool strangers_tolerated = false;  // hosts of a marketplace
  Worth worth;
  std::uint64_t hash = 0;  // of all above

  bool operator==(const Shape&) const = default;
};

/// `owner_kind` of the pod's controller; empty for a bare pod. It decides what the pod does not say itself:
///   Job          value of time $0.20/h; what is lost begins again; spot if it saves checkpoints
///   ReplicaSet   $1/h; nothing is ever lost
///   others       $1/h; what is lost begins again
/// A node that has nothing but spot is a choice of its own: who is there tolerates it.
Shape make_shape(const Requirements& needs, const model::NodeProfile& profile, std::string_view owner_kind);

/// Per hour of delay, of a pod that names no value itself.
base::Money value_of(model::Tier tier);

}  // namespace spillway::core
