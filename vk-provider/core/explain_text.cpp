#include "vk-provider/core/explain_text.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "vk-provider/base/duration_text.hpp"

namespace spillway::core {
namespace {

std::string name_of(const model::Offer& offer) {
  return fmt::format("offer {} of provider {}", offer.id.str(), offer.provider.str());
}

std::string gibibytes(std::int64_t bytes) { return fmt::format("{}Gi", bytes / (std::int64_t{1} << 30U)); }

std::string cpus(std::int64_t milli) {
  return milli % 1000 == 0 ? fmt::format("{}", milli / 1000) : fmt::format("{}m", milli);
}

std::string cuda(int version) { return fmt::format("{}.{}", version / 100, version % 100); }

std::string dollars(const std::optional<base::Money>& cap) { return cap ? cap->to_dollars() : ""; }

std::string clock_text(base::TimePoint at, base::Now now) {
  return base::to_rfc3339(now.wall + std::chrono::duration_cast<base::WallTime::duration>(at - now.steady));
}

/// What has to be written instead, in the words of the annotations; empty if there is nothing to write.
std::string change_of(const NearMiss& miss, const Shape& s) {
  const model::Offer& o = miss.offer;
  const std::string price = dollars(o.price_per_hour);
  switch (miss.filter) {
    case Filter::kProvider: return fmt::format("providers {}", o.provider.str());
    case Filter::kCapacityType:
    case Filter::kSpotTolerance: return fmt::format("capacity-type {}", to_string(o.capacity_type));
    case Filter::kTrust: return fmt::format("trust {}", to_string(o.trust));
    case Filter::kGpuCount: return fmt::format("{} -> {} GPUs", s.gpu_count, o.gpu_count);
    case Filter::kGpuModel: return fmt::format("gpu-model {}", o.gpu_model);
    case Filter::kGpuMemory:
      return fmt::format("min-vram {} -> {}", gibibytes(std::max(s.node.min_gpu_memory, s.pod.min_vram)),
                         gibibytes(o.gpu_memory));
    case Filter::kCuda:
      return o.cuda_version == 0 ? "no cuda-min"
                                 : fmt::format("cuda-min {} -> {}", cuda(s.pod.cuda_min), cuda(o.cuda_version));
    case Filter::kRegion: return fmt::format("regions {}", o.region.str());
    case Filter::kCountry: return o.country.empty() ? "no countries" : fmt::format("countries {}", o.country.str());
    case Filter::kCpu: return fmt::format("cpu {} -> {}", cpus(s.cpu_milli), cpus(o.cpu_milli));
    case Filter::kMemory: return fmt::format("memory {} -> {}", gibibytes(s.memory), gibibytes(o.memory));
    case Filter::kNodePrice: return fmt::format("the node's maxPricePerHour {} -> {}", dollars(s.node_cap), price);
    case Filter::kPodPrice: return fmt::format("max-price {} -> {}", dollars(s.pod.max_price), price);
    case Filter::kBudget: return fmt::format("a budget with {} -> {} left per hour", miss.limit.to_dollars(), price);
    default: return "";
  }
}

/// What passes by itself.
std::string hindrance_of(const NearMiss& miss) {
  switch (miss.filter) {
    case Filter::kSoldOut: return "is sold out";
    case Filter::kStale: return "was not listed lately";
    case Filter::kHost: return "is on a machine that failed lately";
    case Filter::kCredentials: return "cannot be bought with our credentials";
    case Filter::kProviderSick: return "cannot be bought, because its provider does not answer";
    default: return std::string(to_string(miss.filter));
  }
}

}  // namespace

std::string rounded_dollars(base::Money amount) {
  constexpr double kMicros = 1e6;
  return fmt::format("${:.2f}", static_cast<double>(amount.micros()) / kMicros);
}

std::string per_cent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string rounded(base::Duration d) { return base::format_duration(std::chrono::round<std::chrono::seconds>(d)); }

std::string describe_choice(const Candidate& best, const std::vector<Candidate>& next) {
  std::string text = fmt::format("{} at ${}/h: expected cost {}, chance {}, starts in {}", name_of(best.offer),
                                 dollars(best.offer.price_per_hour), rounded_dollars(best.index), per_cent(best.chance),
                                 rounded(best.start));
  constexpr size_t kRoom = 800;  // an Event takes 1024 bytes
  for (size_t i = 0; i < next.size() && text.size() < kRoom; ++i) {
    text += fmt::format("{}{}/{} lost by {}", i == 0 ? "; next: " : ", ", next[i].offer.provider.str(),
                        next[i].offer.id.str(), to_string(next[i].lost_by));
  }
  return text;
}

std::string describe(const NearMiss& miss, const Shape& shape, base::Now now) {
  const std::string price = fmt::format(" at ${}/h", dollars(miss.offer.price_per_hour));
  const std::string change = change_of(miss, shape);
  if (!change.empty()) return fmt::format("{} admits {}{}", change, name_of(miss.offer), price);
  const std::string until = miss.until ? ", until " + clock_text(*miss.until, now) : "";
  return fmt::format("{}{} {}{}", name_of(miss.offer), price, hindrance_of(miss), until);
}

std::string describe(const Opening& opening, base::Now now) {
  if (opening.why == Closed::kNo) return "";
  return fmt::format("{} until {}", to_string(opening.why), clock_text(opening.at, now));
}

}  // namespace spillway::core
