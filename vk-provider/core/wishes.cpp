#include "vk-provider/core/wishes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "vk-provider/base/duration_text.hpp"
#include "vk-provider/base/nearest.hpp"
#include "vk-provider/model/gpu_catalog.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::core {
namespace {

using model::CapacityType;
using model::Tier;
using model::Trust;

constexpr std::array kUserAnnotations{
    model::kAnnotationPublicPorts,  model::kAnnotationSendToken,
    model::kAnnotationGpuModel,     model::kAnnotationMinVram,
    model::kAnnotationCudaMin,      model::kAnnotationMaxPrice,
    model::kAnnotationValueOfTime,  model::kAnnotationExpectedRuntime,
    model::kAnnotationCapacityType, model::kAnnotationCheckpointInterval,
    model::kAnnotationImageSize,    model::kAnnotationRegions,
    model::kAnnotationCountries,    model::kAnnotationProviders,
    model::kAnnotationTier,         model::kAnnotationTrust,
    model::kAnnotationDoNotDrain,   model::kAnnotationDraining,
};

constexpr std::int64_t kGib = std::int64_t{1} << 30;
// No GPU has more, and no image; what is beyond is a slip of the pen.
constexpr std::int64_t kMaxVram = 4096 * kGib;
constexpr std::int64_t kMaxImage = 16384 * kGib;
constexpr std::int64_t kMaxMicros = 100'000'000'000;  // $100,000 an hour

template <class T>
struct Word {
  std::string_view word;
  T value;
};
constexpr std::array kCapacityTypes{Word<CapacityType>{"on-demand", CapacityType::kOnDemand},
                                    Word<CapacityType>{"spot", CapacityType::kSpot},
                                    Word<CapacityType>{"reserved", CapacityType::kReserved}};
constexpr std::array kTiers{Word<Tier>{"batch", Tier::kBatch}, Word<Tier>{"standard", Tier::kStandard},
                            Word<Tier>{"interactive", Tier::kInteractive}, Word<Tier>{"critical", Tier::kCritical}};
constexpr std::array kTrusts{Word<Trust>{"datacenter", Trust::kDatacenter},
                             Word<Trust>{"community", Trust::kCommunity}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

class Reader {
 public:
  Reader(const std::map<std::string, std::string>& annotations, const model::GpuNeed& gpu, ReadWishes& out)
      : annotations_(annotations), gpu_(gpu), out_(out) {}

  void read() {
    model::Wishes& w = out_.wishes;
    read_gpu_models(w);
    each_value(model::kAnnotationMinVram, [&](std::string_view v) { return read_vram(v, w); });
    each_value(model::kAnnotationCudaMin, [&](std::string_view v) { return read_cuda(v, w); });
    each_value(model::kAnnotationMaxPrice, [&](std::string_view v) { return read_money(v, w.max_price, 1); });
    each_value(model::kAnnotationValueOfTime, [&](std::string_view v) { return read_money(v, w.value_of_time, 0); });
    each_value(model::kAnnotationExpectedRuntime, [&](std::string_view v) {
      w.expected_runtime = base::parse_duration(v);
      const bool good = w.expected_runtime && w.expected_runtime->count() > 0;
      return good ? std::string() : "a length of time above 0, such as 90m or 1h30m";
    });
    each_value(model::kAnnotationCheckpointInterval, [&](std::string_view v) {
      w.checkpoint_interval = base::parse_duration(v);
      return w.checkpoint_interval ? std::string() : "a length of time such as 30m; 0s if nothing is ever lost";
    });
    each_value(model::kAnnotationImageSize, [&](std::string_view v) {
      const auto bytes = model::quantity_value(v);
      w.image_size = bytes.value_or(0);
      const bool good = bytes && *bytes > 0 && *bytes <= kMaxImage;
      return good ? std::string() : "a size such as 8Gi, at most 16Ti";
    });
    each_word(model::kAnnotationCapacityType,
              [&](std::string_view v) { return read_word(v, kCapacityTypes, w.capacity_types); });
    each_word(model::kAnnotationRegions, [&](std::string_view v) {
      w.regions.emplace_back(v);
      return std::string();
    });
    each_word(model::kAnnotationCountries, [&](std::string_view v) { return read_country(v, w); });
    each_word(model::kAnnotationProviders, [&](std::string_view v) {
      w.providers.emplace_back(std::string(v));
      return std::string();
    });
    each_value(model::kAnnotationTier, [&](std::string_view v) { return read_choice(v, kTiers, w.tier); });
    each_value(model::kAnnotationTrust, [&](std::string_view v) { return read_choice(v, kTrusts, w.trust); });
    refuse_contradictions(w);
  }

 private:
  void fault(std::string_view key, std::string why) { out_.faults.push_back({annotation_path(key), std::move(why)}); }
  const std::string* find(std::string_view key) const {
    const auto it = annotations_.find(std::string(key));
    return it == annotations_.end() ? nullptr : &it->second;
  }

  /// `f` returns what would be allowed, or nothing if it took the value.
  template <class F>
  void each_value(std::string_view key, F f) {
    const std::string* const value = find(key);
    if (value == nullptr) return;
    const std::string allowed = f(trim(*value));
    if (!allowed.empty()) fault(key, fmt::format("found '{}'; allowed: {}", *value, allowed));
  }
  /// The same for each word of a list with commas between.
  template <class F>
  void each_word(std::string_view key, F f) {
    const std::string* const value = find(key);
    if (value == nullptr) return;
    std::string_view rest = *value;
    for (;;) {
      const size_t comma = rest.find(',');
      const std::string_view word = trim(rest.substr(0, comma));
      const std::string allowed = word.empty() ? "words with commas between, none of them empty" : f(word);
      if (!allowed.empty()) fault(key, fmt::format("found '{}'; allowed: {}", word, allowed));
      if (comma == std::string_view::npos) return;
      rest = rest.substr(comma + 1);
    }
  }

  template <class T, size_t N>
  static std::string words_of(const std::array<Word<T>, N>& known) {
    std::string text;
    for (const Word<T>& k : known) text += (text.empty() ? "" : ", ") + std::string(k.word);
    return text;
  }
  template <class T, size_t N>
  static std::string read_word(std::string_view v, const std::array<Word<T>, N>& known, std::vector<T>& out) {
    const auto it = std::ranges::find(known, v, &Word<T>::word);
    if (it == known.end()) return words_of(known);
    if (std::ranges::find(out, it->value) == out.end()) out.push_back(it->value);
    return {};
  }
  template <class T, size_t N>
  static std::string read_choice(std::string_view v, const std::array<Word<T>, N>& known, std::optional<T>& out) {
    const auto it = std::ranges::find(known, v, &Word<T>::word);
    if (it == known.end()) return "one of " + words_of(known);
    out = it->value;
    return {};
  }
  static std::string read_money(std::string_view v, std::optional<base::Money>& out, std::int64_t least) {
    out = base::Money::from_dollars(v);
    if (out && out->micros() >= least && out->micros() <= kMaxMicros) return {};
    out.reset();
    return fmt::format("dollars per hour {} 0 and at most 100000, such as 2.50", least > 0 ? "above" : "from");
  }
  static std::string read_vram(std::string_view v, model::Wishes& w) {
    const auto bytes = model::quantity_value(v);
    if (!bytes || *bytes < kGib / 2 || *bytes > kMaxVram) return "the memory of one GPU, such as 24Gi";
    w.min_vram = *bytes;
    return {};
  }
  static std::string read_cuda(std::string_view v, model::Wishes& w) {
    const size_t dot = v.find('.');
    const auto number = [](std::string_view text) -> std::optional<int> {
      int n = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (error != std::errc{} || end != text.data() + text.size() || n < 0 || n > 99) return std::nullopt;
      return n;
    };
    const auto major = number(v.substr(0, dot));
    const auto minor = dot == std::string_view::npos ? std::optional(0) : number(v.substr(dot + 1));
    if (!major || !minor || *major == 0) return "a version of CUDA, such as 12.4";
    w.cuda_min = *major * 100 + *minor;
    return {};
  }
  static std::string read_country(std::string_view v, model::Wishes& w) {
    std::string code;
    for (const char c : v) code += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    const bool letters = std::ranges::all_of(code, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (code == "UK") return "codes of ISO 3166 with two letters; that of the United Kingdom is GB";
    if (code.size() != 2 || !letters) return "codes of ISO 3166 with two letters, such as DE or US";
    w.countries.push_back(std::move(code));
    return {};
  }

  void read_gpu_models(model::Wishes& w) {
    each_word(model::kAnnotationGpuModel, [&](std::string_view v) -> std::string {
      const auto models = model::find_gpus(v);
      for (const model::GpuModel* m : models) {
        if (std::ranges::find(w.gpu_models, m->name) == w.gpu_models.end()) w.gpu_models.emplace_back(m->name);
      }
      if (!models.empty()) return {};
      std::vector<std::string_view> names;
      for (const model::GpuModel& m : model::gpu_models()) names.push_back(m.name);
      return fmt::format("known GPU models; did you mean {}?", base::nearest_of(v, names));
    });
  }

  /// What cannot both be had.
  void refuse_contradictions(model::Wishes& w) {
    for (const std::string_view key :
         {model::kAnnotationGpuModel, model::kAnnotationMinVram, model::kAnnotationCudaMin}) {
      if (gpu_.count == 0 && find(key) != nullptr) {
        fault(key,
              "contradicts the containers, which ask for no GPU; allowed: only with nvidia.com/gpu or amd.com/gpu "
              "in their resources");
      }
    }
    if (gpu_.count == 0) return;
    const bool amd = gpu_.resource == model::kResourceAmdGpu;
    if (amd && w.cuda_min > 0) fault(model::kAnnotationCudaMin, "contradicts amd.com/gpu; CUDA runs on NVIDIA only");
    if (w.gpu_models.empty()) return;
    std::erase_if(w.gpu_models, [&](const std::string& name) { return model::gpu_named(name)->amd != amd; });
    if (w.gpu_models.empty()) {
      return fault(model::kAnnotationGpuModel,
                   fmt::format("contradicts {}, which the containers ask for; allowed: models of that vendor",
                               gpu_.resource.str()));
    }
    std::erase_if(w.gpu_models, [&](const std::string& name) { return model::gpu_named(name)->memory < w.min_vram; });
    if (w.gpu_models.empty()) {
      fault(model::kAnnotationMinVram, fmt::format("found '{}', more than any GPU of {} has",
                                                   *find(model::kAnnotationMinVram), model::kAnnotationGpuModel));
    }
  }

  const std::map<std::string, std::string>& annotations_;
  const model::GpuNeed& gpu_;
  ReadWishes& out_;
};

}  // namespace

std::span<const std::string_view> user_annotations() { return kUserAnnotations; }

std::string annotation_path(std::string_view key) { return fmt::format("metadata.annotations[{}]", key); }

ReadWishes read_wishes(const std::map<std::string, std::string>& annotations, const model::GpuNeed& gpu) {
  ReadWishes out;
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(model::kUserPrefix) || std::ranges::find(kUserAnnotations, key) != kUserAnnotations.end()) {
      continue;
    }
    out.faults.push_back(
        {annotation_path(key), fmt::format("unknown key; did you mean {}?", base::nearest_of(key, kUserAnnotations))});
  }
  Reader(annotations, gpu, out).read();
  return out;
}

}  // namespace spillway::core
