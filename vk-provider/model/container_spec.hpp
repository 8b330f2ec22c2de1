// One container as the pod orders it, decoded. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/base/boxed.hpp"
#include "vk-provider/base/shared_text.hpp"

namespace spillway::model {

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

/// resourceFieldRef: `limits.memory` of a container, in units of `divisor`, rounded up.
struct ResourceRef {
  ResourceRef() = default;
  std::string container;  // empty: the one that asks
  std::string resource;   // limits.cpu, requests.memory ...
  std::string divisor;    // a quantity; empty: 1
  bool operator==(const ResourceRef&) const = default;
};

/// At most one of the sources is set; without one, `value` holds.
struct EnvVar {
  EnvVar() = default;
  std::string name;
  std::string value;  // literal, before expansion of $(VAR)
  std::optional<ConfigRef> from;
  std::string field;  // fieldRef.fieldPath: metadata.name, status.podIP ...
  base::Boxed<ResourceRef> resource;
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
enum class RestartPolicy : std::uint8_t { kAlways, kOnFailure, kNever };

/// Requests and limits. cpu in thousandths, memory and ephemeral storage in bytes; 0 means not set.
struct Resources {
  Resources() = default;
  std::int64_t cpu_request_milli = 0;
  std::int64_t cpu_limit_milli = 0;
  std::int64_t memory_request = 0;
  std::int64_t memory_limit = 0;
  std::int64_t ephemeral_request = 0;
  std::int64_t ephemeral_limit = 0;
  int gpus = 0;  // of the make in PodSpec::gpu
  bool operator==(const Resources&) const = default;
};

struct HttpHeader {
  HttpHeader() = default;
  std::string name;
  std::string value;
  bool operator==(const HttpHeader&) const = default;
};

/// What a probe or a lifecycle hook does.
struct Handler {
  Handler() = default;
  enum class Kind : std::uint8_t { kExec, kHttpGet, kTcpSocket, kGrpc, kSleep };
  Kind kind = Kind::kExec;
  std::vector<std::string> command;  // kExec
  std::string host;                  // kHttpGet, kTcpSocket: empty is the pod itself
  int port = 0;                      // kHttpGet, kTcpSocket, kGrpc: a name is resolved by the codec
  bool https = false;                // kHttpGet: the certificate is not verified, as a kubelet does it
  std::string path;                  // kHttpGet
  std::vector<HttpHeader> headers;   // kHttpGet
  std::string service;               // kGrpc
  std::chrono::seconds sleep{0};     // kSleep
  bool operator==(const Handler&) const = default;
};

struct Probe {
  Probe() = default;
  Handler handler;
  std::chrono::seconds initial_delay{0};
  std::chrono::seconds timeout{1};
  std::chrono::seconds period{10};
  int success_threshold = 1;
  int failure_threshold = 3;
  std::optional<std::chrono::seconds> grace;  // terminationGracePeriodSeconds of the probe
  bool operator==(const Probe&) const = default;
};

/// Where a volume of the pod stands in a container. `$(VAR)` in subPathExpr is expanded when it is resolved.
struct VolumeMount {
  VolumeMount() = default;
  std::string volume;
  std::string path;
  std::string sub_path;
  bool sub_path_is_expression = false;
  bool read_only = false;
  bool operator==(const VolumeMount&) const = default;
};

/// securityContext of the container over that of the pod: what holds in the end.
struct Security {
  Security() = default;
  enum class Profile : std::uint8_t { kDefault, kRuntimeDefault, kUnconfined };
  std::optional<std::int64_t> user;
  std::optional<std::int64_t> group;
  bool non_root = false;  // the container must not start as user 0
  bool read_only_root = false;
  bool no_new_privileges = false;             // allowPrivilegeEscalation: false
  std::vector<std::string> add_capabilities;  // without CAP_
  std::vector<std::string> drop_capabilities;
  Profile seccomp = Profile::kDefault;
  Profile app_armor = Profile::kDefault;
  bool operator==(const Security&) const = default;
};

/// A restart rule of the container (restartPolicyRules): the first that matches the exit code decides.
struct RestartRule {
  RestartRule() = default;
  bool in = true;  // exitCodes.operator: In or NotIn
  std::vector<int> exit_codes;
  bool operator==(const RestartRule&) const = default;
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

  /// Set: instead of the pod's. An init container with kAlways is a sidecar.
  std::optional<RestartPolicy> restart_policy;
  std::vector<RestartRule> restart_rules;
  base::Boxed<Probe> startup_probe;
  base::Boxed<Probe> readiness_probe;
  base::Boxed<Probe> liveness_probe;
  base::Boxed<Handler> post_start;
  base::Boxed<Handler> pre_stop;
  std::string stop_signal;  // lifecycle.stopSignal; empty: the image's
  std::vector<VolumeMount> mounts;
  base::Boxed<Security> security;  // set if the pod or the container sets anything
  std::string termination_message_path{"/dev/termination-log"};
  bool termination_message_from_logs = false;  // FallbackToLogsOnError
  bool stdin_open = false;
  bool stdin_once = false;
  bool tty = false;

  bool operator==(const ContainerSpec&) const = default;
};

}  // namespace spillway::model
