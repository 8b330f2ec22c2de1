// How the probes of running containers came out so far, for api/.
//
// Implemented by control/probe_controller; reactor thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "vk-provider/core/events.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::core {

/// Of one probe of the present run of a container.
struct ProbeCount {
  const model::PodKey* pod = nullptr;
  std::string_view container;
  ProbeKind kind{};
  std::uint32_t successful = 0;
  std::uint32_t failed = 0;
  std::uint32_t unknown = 0;  // it came to nothing that speaks of the container
};

class ProbeView {
 public:
  virtual ~ProbeView() = default;

  using Visit = std::function<void(const ProbeCount&)>;
  virtual void each_probe(std::string_view node, const Visit& visit) const = 0;
};

}  // namespace spillway::core
