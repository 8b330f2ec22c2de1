// The volumes of a pod that a rented machine can have, decoded. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/model/container_spec.hpp"

namespace spillway::model {

/// One file of a volume: a key of a ConfigMap or Secret, a field of the pod, or a resource of a container.
struct VolumeItem {
  VolumeItem() = default;
  std::string path;
  std::optional<int> mode;
  std::string key;    // of a ConfigMap or Secret
  std::string field;  // downwardAPI fieldRef
  base::Boxed<ResourceRef> resource;
  bool operator==(const VolumeItem&) const = default;
};

/// Where files of a volume come from. A configMap, secret or downwardAPI volume has one source, a projected one
/// several.
struct VolumeSource {
  VolumeSource() = default;
  enum class Kind : std::uint8_t { kConfigMap, kSecret, kDownwardApi, kToken };
  Kind kind = Kind::kConfigMap;
  std::string name;  // of the ConfigMap or Secret
  bool optional = false;
  std::vector<VolumeItem> items;  // empty: every key, under its own name
  // kToken: a token of the pod's service account, as the file `path`.
  std::string path;
  std::string audience;
  std::chrono::seconds expiration{3600};
  bool operator==(const VolumeSource&) const = default;
};

struct VolumeSpec {
  VolumeSpec() = default;
  enum class Kind : std::uint8_t {
    kFiles,    // configMap, secret, downwardAPI, projected: read-only
    kScratch,  // emptyDir
    kMemory,   // emptyDir with medium Memory
  };
  Kind kind = Kind::kScratch;
  std::string name;
  std::vector<VolumeSource> sources;       // kFiles
  int default_mode = 0644;                 // kFiles
  std::optional<std::int64_t> size_limit;  // kScratch, kMemory; bytes
  bool operator==(const VolumeSpec&) const = default;
};

}  // namespace spillway::model
