// The pods in a manifest as users write it: YAML or JSON, several documents, lists, workloads.
//
// Pure; main's thread. A pod stands wherever a mapping has `spec.containers`: a Pod, the template of a Deployment, Job
// or CronJob, or one deep inside a resource of somebody's operator. What a StatefulSet or an indexed Job adds to its
// pods (claims, host names) is added here, too. Scalars are read as kubectl reads them (YAML 1.1: 0644 is octal, yes is
// true). Does not check a manifest against the API's schema: that is the API server's work.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/daemon/config.hpp"

namespace spillway::daemon {

/// Where an object of a manifest begins, and what it is.
struct ManifestObject {
  std::string file;
  int line = 0;  // from 1
  std::string kind;
  std::string ns;  // empty: the one that kubectl uses
  std::string name;
};

struct ManifestPod {
  ManifestObject object;
  std::string path;  // of the pod in the object: spec.template; empty: it is the object itself
  std::string json;  // a Pod
};

struct Manifest {
  std::vector<ManifestPod> pods;
  std::vector<ManifestObject> others;  // objects without a pod
};

/// `file` stands in the faults. Faults are in the order of the text.
std::expected<Manifest, std::vector<Fault>> read_manifest(std::string_view text, const std::string& file);

/// One document as JSON, its scalars read in the same way. kInvalid says where it is broken.
base::Result<std::string> yaml_to_json(std::string_view text);

}  // namespace spillway::daemon
