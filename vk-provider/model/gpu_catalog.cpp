#include "vk-provider/model/gpu_catalog.hpp"

#include <array>
#include <cctype>
#include <cstdlib>
#include <string>

namespace spillway::model {
namespace {

constexpr std::int64_t operator""_gib(unsigned long long n) { return static_cast<std::int64_t>(n) << 30; }

// Memory as sold; what a driver reports is a little less.
constexpr std::array kModels = {
    GpuModel{"B200", "NVIDIA-B200", false, 180_gib},
    GpuModel{"GH200", "NVIDIA-GH200-480GB", false, 96_gib},
    GpuModel{"H200", "NVIDIA-H200", false, 141_gib},
    GpuModel{"H100-NVL", "NVIDIA-H100-NVL", false, 94_gib},
    GpuModel{"H100", "NVIDIA-H100-80GB-HBM3", false, 80_gib},
    GpuModel{"A100-80GB", "NVIDIA-A100-SXM4-80GB", false, 80_gib},
    GpuModel{"A100-40GB", "NVIDIA-A100-SXM4-40GB", false, 40_gib},
    GpuModel{"MI325X", "AMD_Instinct_MI325X_OAM", true, 256_gib},
    GpuModel{"MI300X", "AMD_Instinct_MI300X_OAM", true, 192_gib},
    GpuModel{"RTX-PRO-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", false, 96_gib},
    GpuModel{"RTX6000-Ada", "NVIDIA-RTX-6000-Ada-Generation", false, 48_gib},
    GpuModel{"L40S", "NVIDIA-L40S", false, 48_gib},
    GpuModel{"L40", "NVIDIA-L40", false, 48_gib},
    GpuModel{"L4", "NVIDIA-L4", false, 24_gib},
    GpuModel{"A40", "NVIDIA-A40", false, 48_gib},
    GpuModel{"A6000", "NVIDIA-RTX-A6000", false, 48_gib},
    GpuModel{"A5000", "NVIDIA-RTX-A5000", false, 24_gib},
    GpuModel{"A4000", "NVIDIA-RTX-A4000", false, 16_gib},
    GpuModel{"A10", "NVIDIA-A10", false, 24_gib},
    GpuModel{"A10G", "NVIDIA-A10G", false, 24_gib},
    GpuModel{"RTX5090", "NVIDIA-GeForce-RTX-5090", false, 32_gib},
    GpuModel{"RTX4090", "NVIDIA-GeForce-RTX-4090", false, 24_gib},
    GpuModel{"RTX3090", "NVIDIA-GeForce-RTX-3090", false, 24_gib},
    GpuModel{"V100-32GB", "Tesla-V100-SXM2-32GB", false, 32_gib},
    GpuModel{"V100-16GB", "Tesla-V100-SXM2-16GB", false, 16_gib},
    GpuModel{"T4", "Tesla-T4", false, 16_gib},
};

// Normalised names that are not the normalised canonical name or product. A name may stand here for several models;
// then the memory decides.
struct Alias {
  std::string_view alias;
  std::string_view name;
};
constexpr std::array kAliases = {
    Alias{"H100SXM", "H100"},           Alias{"H100SXM5", "H100"},
    Alias{"H10080GB", "H100"},          Alias{"H10080GBSXM5", "H100"},
    Alias{"H100PCIE", "H100"},          Alias{"H10080GBPCIE", "H100"},
    Alias{"H200SXM", "H200"},           Alias{"H200SXM5", "H200"},
    Alias{"H200141GB", "H200"},         Alias{"B200SXM", "B200"},
    Alias{"B200180GB", "B200"},         Alias{"GH200", "GH200"},
    Alias{"A100", "A100-80GB"},         Alias{"A100", "A100-40GB"},
    Alias{"A100SXM", "A100-80GB"},      Alias{"A100SXM", "A100-40GB"},
    Alias{"A100SXM4", "A100-80GB"},     Alias{"A100SXM4", "A100-40GB"},
    Alias{"A100PCIE", "A100-80GB"},     Alias{"A100PCIE", "A100-40GB"},
    Alias{"A10080GBSXM4", "A100-80GB"}, Alias{"A10080GBPCIE", "A100-80GB"},
    Alias{"A100PCIE80GB", "A100-80GB"}, Alias{"A10080G", "A100-80GB"},
    Alias{"A10040GBSXM4", "A100-40GB"}, Alias{"A10040GBPCIE", "A100-40GB"},
    Alias{"A100PCIE40GB", "A100-40GB"}, Alias{"A10040G", "A100-40GB"},
    Alias{"MI300XOAM", "MI300X"},       Alias{"RTXPRO6000BLACKWELL", "RTX-PRO-6000"},
    Alias{"6000ADA", "RTX6000-Ada"},    Alias{"RTX6000ADA", "RTX6000-Ada"},
    Alias{"RTXA6000", "A6000"},         Alias{"RTXA5000", "A5000"},
    Alias{"RTXA4000", "A4000"},         Alias{"5090", "RTX5090"},
    Alias{"4090", "RTX4090"},           Alias{"3090", "RTX3090"},
    Alias{"V100", "V100-32GB"},         Alias{"V100", "V100-16GB"},
    Alias{"V100SXM2", "V100-32GB"},     Alias{"V100SXM2", "V100-16GB"},
    Alias{"V100PCIE", "V100-32GB"},     Alias{"V100PCIE", "V100-16GB"},
};

void drop_word(std::string& text, std::string_view word) {
  const size_t at = text.find(word);
  if (at != std::string::npos) text.erase(at, word.size());
}

std::string normalised(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) out += static_cast<char>(std::toupper(u));
  }
  for (const std::string_view word : {"NVIDIA", "GEFORCE", "TESLA", "INSTINCT", "AMD"}) drop_word(out, word);
  return out;
}

bool memory_fits(const GpuModel& model, std::int64_t memory) {
  // Clouds round, count in GB or report what the driver leaves free: 7 % covers all three.
  return std::llabs(model.memory - memory) <= model.memory / 100 * 7;
}

}  // namespace

std::span<const GpuModel> gpu_models() { return kModels; }

const GpuModel* find_gpu(std::string_view alias, std::int64_t memory) {
  const std::string wanted = normalised(alias);
  if (wanted.empty()) return nullptr;
  const GpuModel* found = nullptr;
  int candidates = 0;
  for (const GpuModel& model : kModels) {
    if (wanted == normalised(model.name) || wanted == normalised(model.product)) return &model;
    for (const Alias& a : kAliases) {
      if (a.alias != wanted || a.name != model.name) continue;
      ++candidates;
      if (memory != 0 && memory_fits(model, memory)) return &model;
      found = &model;
    }
  }
  return candidates == 1 ? found : nullptr;
}

}  // namespace spillway::model
