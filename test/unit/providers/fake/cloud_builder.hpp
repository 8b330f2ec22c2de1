// What the tests of the fake cloud have in common: a small catalogue, purchases and times.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "providers/fake/fake_cloud.hpp"

namespace spillway::providers::fake {

inline CloudOffer an_offer(std::string id, std::string_view dollars) {
  CloudOffer sold;
  sold.offer.id = base::OfferId(std::move(id));
  sold.offer.price_per_hour = base::Money::from_dollars(dollars);
  return sold;
}

inline CloudSettings a_cloud() {
  CloudSettings settings;
  settings.offers = {an_offer("small", "0.36"), an_offer("large", "36")};
  return settings;
}

inline base::Now cloud_start() {
  return {base::TimePoint(std::chrono::hours(1)),
          base::WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 29))};
}

/// `offset` after the cloud's start.
inline base::TimePoint at(base::Duration offset) { return cloud_start().steady + offset; }

inline CreateRequest a_purchase(std::string tag, std::vector<std::pair<std::string, std::string>> orders = {}) {
  CreateRequest request;
  request.tag = std::move(tag);
  request.offer = "small";
  CreateRequest::Container container;
  container.name = "main";
  container.image = "registry.example/app:1";
  request.containers.push_back(std::move(container));
  for (auto& [key, value] : orders) request.orders.emplace("fake.spillway.dev/" + key, std::move(value));
  return request;
}

inline FaultRule a_fault(Effect effect, Call call = Call::kAny) {
  FaultRule rule;
  rule.effect = effect;
  rule.call = call;
  return rule;
}

}  // namespace spillway::providers::fake
