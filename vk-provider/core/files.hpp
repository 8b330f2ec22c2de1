// The files of a pod's volumes: ConfigMaps, Secrets, the downward API and tokens, as a kubelet lays them out. Pure.
//
// Source of the rules: Kubernetes' pkg/volume/{configmap,secret,downwardapi,projected} and their atomic writer.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/core/references.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::core {

/// All files of one pod together: an object may be mounted many times, and each of its values may have 1 MiB.
inline constexpr size_t kFilesLimit = 64UL << 20;

struct ResolvedFiles {
  ResolvedFiles() = default;
  std::vector<model::ResolvedVolume> volumes;
  std::vector<model::ResolvedFile> files;  // by volume, then by path
};

/// The volumes that a container mounts, and what lies in them. Of two sources of a projected volume that write one
/// path, the later one wins. The error is a kubelet's FailedMount: `MountVolume.SetUp failed for volume ...`.
base::Result<ResolvedFiles> resolve_files(const model::PodSpec& pod, const Surroundings& read,
                                          std::vector<Note>& notes);

/// The files of mounted volumes that hold tokens of `read`, to replace those of a running pod.
base::Result<std::vector<model::ResolvedFile>> token_files(const model::PodSpec& pod, const Surroundings& read);

/// `path` as it is kept: without empty parts and `.`. kInvalid for what leads out of the volume or cannot be a file.
base::Result<std::string> clean_file_path(std::string_view path);

}  // namespace spillway::core
