// One virtual node as the configuration describes it: what it is called, what it can hold, what may be rented for it.
//
// A value, made and checked by daemon/config and read by the node controller and by placement. Holds no state of the
// node, and knows no way to read a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::model {

/// Which offers may be rented for pods of a node. An empty list allows everything.
struct OfferFilter {
  OfferFilter() = default;
  std::vector<base::ProviderName> providers;
  std::vector<std::string> regions;     // the providers' words
  std::vector<std::string> gpu_models;  // canonical names: Offer::gpu_model
  std::int64_t min_gpu_memory = 0;      // bytes of one GPU; with a value, an offer of unknown memory does not pass
  /// Never empty. Spot only for those who ask for it: it can be taken back at any time.
  std::vector<CapacityType> capacity_types{CapacityType::kOnDemand, CapacityType::kReserved};

  bool operator==(const OfferFilter&) const = default;
};

struct NodeProfile {
  NodeProfile() = default;
  std::string name;
  /// Beside those that the node controller sets. Labels that promise a kind of machine agree with `offers`.
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  /// Resource name -> quantity, as written: cpu, memory, pods, ephemeral-storage always, GPUs if configured.
  std::map<std::string, std::string> capacity;
  bool provider_taint = true;
  base::SharedText internal_ip;
  std::optional<base::Money> max_price_per_hour;  // of one instance; empty: no cap
  OfferFilter offers;
  std::vector<int> public_ports;  // container ports that are published without an annotation of the pod

  bool operator==(const NodeProfile&) const = default;
};

}  // namespace spillway::model
