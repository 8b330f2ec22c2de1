// One container of a pod's spec -> model::ContainerSpec; main, init and sidecar alike.
//
// Pure, tolerant. Ports that probes and hooks call by name are resolved here, among the ports of the same container.
#pragma once

#include <string>
#include <string_view>

#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::kube {

/// What a container takes over from its pod.
struct ContainerSurroundings {
  std::string_view security_json;    // spec.securityContext
  std::string_view withheld_volume;  // mounts of it are left out; empty: none
};

/// A container's GPUs, by make: of one pod they must be of one.
struct ContainerGpus {
  std::int64_t nvidia = 0;
  std::int64_t amd = 0;
};

/// `path` is where the container stands: spec.initContainers[0].
model::ContainerSpec decode_container(std::string_view json, const std::string& path, const ContainerSurroundings& pod,
                                      ContainerGpus& gpus, Findings& findings);

/// requests and limits of a container or of the pod; `path` is that of the field `resources`.
model::Resources decode_resources(std::string_view json, const std::string& path, ContainerGpus& gpus,
                                  Findings& findings);

std::optional<model::RestartPolicy> decode_restart_policy(std::string_view json);

}  // namespace spillway::kube
