// Which EndpointSlices of our own stand beside the built-in ones, so that traffic reaches rented pods.
//
// Pure. The built-in controller cannot say that a pod listens on another port than its container: a pod whose ports are
// published at the address of its machine has no podIP, so that it is left out there, and its endpoints are told here,
// one slice for each distinct set of ports. A pod with a podIP is left to the built-in controller.
//
// What is not known of a pod now (its provider was not asked yet, or cannot say) stays as it was written: "I could not
// ask" takes nobody out of service.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/endpoint_slice.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

/// endpointslice.kubernetes.io/managed-by of our slices.
inline constexpr std::string_view kEndpointManager = "spillway.dev";
/// As many as the built-in controller puts into one slice.
inline constexpr size_t kEndpointsPerSlice = 100;

/// A pod that may stand behind a Service at the address of its machine.
struct EndpointPod {
  EndpointPod() = default;
  model::PodSpecPtr spec;
  base::SharedText labels;  // `,app=web,tier=front,`: a comma before and after each
  bool known = false;       // false: our slices say where it is reached and whether it is ready
  bool ready = false;
  bool terminating = false;
  std::vector<model::InstancePort> ports;
  bool operator==(const EndpointPod&) const = default;
};

/// Nothing if it can have no endpoint: it has not run yet or runs no more, or its own address is reached. `labels` as
/// in EndpointPod; without any, no Service selects it.
std::optional<EndpointPod> endpoint_pod(const model::PodRecord& record, const base::SharedText& labels, base::Now now);

/// A port of a Service at which no rented pod is reached, although there are some: a person has to act.
struct EndpointGap {
  enum class Why : std::uint8_t {
    kNotPublished,  // no pod publishes that port
    kProtocol,      // it is not TCP
    kAddress,       // the address is none that an endpoint may have, or not of the Service's family
  };
  EndpointGap() = default;
  Why why = Why::kNotPublished;
  const model::EndpointService* service = nullptr;
  size_t port = 0;     // index into the Service's
  int target = 0;      // of the pod's container
  std::string detail;  // kAddress: the address
};
/// A sentence for the Service's Event.
std::string explain(const EndpointGap& gap);

/// Whose slices they are, and what of nodes stands in them.
struct EndpointScope {
  EndpointScope() = default;
  std::string installation;
  std::map<std::string, std::string> zones;  // of a node's label topology.kubernetes.io/zone
};

struct EndpointPlan {
  std::vector<model::EndpointSlice> slices;  // sorted by name
  std::vector<EndpointGap> gaps;
};

/// What is to stand for one Service. Pods of other namespaces or labels are passed over; `existing` are our slices of
/// that Service's namespace. The order of all of them has no effect.
EndpointPlan plan_endpoints(const EndpointScope& scope, const model::EndpointService& service,
                            const std::vector<const EndpointPod*>& pods,
                            const std::vector<const model::EndpointSlice*>& existing);

/// The address as an EndpointSlice has it; nothing if none may: a name, loopback, link-local, multicast, unspecified.
struct EndpointAddress {
  std::string text;
  bool ipv6 = false;
};
std::optional<EndpointAddress> endpoint_address(const std::string& host);

}  // namespace spillway::core
