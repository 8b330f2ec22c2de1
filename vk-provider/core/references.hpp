// What a pod refers to outside of its own spec, and what was read of it. Pure.
//
// control/pod_resolver reads it, core/resolve makes a ResolvedPod of it. Words of messages are a kubelet's, reasons of
// notes are Virtual Kubelet's (internal/podutils/env.go), because people and tools look for them.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/cluster_objects.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::core {

struct ConfigSource {
  ConfigSource() = default;
  ConfigSource(model::ConfigRef::Kind k, std::string n) : kind(k), name(std::move(n)) {}
  model::ConfigRef::Kind kind{};
  std::string name;
  auto operator<=>(const ConfigSource&) const = default;
};

/// A token of the pod's service account, as a volume asks for it.
struct TokenWish {
  TokenWish() = default;
  std::string audience;  // empty: the API server's own
  std::chrono::seconds expiration{3600};
  auto operator<=>(const TokenWish&) const = default;
};

struct References {
  References() = default;
  std::vector<ConfigSource> config;   // each once
  std::vector<ConfigSource> mounted;  // those of them that are files
  std::vector<TokenWish> tokens;      // each once
  bool metadata = false;              // labels or annotations of the pod, which PodSpec does not keep
};

/// Of the containers and of those volumes that one of them mounts: a kubelet does not set up the others.
References references(const model::PodSpec& pod);
/// True if the user let the token of the service account leave the cluster.
bool sends_token(const model::PodSpec& pod);
/// The volumes that a container mounts.
std::vector<const model::VolumeSpec*> mounted_volumes(const model::PodSpec& pod);
/// Init containers and sidecars first.
std::vector<const model::ContainerSpec*> all_containers(const model::PodSpec& pod);

/// What was read. An error of kNotFound says that there is no such object, every other one that it could not be asked.
struct Surroundings {
  Surroundings() = default;
  std::map<ConfigSource, base::Result<model::ConfigObject>> config;
  std::map<TokenWish, model::BoundToken> tokens;
  model::PodMetadata metadata;
  std::vector<model::Service> services;  // those whose variables the containers get
  std::string node_ip;
  model::Resources allocatable;  // of the node, as limits
};

/// An Event on the pod, of type Warning.
struct Note {
  Note() = default;
  Note(std::string r, std::string m) : reason(std::move(r)), message(std::move(m)) {}
  std::string reason;
  std::string message;
  bool operator==(const Note&) const = default;
};

/// Looks things up in what was read, and notes what is not there.
class ConfigReader {
 public:
  /// Both outlive it.
  ConfigReader(const Surroundings& read, std::vector<Note>& notes) : read_(read), notes_(notes) {}

  /// Null if it is optional and there is none. Optional or not: what could not be read is an error, because the values
  /// are those at the start and nobody would look again.
  base::Result<const model::ConfigObject*> find(const ConfigSource& source, bool optional);
  /// Notes that the object has no such key.
  void note_missing_key(const ConfigSource& source, const std::string& key, bool optional);
  /// The same note is kept once.
  void note(std::string reason, std::string message);

 private:
  const Surroundings& read_;
  std::vector<Note>& notes_;
};

}  // namespace spillway::core
