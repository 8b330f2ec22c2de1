// Probes and lifecycle hooks of a container.
//
// Pure, tolerant. A port may be named; the name is one of the same container's ports. What has no handler, or a port
// that does not exist, is a fault: it would be a probe that can never succeed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/boxed.hpp"
#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::kube {

class HandlerReader {
 public:
  /// Both must outlive the reader.
  HandlerReader(const std::vector<model::ContainerPort>& ports, Findings& findings)
      : ports_(ports), findings_(findings) {}

  /// Nothing for a probe that is absent or null. Zero and absent numbers are the API's defaults.
  base::Boxed<model::Probe> probe(std::string_view json, const std::string& path) const;
  base::Boxed<model::Handler> hook(std::string_view json, const std::string& path) const;

 private:
  std::optional<model::Handler> handler(std::string_view json, const std::string& path) const;
  bool handler_of(std::string_view key, std::string_view value, const std::string& path, model::Handler& out) const;
  int port(std::string_view json, const std::string& path) const;

  const std::vector<model::ContainerPort>& ports_;
  Findings& findings_;
};

}  // namespace spillway::kube
