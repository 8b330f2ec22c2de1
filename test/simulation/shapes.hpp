// Kinds of pods that users of the simulated world run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace spillway::simulation {

/// What becomes of a pod that can be bought.
enum class Course : std::uint8_t {
  kRuns,   // and goes on, or ends well
  kFails,  // runs, and fails: the brake may hold the other pods of its owner for as long as it likes
  kWaits,  // may stay Pending for ever
};

struct Shape {
  std::string_view name;
  int weight;  // how often it is drawn, against the others
  Course course;
  /// Changes what is special about it in an ordinary pod.
  void (*apply)(nlohmann::json& pod);
  /// The cloud says of it that nothing is left. That is believed of all: others may have to wait as long.
  bool says_scarce = false;
};

const std::vector<Shape>& shapes();

/// The pod as a controller makes it, bound to a node.
nlohmann::json make_pod(const Shape& shape, const std::string& name, const std::string& node,
                        const std::string& owner_uid);

/// A finalizer of somebody else: he lets go some time after the deletion.
inline constexpr std::string_view kFinalizer = "simulation.example/hold";

}  // namespace spillway::simulation
