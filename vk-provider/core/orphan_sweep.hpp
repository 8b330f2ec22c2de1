// Which instances nobody owns any more. Pure; owned by sweep_controller.
//
// An orphan is terminated only if two complete listings in a row show it, it was first seen longer ago than the grace
// period, and a live look at the API server says that its pod does not exist. An incomplete listing changes nothing.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/ownership.hpp"

namespace spillway::core {

class OrphanSweep {
 public:
  OrphanSweep(model::Ownership ownership, base::Duration grace) : ownership_(std::move(ownership)), grace_(grace) {}

  struct Orphan {
    model::Instance instance;
    model::Ownership::Parsed owner;
  };

  /// Takes one complete listing of one provider in. `owned(uid, attempt)` says whether a record stands for it. Returns
  /// the orphans that are due for the live look.
  std::vector<Orphan> look(const base::ProviderName& provider, const std::vector<model::Instance>& listing,
                           const std::function<bool(const base::PodUid&, int attempt)>& owned, base::TimePoint now);

 private:
  struct Seen {
    base::TimePoint first;
    int listings = 0;
  };

  model::Ownership ownership_;
  base::Duration grace_;
  std::unordered_map<base::ProviderName, std::unordered_map<std::string, Seen>> candidates_;
};

}  // namespace spillway::core
