// A decision: this pod, that offer, this key, this attempt. Written to the pod before money is spent.
#pragma once

#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::model {

struct Placement {
  Placement() = default;
  base::PodUid pod;
  base::ProviderName provider;
  base::OfferId offer;
  base::SharedText region;
  int gpu_count = 0;
  CapacityType capacity_type = CapacityType::kOnDemand;
  base::Money price_per_hour;  // as offered
  /// Ownership tag and idempotency key: two creates with one tag are one purchase.
  base::InstanceTag tag;
  int attempt = 1;

  bool operator==(const Placement&) const = default;
};

}  // namespace spillway::model
