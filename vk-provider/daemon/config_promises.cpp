#include "vk-provider/daemon/config_promises.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "vk-provider/daemon/config_values.hpp"
#include "vk-provider/model/gpu_catalog.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::daemon {
namespace {

constexpr std::string_view kGpuModel = "spillway.dev/gpu-model";
constexpr std::string_view kCapacityType = "spillway.dev/capacity-type";
constexpr std::string_view kGpuProduct = "nvidia.com/gpu.product";
constexpr std::string_view kGpuMemory = "nvidia.com/gpu.memory";
constexpr std::string_view kGpuPresent = "nvidia.com/gpu.present";
constexpr std::string_view kRegion = "topology.kubernetes.io/region";

// Set by the node controller, or true of a machine that does not exist.
constexpr std::array<std::string_view, 6> kOursAlone = {
    model::kLabelInstallation, model::kLabelProfile, "kubernetes.io/hostname",
    "kubernetes.io/os",        "kubernetes.io/arch", "type",
};
constexpr std::array<std::string_view, 6> kPromising = {kGpuModel,  kCapacityType, kGpuProduct,
                                                        kGpuMemory, kGpuPresent,   kRegion};

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

/// What the GPU operator would write on a machine with this model. A model of another maker has no such label.
std::string_view product_of(const std::string& gpu_model) {
  const model::GpuModel* gpu = model::find_gpu(gpu_model);
  return gpu == nullptr || gpu->amd || gpu->name != gpu_model ? std::string_view{} : gpu->product;
}

bool memory_is_kept(const std::string& value, const model::OfferFilter& offers) {
  constexpr std::int64_t kMebibyte = 1024 * 1024;
  std::int64_t mebibytes = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), mebibytes);
  return error == std::errc() && end == value.data() + value.size() && mebibytes > 0 &&
         mebibytes == offers.min_gpu_memory / kMebibyte && offers.min_gpu_memory % kMebibyte == 0;
}

bool has_gpu(const model::NodeProfile& profile, std::string_view resource) {
  const auto entry = profile.capacity.find(std::string(resource));
  return entry != profile.capacity.end() && model::quantity_value(entry->second).value_or(0) > 0;
}

/// What would keep the promise; empty if it is kept.
std::string remedy(const std::string& label, const std::string& value, const model::NodeProfile& profile) {
  const model::OfferFilter& offers = profile.offers;
  if (label == kGpuModel) {
    return offers.gpu_models == std::vector{value} ? "" : "only with offers.gpuModels: [" + quoted(value) + "]";
  }
  if (label == kRegion) {
    return offers.regions == std::vector{value} ? "" : "only with offers.regions: [" + quoted(value) + "]";
  }
  if (label == kCapacityType) {
    const bool kept = offers.capacity_types.size() == 1 && model::to_string(offers.capacity_types.front()) == value;
    return kept ? "" : "only with offers.capacityTypes: [" + quoted(value) + "]";
  }
  if (label == kGpuProduct) {
    if (offers.gpu_models.size() == 1 && product_of(offers.gpu_models.front()) == value) return "";
    const model::GpuModel* gpu = model::find_gpu(value);
    if (gpu == nullptr || gpu->amd) return "the product name of a known NVIDIA GPU, such as NVIDIA-L4";
    const std::string entry = "only with offers.gpuModels: [" + quoted(gpu->name) + "]";
    return gpu->product == value ? entry : quoted(gpu->product) + ", " + entry;
  }
  if (label == kGpuMemory) {
    if (memory_is_kept(value, offers)) return "";
    return "a number of MiB, only with the same offers.minGpuMemory (" + value + "Mi)";
  }
  if (label == kGpuPresent) {
    return value == "true" && has_gpu(profile, model::kResourceNvidiaGpu)
               ? ""
               : "\"true\", only with capacity nvidia.com/gpu";
  }
  return "";
}

bool is_promise_that_nobody_keeps(std::string_view label) {
  const std::string_view prefix = label.substr(0, label.find('/'));
  return label.find('/') != std::string_view::npos &&
         (prefix == "nvidia.com" || prefix == "amd.com" || prefix == "spillway.dev" ||
          prefix.ends_with(".spillway.dev") || label == "topology.kubernetes.io/zone");
}

}  // namespace

std::vector<BrokenPromise> broken_promises(const model::NodeProfile& profile) {
  const std::vector<std::string> promising(kPromising.begin(), kPromising.end());
  std::vector<BrokenPromise> out;
  for (const auto& [label, value] : profile.labels) {
    if (std::ranges::find(kOursAlone, label) != kOursAlone.end()) {
      out.emplace_back(label, "found " + quoted(value) + "; allowed: nothing, the daemon sets this label itself");
    } else if (std::ranges::find(kPromising, label) != kPromising.end()) {
      const std::string allowed = remedy(label, value, profile);
      if (!allowed.empty()) {
        out.emplace_back(label,
                         "found " + quoted(value) + ", which the offer filter does not enforce; allowed: " + allowed);
      }
    } else if (is_promise_that_nobody_keeps(label)) {
      const std::string_view near = nearest(label, promising);
      out.emplace_back(label, "found a label that no offer filter can enforce; allowed: " +
                                  (near.empty() ? join(promising)
                                                : std::string(near) + " (the nearest of " + join(promising) + ")"));
    }
  }
  return out;
}

}  // namespace spillway::daemon
