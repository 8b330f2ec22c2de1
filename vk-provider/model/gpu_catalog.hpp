// GPU models under one name each: clouds write "NVIDIA A100 80GB PCIe", "A100-SXM4-80GB" and "A100_80G" for one thing.
//
// Constant data, any thread. Knows names and memory, not speed and not price. Offers and node labels use the canonical
// name; every adapter translates its cloud's word with find_gpu.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::model {

struct GpuModel {
  std::string_view name;     // canonical; a valid label value: A100-80GB
  std::string_view product;  // what the vendor's feature discovery puts on nodes: NVIDIA-A100-SXM4-80GB
  bool amd = false;          // amd.com/gpu; otherwise nvidia.com/gpu
  std::int64_t memory = 0;   // bytes of one GPU
};

/// All models, the newest first.
std::span<const GpuModel> gpu_models();

/// The model of that canonical name, letter by letter; null if there is none.
const GpuModel* gpu_named(std::string_view name);

/// All models that a cloud or a user may mean by `alias`; upper and lower case, blanks, dashes, vendor words, and how a
/// card is plugged in do not matter. "A100" means two, with 40 and 80 GB.
std::vector<const GpuModel*> find_gpus(std::string_view alias);

/// The one model that is meant by `alias`. `memory` (bytes, 0 = unknown) decides where a name alone does not. Null for
/// an unknown name, and for a name that is ambiguous without the memory.
const GpuModel* find_gpu(std::string_view alias, std::int64_t memory = 0);

}  // namespace spillway::model
