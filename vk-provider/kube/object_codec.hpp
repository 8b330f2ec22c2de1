// Objects that pods refer to: ConfigMaps, Secrets, Services and tokens.
//
// Pure functions. An answer that broke off is kInvalid, never an object with less in it. An error names a key or a
// place, never a value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/cluster_objects.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::kube {

base::Result<model::ConfigObject> decode_config_map(std::string_view body);
base::Result<model::ConfigObject> decode_secret(std::string_view body);
base::Result<model::PodMetadata> decode_pod_metadata(std::string_view body);
/// Of one item of a ServiceList.
model::Service decode_service(std::string_view json);

/// Of its values: two objects with the same values have the same.
std::uint64_t digest_of(const model::ConfigObject& object);

/// The body of a TokenRequest, bound to the pod. Without an audience the API server's own is meant.
std::string encode_token_request(const model::PodKey& pod, std::string_view audience, std::chrono::seconds expiration);
base::Result<model::BoundToken> decode_token(std::string_view body);

/// The registries of a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg; another type has none,
/// as with a kubelet. kInvalid if its content is not what its type says.
base::Result<std::vector<model::PullAuth>> decode_pull_secret(const model::ConfigObject& secret);

}  // namespace spillway::kube
