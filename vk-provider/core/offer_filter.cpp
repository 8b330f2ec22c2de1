#include "vk-provider/core/offer_filter.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vk-provider/model/gpu_catalog.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

template <class T, class U>
bool allows(const std::vector<T>& list, const U& value) {
  return list.empty() || std::ranges::any_of(list, [&](const T& item) { return item == value; });
}

bool is_amd(const model::Offer& offer) {
  const model::GpuModel* const gpu = model::gpu_named(offer.gpu_model);
  return gpu != nullptr && gpu->amd;
}

Filter filter_of_gpus(const model::Offer& o, const Shape& s) {
  if (o.gpu_count < s.gpu_count) return Filter::kGpuCount;
  if (s.gpu_count == 0) return o.gpu_count > 0 ? Filter::kNoGpuWanted : Filter::kCount;
  if (is_amd(o) != (s.gpu_resource == model::kResourceAmdGpu)) return Filter::kVendor;
  if (!allows(s.node.gpu_models, o.gpu_model) || !allows(s.pod.gpu_models, o.gpu_model)) return Filter::kGpuModel;
  if (o.gpu_memory < std::max(s.node.min_gpu_memory, s.pod.min_vram)) return Filter::kGpuMemory;
  if (o.cuda_version < s.pod.cuda_min) return Filter::kCuda;
  return Filter::kCount;
}

std::string dollars(const std::optional<base::Money>& cap) { return cap ? cap->to_dollars() : "0.00"; }

}  // namespace

Filter filter_of_provider(const base::ProviderName& provider, const Shape& s, const ProviderAbility* ability) {
  if (!allows(s.node.providers, provider) || !allows(s.pod.providers, provider)) return Filter::kProvider;
  if (ability == nullptr || !ability->capabilities.covers(s.capabilities)) return Filter::kCapability;
  return Filter::kCount;
}

Filter filter_of_kind(const model::Offer& o, const Shape& s) {
  if (!allows(s.node.capacity_types, o.capacity_type) || !allows(s.pod.capacity_types, o.capacity_type)) {
    return Filter::kCapacityType;
  }
  if (o.capacity_type == model::CapacityType::kSpot && !s.spot_tolerated) return Filter::kSpotTolerance;
  if (o.trust == model::Trust::kCommunity && !s.strangers_tolerated) return Filter::kTrust;
  return filter_of_gpus(o, s);
}

Filter filter_of_offer(const model::Offer& o, const Shape& s) {
  if (!allows(s.node.regions, o.region) || !allows(s.pod.regions, o.region)) return Filter::kRegion;
  if (!allows(s.pod.countries, o.country)) return Filter::kCountry;
  // 0 is "unknown": machines of clouds have something.
  if (s.cpu_milli > 0 && o.cpu_milli > 0 && o.cpu_milli < s.cpu_milli) return Filter::kCpu;
  if (s.memory > 0 && o.memory > 0 && o.memory < s.memory) return Filter::kMemory;
  if (!o.price_per_hour) return Filter::kNoPrice;
  if (s.node_cap && *o.price_per_hour > *s.node_cap) return Filter::kNodePrice;
  if (s.pod.max_price && *o.price_per_hour > *s.pod.max_price) return Filter::kPodPrice;
  if (!o.available) return Filter::kSoldOut;
  return Filter::kCount;
}

std::optional<Shape> without(Filter filter, const Shape& shape) {
  Shape out = shape;
  switch (filter) {
    case Filter::kProvider:
      out.node.providers.clear();
      out.pod.providers.clear();
      return out;
    case Filter::kCapacityType:
      out.node.capacity_types.clear();
      out.pod.capacity_types.clear();
      return out;
    case Filter::kSpotTolerance: out.spot_tolerated = true; return out;
    case Filter::kTrust: out.strangers_tolerated = true; return out;
    case Filter::kGpuCount: out.gpu_count = 1; return out;
    case Filter::kGpuModel:
      out.node.gpu_models.clear();
      out.pod.gpu_models.clear();
      return out;
    case Filter::kGpuMemory:
      out.node.min_gpu_memory = 0;
      out.pod.min_vram = 0;
      return out;
    case Filter::kCuda: out.pod.cuda_min = 0; return out;
    case Filter::kRegion:
      out.node.regions.clear();
      out.pod.regions.clear();
      return out;
    case Filter::kCountry: out.pod.countries.clear(); return out;
    case Filter::kCpu: out.cpu_milli = 0; return out;
    case Filter::kMemory: out.memory = 0; return out;
    case Filter::kNodePrice: out.node_cap.reset(); return out;
    case Filter::kPodPrice: out.pod.max_price.reset(); return out;
    default: return std::nullopt;
  }
}

std::string_view to_string(Filter filter) {
  switch (filter) {
    case Filter::kProvider: return "provider";
    case Filter::kCapability: return "capability";
    case Filter::kCapacityType: return "capacity_type";
    case Filter::kSpotTolerance: return "spot_not_tolerated";
    case Filter::kTrust: return "trust";
    case Filter::kGpuCount: return "gpu_count";
    case Filter::kNoGpuWanted: return "no_gpu_wanted";
    case Filter::kVendor: return "gpu_vendor";
    case Filter::kGpuModel: return "gpu_model";
    case Filter::kGpuMemory: return "gpu_memory";
    case Filter::kCuda: return "cuda";
    case Filter::kRegion: return "region";
    case Filter::kCountry: return "country";
    case Filter::kCpu: return "cpu";
    case Filter::kMemory: return "memory";
    case Filter::kNoPrice: return "no_price";
    case Filter::kNodePrice: return "node_price";
    case Filter::kPodPrice: return "pod_price";
    case Filter::kSoldOut: return "sold_out";
    case Filter::kStale: return "stale";
    case Filter::kBudget: return "budget";
    case Filter::kHost: return "host";
    case Filter::kRefused: return "refused";
    case Filter::kChanged: return "changed";
    case Filter::kCredentials: return "credentials";
    case Filter::kProviderSick: return "provider_broken";
    case Filter::kCount: break;
  }
  return "";
}

std::string describe(Filter filter, const Shape& shape) {
  switch (filter) {
    case Filter::kProvider: return "of a provider that the node or the pod does not use";
    case Filter::kCapability: return "of a provider that cannot honour the pod";
    case Filter::kCapacityType: return "of another capacity type";
    case Filter::kSpotTolerance: return "spot, which the pod does not tolerate";
    case Filter::kTrust: return "of strangers, while the pod carries secrets or asks for a data centre";
    case Filter::kGpuCount: return "too few GPUs";
    case Filter::kNoGpuWanted: return "with GPUs that the pod does not ask for";
    case Filter::kVendor: return "GPUs of another vendor";
    case Filter::kGpuModel: return "another GPU model";
    case Filter::kGpuMemory: return "too little GPU memory";
    case Filter::kCuda: return "too old a CUDA, or an unknown one";
    case Filter::kRegion: return "in another region";
    case Filter::kCountry: return "in another country, or an unknown one";
    case Filter::kCpu: return "too little CPU";
    case Filter::kMemory: return "too little memory";
    case Filter::kNoPrice: return "without a price";
    case Filter::kNodePrice: return fmt::format("over the price cap of ${}", dollars(shape.node_cap));
    case Filter::kPodPrice: return fmt::format("over the pod's maximum of ${}", dollars(shape.pod.max_price));
    case Filter::kSoldOut: return "sold out";
    case Filter::kStale: return "not confirmed for 5 minutes";
    case Filter::kBudget: return "over what a budget has left";
    case Filter::kHost: return "on a machine that failed lately";
    case Filter::kRefused: return "refused such pods before";
    case Filter::kChanged: return "changed since they were listed";
    case Filter::kCredentials: return "of a provider that refuses our credentials";
    case Filter::kProviderSick: return "of a provider that does not answer";
    case Filter::kCount: break;
  }
  return "";
}

std::string explain_counts(const FilterCounts& counts, size_t all, const Shape& shape) {
  std::vector<std::pair<std::uint32_t, std::string>> sorted;
  std::uint32_t rejected = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts.at(i) == 0) continue;
    rejected += counts.at(i);
    sorted.emplace_back(counts.at(i), describe(static_cast<Filter>(i), shape));
  }
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text = fmt::format("{} of {} offers fit", all - rejected, all);
  for (size_t i = 0; i < sorted.size(); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? ":" : ",", sorted[i].first, sorted[i].second);
  }
  return text;
}

}  // namespace spillway::core
