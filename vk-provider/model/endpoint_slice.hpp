// Services and EndpointSlices, as far as traffic follows the pods.
//
// Values, made by kube/endpoint_codec and core/endpoint_slices. Equality of a slice leaves out who it is at the API
// server: equal slices send traffic to the same places.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::model {

/// One of spec.ports of a Service.
struct EndpointServicePort {
  EndpointServicePort() = default;
  std::string name;
  Protocol protocol = Protocol::kTcp;
  int port = 0;
  int target = 0;           // targetPort as a number; 0 if it is a name
  std::string target_name;  // targetPort as a name of a port of the pod's containers
  std::string app_protocol;
  bool operator==(const EndpointServicePort&) const = default;
};

/// A Service that selects pods.
struct EndpointService {
  EndpointService() = default;
  std::string ns;
  std::string name;
  std::string uid;
  std::map<std::string, std::string> selector;  // never empty
  std::vector<EndpointServicePort> ports;
  bool headless = false;
  bool ipv4 = false;  // of spec.ipFamilies
  bool ipv6 = false;
  bool publish_not_ready = false;
  bool operator==(const EndpointService&) const = default;
};

struct EndpointPort {
  EndpointPort() = default;
  std::string name;  // of the Service's port
  Protocol protocol = Protocol::kTcp;
  int port = 0;  // the public one
  std::string app_protocol;
  auto operator<=>(const EndpointPort&) const = default;
};

/// One pod at one address.
struct Endpoint {
  Endpoint() = default;
  std::string address;
  std::string hostname;  // of a headless Service's pod with a name of its own
  std::string node;
  std::string zone;
  base::SharedText pod_name;
  base::PodUid pod_uid;
  bool ready = false;
  bool serving = false;
  bool terminating = false;
  auto operator<=>(const Endpoint&) const = default;
};

struct EndpointSlice {
  EndpointSlice() = default;
  std::string ns;
  std::string name;
  std::string uid;               // of one that exists
  std::string resource_version;  // of one that exists
  std::string service;
  std::string service_uid;
  std::string managed_by;    // of the label endpointslice.kubernetes.io/managed-by
  std::string installation;  // of the label spillway.dev/installation
  bool headless = false;
  bool ipv6 = false;
  std::vector<EndpointPort> ports;  // sorted
  std::vector<Endpoint> endpoints;  // sorted

  bool operator==(const EndpointSlice& other) const {
    return ns == other.ns && name == other.name && service == other.service && service_uid == other.service_uid &&
           managed_by == other.managed_by && installation == other.installation && headless == other.headless &&
           ipv6 == other.ipv6 && ports == other.ports && endpoints == other.endpoints;
  }
};

}  // namespace spillway::model
