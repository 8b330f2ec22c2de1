#include "vk-provider/model/gpu_catalog.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>
#include <unordered_map>

namespace spillway::model {
namespace {

constexpr std::int64_t operator""_gib(unsigned long long n) { return static_cast<std::int64_t>(n) << 30; }

// Memory as sold; what a driver reports is a little less.
constexpr std::array kModels = {
    GpuModel{"B300", "NVIDIA-B300", false, 270_gib},
    GpuModel{"B200", "NVIDIA-B200", false, 180_gib},
    GpuModel{"GB200", "NVIDIA-GB200", false, 186_gib},
    GpuModel{"GH200", "NVIDIA-GH200-480GB", false, 96_gib},
    GpuModel{"H200", "NVIDIA-H200", false, 141_gib},
    GpuModel{"H200-NVL", "NVIDIA-H200-NVL", false, 141_gib},
    GpuModel{"H100-NVL", "NVIDIA-H100-NVL", false, 94_gib},
    GpuModel{"H100", "NVIDIA-H100-80GB-HBM3", false, 80_gib},
    GpuModel{"H800", "NVIDIA-H800", false, 80_gib},
    GpuModel{"H20", "NVIDIA-H20", false, 96_gib},
    GpuModel{"A100-80GB", "NVIDIA-A100-SXM4-80GB", false, 80_gib},
    GpuModel{"A100-40GB", "NVIDIA-A100-SXM4-40GB", false, 40_gib},
    GpuModel{"A800", "NVIDIA-A800-SXM4-80GB", false, 80_gib},
    GpuModel{"MI355X", "AMD_Instinct_MI355X_OAM", true, 288_gib},
    GpuModel{"MI350X", "AMD_Instinct_MI350X_OAM", true, 288_gib},
    GpuModel{"MI325X", "AMD_Instinct_MI325X_OAM", true, 256_gib},
    GpuModel{"MI300X", "AMD_Instinct_MI300X_OAM", true, 192_gib},
    GpuModel{"MI250X", "AMD_Instinct_MI250X_OAM", true, 128_gib},
    GpuModel{"MI250", "AMD_Instinct_MI250_OAM", true, 128_gib},
    GpuModel{"MI210", "AMD_Instinct_MI210", true, 64_gib},
    GpuModel{"RTX-PRO-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", false, 96_gib},
    GpuModel{"RTX-PRO-5000", "NVIDIA-RTX-PRO-5000-Blackwell", false, 48_gib},
    GpuModel{"RTX-PRO-4500", "NVIDIA-RTX-PRO-4500-Blackwell", false, 32_gib},
    GpuModel{"RTX-PRO-4000", "NVIDIA-RTX-PRO-4000-Blackwell", false, 24_gib},
    GpuModel{"RTX6000-Ada", "NVIDIA-RTX-6000-Ada-Generation", false, 48_gib},
    GpuModel{"RTX5880-Ada", "NVIDIA-RTX-5880-Ada-Generation", false, 48_gib},
    GpuModel{"RTX5000-Ada", "NVIDIA-RTX-5000-Ada-Generation", false, 32_gib},
    GpuModel{"RTX4500-Ada", "NVIDIA-RTX-4500-Ada-Generation", false, 24_gib},
    GpuModel{"RTX4000-Ada", "NVIDIA-RTX-4000-Ada-Generation", false, 20_gib},
    GpuModel{"RTX4000-SFF-Ada", "NVIDIA-RTX-4000-SFF-Ada-Generation", false, 20_gib},
    GpuModel{"RTX2000-Ada", "NVIDIA-RTX-2000-Ada-Generation", false, 16_gib},
    GpuModel{"L40S", "NVIDIA-L40S", false, 48_gib},
    GpuModel{"L40", "NVIDIA-L40", false, 48_gib},
    GpuModel{"L20", "NVIDIA-L20", false, 48_gib},
    GpuModel{"L4", "NVIDIA-L4", false, 24_gib},
    GpuModel{"A40", "NVIDIA-A40", false, 48_gib},
    GpuModel{"A30", "NVIDIA-A30", false, 24_gib},
    GpuModel{"A16", "NVIDIA-A16", false, 16_gib},
    GpuModel{"A2", "NVIDIA-A2", false, 16_gib},
    GpuModel{"A6000", "NVIDIA-RTX-A6000", false, 48_gib},
    GpuModel{"A5000", "NVIDIA-RTX-A5000", false, 24_gib},
    GpuModel{"A4500", "NVIDIA-RTX-A4500", false, 20_gib},
    GpuModel{"A4000", "NVIDIA-RTX-A4000", false, 16_gib},
    GpuModel{"A10", "NVIDIA-A10", false, 24_gib},
    GpuModel{"A10G", "NVIDIA-A10G", false, 24_gib},
    GpuModel{"RTX5090", "NVIDIA-GeForce-RTX-5090", false, 32_gib},
    GpuModel{"RTX5080", "NVIDIA-GeForce-RTX-5080", false, 16_gib},
    GpuModel{"RTX5070Ti", "NVIDIA-GeForce-RTX-5070-Ti", false, 16_gib},
    GpuModel{"RTX5070", "NVIDIA-GeForce-RTX-5070", false, 12_gib},
    GpuModel{"RTX5060Ti-16GB", "NVIDIA-GeForce-RTX-5060-Ti-16GB", false, 16_gib},
    GpuModel{"RTX5060Ti-8GB", "NVIDIA-GeForce-RTX-5060-Ti-8GB", false, 8_gib},
    GpuModel{"RTX4090", "NVIDIA-GeForce-RTX-4090", false, 24_gib},
    GpuModel{"RTX4090D", "NVIDIA-GeForce-RTX-4090-D", false, 24_gib},
    GpuModel{"RTX4080S", "NVIDIA-GeForce-RTX-4080-SUPER", false, 16_gib},
    GpuModel{"RTX4080", "NVIDIA-GeForce-RTX-4080", false, 16_gib},
    GpuModel{"RTX4070TiS", "NVIDIA-GeForce-RTX-4070-Ti-SUPER", false, 16_gib},
    GpuModel{"RTX4070Ti", "NVIDIA-GeForce-RTX-4070-Ti", false, 12_gib},
    GpuModel{"RTX4070S", "NVIDIA-GeForce-RTX-4070-SUPER", false, 12_gib},
    GpuModel{"RTX4070", "NVIDIA-GeForce-RTX-4070", false, 12_gib},
    GpuModel{"RTX4060Ti-16GB", "NVIDIA-GeForce-RTX-4060-Ti-16GB", false, 16_gib},
    GpuModel{"RTX4060Ti-8GB", "NVIDIA-GeForce-RTX-4060-Ti-8GB", false, 8_gib},
    GpuModel{"RTX4060", "NVIDIA-GeForce-RTX-4060", false, 8_gib},
    GpuModel{"RTX3090Ti", "NVIDIA-GeForce-RTX-3090-Ti", false, 24_gib},
    GpuModel{"RTX3090", "NVIDIA-GeForce-RTX-3090", false, 24_gib},
    GpuModel{"RTX3080Ti", "NVIDIA-GeForce-RTX-3080-Ti", false, 12_gib},
    GpuModel{"RTX3080", "NVIDIA-GeForce-RTX-3080", false, 10_gib},
    GpuModel{"RTX3070Ti", "NVIDIA-GeForce-RTX-3070-Ti", false, 8_gib},
    GpuModel{"RTX3070", "NVIDIA-GeForce-RTX-3070", false, 8_gib},
    GpuModel{"RTX3060", "NVIDIA-GeForce-RTX-3060", false, 12_gib},
    GpuModel{"RTX3060Ti", "NVIDIA-GeForce-RTX-3060-Ti", false, 8_gib},
    GpuModel{"RTX2080Ti", "NVIDIA-GeForce-RTX-2080-Ti", false, 11_gib},
    GpuModel{"RTX2080", "NVIDIA-GeForce-RTX-2080", false, 8_gib},
    GpuModel{"GTX1080Ti", "NVIDIA-GeForce-GTX-1080-Ti", false, 11_gib},
    GpuModel{"GTX1080", "NVIDIA-GeForce-GTX-1080", false, 8_gib},
    GpuModel{"QuadroRTX8000", "Quadro-RTX-8000", false, 48_gib},
    GpuModel{"QuadroRTX6000", "Quadro-RTX-6000", false, 24_gib},
    GpuModel{"QuadroRTX5000", "Quadro-RTX-5000", false, 16_gib},
    GpuModel{"QuadroRTX4000", "Quadro-RTX-4000", false, 8_gib},
    GpuModel{"V100-32GB", "Tesla-V100-SXM2-32GB", false, 32_gib},
    GpuModel{"V100-16GB", "Tesla-V100-SXM2-16GB", false, 16_gib},
    GpuModel{"T4", "Tesla-T4", false, 16_gib},
    GpuModel{"P100-16GB", "Tesla-P100-PCIE-16GB", false, 16_gib},
    GpuModel{"P100-12GB", "Tesla-P100-PCIE-12GB", false, 12_gib},
    GpuModel{"P40", "Tesla-P40", false, 24_gib},
    GpuModel{"P4", "Tesla-P4", false, 8_gib},
    GpuModel{"M60", "Tesla-M60", false, 8_gib},
    GpuModel{"K80", "Tesla-K80", false, 12_gib},
};

// Plain names (see `plain`) that are not the plain canonical name or product. One that stands here for several models,
// or that is also a model's own name, needs the memory to decide.
struct Alias {
  std::string_view alias;
  std::string_view name;
};
constexpr std::array kAliases = {
    Alias{"A100", "A100-80GB"},
    Alias{"A100", "A100-40GB"},
    Alias{"A100X", "A100-80GB"},
    Alias{"V100", "V100-32GB"},
    Alias{"V100", "V100-16GB"},
    Alias{"V100S", "V100-32GB"},
    Alias{"P100", "P100-16GB"},
    Alias{"P100", "P100-12GB"},
    Alias{"RTXA4000", "A4000"},
    Alias{"RTXA4500", "A4500"},
    Alias{"RTXA5000", "A5000"},
    Alias{"RTXA6000", "A6000"},
    Alias{"RTX4060TI", "RTX4060Ti-16GB"},
    Alias{"RTX4060TI", "RTX4060Ti-8GB"},
    Alias{"RTX5060TI", "RTX5060Ti-16GB"},
    Alias{"RTX5060TI", "RTX5060Ti-8GB"},
    Alias{"RTX4070STI", "RTX4070TiS"},
    Alias{"RTX4070SUPER", "RTX4070S"},
    Alias{"RTX4080SUPER", "RTX4080S"},
    Alias{"RTX6000", "RTX6000-Ada"},
    Alias{"RTX6000", "QuadroRTX6000"},
    Alias{"RTX5000", "RTX5000-Ada"},
    Alias{"RTX5000", "QuadroRTX5000"},
    Alias{"RTX4000", "RTX4000-Ada"},
    Alias{"RTX4000", "QuadroRTX4000"},
    Alias{"RTX8000", "QuadroRTX8000"},
    Alias{"QRTX8000", "QuadroRTX8000"},
    Alias{"QRTX6000", "QuadroRTX6000"},
    Alias{"QRTX5000", "QuadroRTX5000"},
    Alias{"QRTX4000", "QuadroRTX4000"},
    Alias{"6000ADA", "RTX6000-Ada"},
    Alias{"RTX4000ADASFF", "RTX4000-SFF-Ada"},
    Alias{"RTXPRO6000BLACKWELL", "RTX-PRO-6000"},
    Alias{"RTXPRO6000BLACKWELLWORKSTATIONEDITION", "RTX-PRO-6000"},
    Alias{"RTXPRO6000SE", "RTX-PRO-6000"},
    Alias{"RTXPRO6000WS", "RTX-PRO-6000"},
    Alias{"RTXPRO6000S", "RTX-PRO-6000"},
    Alias{"RTXPRO5000BLACKWELL", "RTX-PRO-5000"},
    Alias{"RTXPRO4500BLACKWELL", "RTX-PRO-4500"},
    Alias{"RTXPRO4000BLACKWELL", "RTX-PRO-4000"},
    Alias{"5090", "RTX5090"},
    Alias{"5080", "RTX5080"},
    Alias{"4090", "RTX4090"},
    Alias{"4080", "RTX4080"},
    Alias{"3090TI", "RTX3090Ti"},
    Alias{"3090", "RTX3090"},
    Alias{"3080TI", "RTX3080Ti"},
    Alias{"3080", "RTX3080"},
    Alias{"2080TI", "RTX2080Ti"},
    Alias{"2080", "RTX2080"},
    Alias{"1080TI", "GTX1080Ti"},
    Alias{"1080", "GTX1080"},
};

/// Upper case, letters and digits only, without the words of vendors.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) out += static_cast<char>(std::toupper(u));
  }
  for (const std::string_view word : {"NVIDIA", "GEFORCE", "TESLA", "INSTINCT", "AMD", "GENERATION"}) {
    const size_t at = out.find(word);
    if (at != std::string::npos) out.erase(at, word.size());
  }
  return out;
}

struct Lookup {
  std::unordered_map<std::string_view, const GpuModel*> by_name;
  std::unordered_map<std::string, std::vector<const GpuModel*>> by_plain_name;

  Lookup() {
    for (const GpuModel& model : kModels) {
      by_name.emplace(model.name, &model);
      add(plain(model.name), model);
      add(plain(model.product), model);
    }
    for (const Alias& alias : kAliases) add(std::string(alias.alias), *by_name.at(alias.name));
  }
  void add(std::string name, const GpuModel& model) {
    std::vector<const GpuModel*>& models = by_plain_name[std::move(name)];
    if (std::ranges::find(models, &model) == models.end()) models.push_back(&model);
  }
};

const Lookup& lookup() {
  static const Lookup all;
  return all;
}

/// How a card is plugged in, cooled and wired.
constexpr std::array<std::string_view, 12> kFittings = {"PCIE", "SXM",  "SXM2", "SXM3", "SXM4",   "SXM5",
                                                        "HBM2", "HBM3", "OAM",  "HGX",  "NVLINK", "FHHL"};

/// `H100SXM5` without its fitting, if what is left is a name; empty for a fitting alone.
std::string_view without_fitting(std::string_view word) {
  for (const std::string_view fitting : kFittings) {
    if (!word.ends_with(fitting)) continue;
    const std::string_view rest = word.substr(0, word.size() - fitting.size());
    if (rest.empty() || lookup().by_plain_name.contains(std::string(rest))) return rest;
  }
  return word;
}

/// The memory that a word tells: "80GB", "80G", "80"; 0 if it tells none.
std::int64_t told_memory(std::string_view word) {
  std::int64_t gib = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gib);
  const std::string_view unit = word.substr(static_cast<size_t>(end - word.data()));
  if (error != std::errc{} || gib <= 0 || gib > 1024) return 0;
  return unit.empty() || unit == "G" || unit == "GB" || unit == "GIB" ? gib << 30 : 0;
}

/// A name word by word, with fittings and memory set aside.
struct Words {
  std::string name;
  std::int64_t memory = 0;
};
Words words_of(std::string_view text) {
  Words out;
  std::string word;
  const auto take = [&] {
    const std::string p(without_fitting(plain(word)));
    word.clear();
    if (p.empty() || (out.memory > 0 && (p == "GB" || p == "G"))) return;
    const std::int64_t memory = out.name.empty() ? 0 : told_memory(p);
    // "RTX 4090" is no card of 4090 GB, and "RTX 3060" none of 3060.
    if (memory > 0 && lookup().by_plain_name.contains(out.name)) {
      out.memory = memory;
    } else {
      out.name += p;
    }
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else {
      take();
    }
  }
  take();
  return out;
}

bool memory_fits(const GpuModel& model, std::int64_t memory) {
  // Clouds round, count in GB or report what the driver leaves free: 7 % covers all three.
  return std::llabs(model.memory - memory) <= model.memory / 100 * 7;
}

}  // namespace

std::span<const GpuModel> gpu_models() { return kModels; }

const GpuModel* gpu_named(std::string_view name) {
  const auto it = lookup().by_name.find(name);
  return it == lookup().by_name.end() ? nullptr : it->second;
}

std::vector<const GpuModel*> find_gpus(std::string_view alias) {
  const auto& known = lookup().by_plain_name;
  if (const auto whole = known.find(plain(alias)); whole != known.end()) return whole->second;
  const Words words = words_of(alias);
  const auto it = known.find(words.name);
  if (words.name.empty() || it == known.end()) return {};
  std::vector<const GpuModel*> models = it->second;
  if (words.memory > 0) std::erase_if(models, [&](const GpuModel* m) { return !memory_fits(*m, words.memory); });
  return models;
}

const GpuModel* find_gpu(std::string_view alias, std::int64_t memory) {
  std::vector<const GpuModel*> models = find_gpus(alias);
  if (models.size() > 1) std::erase_if(models, [&](const GpuModel* m) { return !memory_fits(*m, memory); });
  return models.size() == 1 ? models.front() : nullptr;
}

}  // namespace spillway::model
