// The projection of a Pod that Spillway acts on: decoded once, then the JSON is thrown away.
//
// Values, made by kube/pod_codec. Immutable after creation as far as Kubernetes makes the fields so; therefore shared
// as shared_ptr<const PodSpec>. Anything that a pod sets and that is not here stands in `uses` as a field path with
// the capability that it needs: nothing is dropped without a word.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/secret.hpp"
#include "vk-provider/base/shared_list.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/model/capability.hpp"

namespace spillway::model {

/// namespace, name: for messages and requests. The identity is the UID.
struct PodKey {
  PodKey() = default;
  base::SharedText ns;
  base::SharedText name;
  base::PodUid uid;

  std::string to_string() const { return ns.str() + "/" + name.str(); }
};

/// metadata.ownerReferences[controller=true]; empty for a bare pod.
struct OwnerRef {
  OwnerRef() = default;
  base::SharedText kind;
  base::SharedText name;
  base::SharedText uid;
};

/// A key of a ConfigMap or Secret, or (with an empty key) all of it with a prefix.
struct ConfigRef {
  ConfigRef() = default;
  enum class Kind : std::uint8_t { kConfigMap, kSecret };
  Kind kind = Kind::kConfigMap;
  bool optional = false;
  std::string name;
  std::string key;
  std::string prefix;
  bool operator==(const ConfigRef&) const = default;
};

struct EnvVar {
  EnvVar() = default;
  std::string name;
  std::string value;              // literal, before expansion of $(VAR)
  std::optional<ConfigRef> from;  // then value is unused
  bool operator==(const EnvVar&) const = default;
};

enum class Protocol : std::uint8_t { kTcp, kUdp, kSctp };

struct ContainerPort {
  ContainerPort() = default;
  std::string name;
  int port = 0;
  Protocol protocol = Protocol::kTcp;
  bool operator==(const ContainerPort&) const = default;
};

enum class PullPolicy : std::uint8_t { kAlways, kIfNotPresent, kNever };

/// Requests and limits. cpu in thousandths, memory in bytes; 0 means not set.
struct Resources {
  Resources() = default;
  std::int64_t cpu_request_milli = 0;
  std::int64_t cpu_limit_milli = 0;
  std::int64_t memory_request = 0;
  std::int64_t memory_limit = 0;
  std::int64_t ephemeral_storage = 0;  // the larger of request and limit, bytes
  bool operator==(const Resources&) const = default;
};

struct ContainerSpec {
  ContainerSpec() = default;
  base::SharedText name;
  base::SharedText image;
  std::vector<std::string> command;  // empty: the image's entrypoint
  std::vector<std::string> args;
  base::SharedText working_dir;
  std::vector<ConfigRef> env_from;
  std::vector<EnvVar> env;
  std::vector<ContainerPort> ports;
  Resources resources;
  PullPolicy pull_policy = PullPolicy::kIfNotPresent;
  bool operator==(const ContainerSpec&) const = default;
};

enum class RestartPolicy : std::uint8_t { kAlways, kOnFailure, kNever };

/// GPUs of one pod: the sum over its containers.
struct GpuNeed {
  GpuNeed() = default;
  int count = 0;
  base::SharedText resource;  // nvidia.com/gpu or amd.com/gpu; empty if count is 0
};

/// A field that the pod sets and that somebody must be able to honour.
struct FieldUse {
  FieldUse() = default;
  std::string path;                 // spec.containers[0].livenessProbe
  std::optional<Capability> needs;  // empty: no provider can ever honour it on a rented machine
  std::string why;                  // shown to the user: "host namespaces do not exist on a rented machine"
};

struct PodSpec {
  PodSpec() = default;
  PodKey key;
  OwnerRef owner;
  base::SharedText node_name;
  base::SharedText service_account;
  base::WallTime created_at;
  base::SharedList<ContainerSpec> containers;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  std::chrono::seconds grace{30};
  GpuNeed gpu;
  std::vector<FieldUse> uses;
  bool service_account_token_withheld = false;
  std::vector<std::string> readiness_gates;
  /// Annotations of the pod under spillway.dev/ and fake.spillway.dev/ (never those under state.).
  std::map<std::string, std::string> annotations;

  /// The UID of who would replace this pod; a bare pod is its own owner.
  const std::string& owner_key() const { return owner.uid.empty() ? key.uid.str() : owner.uid.str(); }
};

using PodSpecPtr = std::shared_ptr<const PodSpec>;

/// One container as it is to be started: environment resolved, $(VAR) expanded. May hold secrets in env.
struct ResolvedContainer {
  ResolvedContainer() = default;
  base::SharedText name;
  base::SharedText image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_dir;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<ContainerPort> ports;
  Resources resources;
  PullPolicy pull_policy = PullPolicy::kIfNotPresent;
};

/// A file that the provider must place before the container starts. Filled by a later feature.
struct ResolvedFile {
  ResolvedFile() = default;
  std::string container;
  std::string path;
  std::string content;
  int mode = 0644;
};

/// Credentials of one registry, from imagePullSecrets. Filled by a later feature.
struct PullAuth {
  PullAuth() = default;
  std::string registry;
  std::string username;
  base::Secret password;
};

/// All that a provider needs to start a pod. Never logged, never kept longer than the create call.
struct ResolvedPod {
  ResolvedPod() = default;
  PodSpecPtr spec;
  std::vector<ResolvedContainer> containers;
  std::vector<ResolvedFile> files;
  std::vector<PullAuth> pull_auth;
  std::vector<int> public_ports;  // container ports to publish: annotation or profile
};

}  // namespace spillway::model
