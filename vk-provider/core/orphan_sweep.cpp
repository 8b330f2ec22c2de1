#include "vk-provider/core/orphan_sweep.hpp"

namespace spillway::core {

std::vector<OrphanSweep::Orphan> OrphanSweep::look(const base::ProviderName& provider,
                                                   const std::vector<model::Instance>& listing,
                                                   const std::function<bool(const base::PodUid&, int attempt)>& owned,
                                                   base::TimePoint now) {
  std::vector<Orphan> due;
  auto& candidates = candidates_[provider];
  std::unordered_map<std::string, Seen> still;
  for (const model::Instance& instance : listing) {
    const auto owner = ownership_.parse(instance.tag);
    if (!owner || owned(owner->uid, owner->attempt)) continue;
    const auto it = candidates.find(instance.ref.id.str());
    Seen seen = it == candidates.end() ? Seen{now, 0} : it->second;
    ++seen.listings;
    if (seen.listings >= 2 && now - seen.first >= grace_) due.push_back({instance, *owner});
    still.emplace(instance.ref.id.str(), seen);
  }
  candidates = std::move(still);
  return due;
}

}  // namespace spillway::core
