#include "vk-provider/core/selector.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace spillway::core {
namespace {

template <class T>
bool allows(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

bool is_nvidia(const model::Offer& offer) { return !offer.gpu_model.starts_with("MI"); }

/// Empty if the offer fits; otherwise the reason, as it reads after a count.
std::string why_not(const model::Offer& offer, const Requirements& needs, const model::NodeProfile& profile,
                    const std::vector<ProviderAbility>& providers) {
  const model::OfferFilter& filter = profile.offers;
  if (!allows(filter.providers, offer.provider)) return "of a provider that the node does not use";
  const auto provider = std::find_if(providers.begin(), providers.end(),
                                     [&](const ProviderAbility& p) { return p.name == offer.provider.str(); });
  if (provider == providers.end() || !provider->capabilities.covers(needs.capabilities)) {
    return "of a provider that cannot honour the pod";
  }
  if (!allows(filter.regions, offer.region.str())) return "in another region";
  if (!allows(filter.capacity_types, offer.capacity_type)) return fmt::format("{}", to_string(offer.capacity_type));
  if (offer.gpu_count < needs.gpu_count) return "too few GPUs";
  if (needs.gpu_count == 0 && offer.gpu_count > 0) return "with GPUs that the pod does not ask for";
  if (needs.gpu_count > 0) {
    if (!allows(filter.gpu_models, offer.gpu_model)) return "another GPU model";
    if (filter.min_gpu_memory > 0 && offer.gpu_memory < filter.min_gpu_memory) return "too little GPU memory";
    if (is_nvidia(offer) != (needs.gpu_resource == "nvidia.com/gpu")) return "GPUs of another vendor";
  }
  if (needs.cpu_milli > 0 && offer.cpu_milli > 0 && offer.cpu_milli < needs.cpu_milli) return "too little CPU";
  if (needs.memory > 0 && offer.memory > 0 && offer.memory < needs.memory) return "too little memory";
  if (!offer.price_per_hour) return "without a price";
  if (profile.max_price_per_hour && *offer.price_per_hour > *profile.max_price_per_hour) {
    return fmt::format("over the price cap of ${}", profile.max_price_per_hour->to_dollars());
  }
  if (!offer.available) return "sold out";
  return {};
}

std::string explain(const std::map<std::string, int>& reasons, size_t all) {
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(count, reason);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text = fmt::format("0 of {} offers fit", all);
  for (size_t i = 0; i < sorted.size(); ++i)
    text += fmt::format("{} {} {}", i == 0 ? ":" : ",", sorted[i].first, sorted[i].second);
  return text;
}

}  // namespace

Selection select_offer(const Requirements& requirements, const model::NodeProfile& profile,
                       const std::vector<ProviderAbility>& providers, const std::vector<OfferBook::Entry>& offers,
                       const std::vector<base::OfferId>& tried, base::TimePoint now) {
  Selection selection;
  std::map<std::string, int> reasons;
  // An offer that this pod failed on comes last; then price, then fewer GPUs, then names, so that the order is total.
  const auto rank = [&](const model::Offer& o) {
    const bool failed = std::find(tried.begin(), tried.end(), o.id) != tried.end();
    return std::make_tuple(failed, o.price_per_hour->micros(), o.gpu_count, o.provider.str(), o.id.str());
  };
  const model::Offer* best = nullptr;
  for (const OfferBook::Entry& entry : offers) {
    std::string reason = why_not(*entry.offer, requirements, profile, providers);
    if (reason.empty() && entry.stale) reason = "not confirmed for 5 minutes";
    if (reason.empty() && entry.cooled_until > now) {
      reason = "cooling down after a failure";
      if (!selection.again_at || entry.cooled_until < *selection.again_at) selection.again_at = entry.cooled_until;
    }
    if (!reason.empty()) {
      ++reasons[reason];
    } else if (best == nullptr || rank(*entry.offer) < rank(*best)) {
      best = entry.offer;
    }
  }
  if (best != nullptr) {
    selection.winner = *best;
  } else {
    selection.why_none = explain(reasons, offers.size());
  }
  return selection;
}

}  // namespace spillway::core
