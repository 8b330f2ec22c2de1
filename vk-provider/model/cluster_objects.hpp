// What pods refer to, as the API server holds it.
//
// Values, made by kube/object_codec. They may hold secrets: never logged, and kept no longer than a pod is resolved.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/secret.hpp"
#include "vk-provider/model/container_spec.hpp"

namespace spillway::model {

/// A ConfigMap or a Secret. Values are bytes: base64 is decoded.
struct ConfigObject {
  ConfigObject() = default;
  std::string type;  // of a Secret: kubernetes.io/dockerconfigjson ...
  std::map<std::string, std::string> data;
  std::map<std::string, std::string> binary_data;  // of a ConfigMap: for files, never for the environment
};

/// metadata of a pod that only few pods are asked for.
struct PodMetadata {
  PodMetadata() = default;
  base::PodUid uid;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

struct ServicePort {
  ServicePort() = default;
  std::string name;
  int port = 0;
  Protocol protocol = Protocol::kTcp;
  bool operator==(const ServicePort&) const = default;
};

struct Service {
  Service() = default;
  std::string name;
  std::string cluster_ip;  // empty: headless, or a name of somewhere else
  std::vector<ServicePort> ports;
  bool operator==(const Service&) const = default;
};

/// A token that the API server made for a service account, bound to one pod.
struct BoundToken {
  BoundToken() = default;
  base::Secret token;
  base::WallTime expires_at;
};

}  // namespace spillway::model
