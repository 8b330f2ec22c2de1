// Reads what a pod asks for in its annotations under spillway.dev/.
//
// Pure. Nothing is guessed: a value that cannot be read, a key that nobody knows and two that contradict one another
// are faults, each with the path of its annotation and what would be allowed.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/core/fault.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/model/wishes.hpp"

namespace spillway::core {

/// Every key that users may write under spillway.dev/, also those that are no wishes.
std::span<const std::string_view> user_annotations();

/// `metadata.annotations[KEY]`
std::string annotation_path(std::string_view key);

struct ReadWishes {
  model::Wishes wishes;
  std::vector<Fault> faults;
};

/// `gpu` is what the pod's containers ask for: wishes about GPUs of a pod without GPUs contradict it.
ReadWishes read_wishes(const std::map<std::string, std::string>& annotations, const model::GpuNeed& gpu);

}  // namespace spillway::core
