// A pod as it is to be started: everything that the cluster holds of it is read, every reference is resolved.
//
// Values, made by control/ with core/ and given to a provider with a create call. They may hold secrets: never logged,
// never kept longer than the create call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/base/secret.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/model/volume.hpp"

namespace spillway::model {

struct ResolvedMount {
  ResolvedMount() = default;
  std::string volume;
  std::string path;
  std::string sub_path;  // inside the volume
  bool read_only = false;
};

enum class ContainerRole : std::uint8_t { kInit, kSidecar, kMain };

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

  ContainerRole role = ContainerRole::kMain;
  /// False: made, and started when control_container says so (core decides the order of init containers and sidecars).
  bool start_at_once = true;
  std::vector<ResolvedMount> mounts;
  base::Boxed<Security> security;
  std::string stop_signal;
  std::string termination_message_path;
  bool termination_message_from_logs = false;
  bool stdin_open = false;
  bool stdin_once = false;
  bool tty = false;
};

/// A file that the provider places into a volume. Its bytes are not text.
struct ResolvedFile {
  ResolvedFile() = default;
  std::string volume;
  std::string path;  // inside the volume, without a leading slash
  std::string content;
  int mode = 0644;
  std::optional<std::int64_t> user;  // whose it is; empty: root's
};

struct ResolvedVolume {
  ResolvedVolume() = default;
  std::string name;
  VolumeSpec::Kind kind = VolumeSpec::Kind::kScratch;
  std::optional<std::int64_t> size_limit;  // bytes
};

/// Credentials of one registry, from imagePullSecrets.
struct PullAuth {
  PullAuth() = default;
  std::string registry;  // host[:port][/path], as in dockerconfigjson
  std::string username;
  base::Secret password;
};

/// All that a provider needs to start a pod.
struct ResolvedPod {
  ResolvedPod() = default;
  PodSpecPtr spec;
  std::vector<ResolvedContainer> containers;  // init containers and sidecars first, in the order of the spec
  std::vector<ResolvedVolume> volumes;
  std::vector<ResolvedFile> files;
  std::vector<PullAuth> pull_auth;  // all that may fit, the most specific one is the provider's to choose
  std::vector<int> public_ports;    // container ports to publish: annotation or profile
  std::string hostname;             // what `hostname` prints inside
};

}  // namespace spillway::model
