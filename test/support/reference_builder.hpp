// What pods refer to, and what is read of it, for tests.
#pragma once

#include <map>
#include <string>

#include "test/support/pod_builder.hpp"
#include "vk-provider/core/references.hpp"
#include "vk-provider/core/service_variables.hpp"

namespace spillway::test {

inline core::ConfigSource config(const std::string& name) { return {model::ConfigRef::Kind::kConfigMap, name}; }
inline core::ConfigSource secret(const std::string& name) { return {model::ConfigRef::Kind::kSecret, name}; }

inline base::Result<model::ConfigObject> holding(std::map<std::string, std::string> data) {
  model::ConfigObject object;
  object.data = std::move(data);
  return object;
}
inline base::Result<model::ConfigObject> missing(const std::string& name) {
  return base::fail(base::ErrorKind::kNotFound, "\"" + name + "\" not found");
}

inline model::ConfigRef config_ref(model::ConfigRef::Kind kind, const std::string& name, const std::string& key,
                                   bool optional = false) {
  model::ConfigRef ref;
  ref.kind = kind;
  ref.name = name;
  ref.key = key;
  ref.optional = optional;
  return ref;
}

inline model::EnvVar literal(const std::string& name, const std::string& value) {
  model::EnvVar var;
  var.name = name;
  var.value = value;
  return var;
}
inline model::EnvVar from(const std::string& name, const model::ConfigRef& ref) {
  model::EnvVar var;
  var.name = name;
  var.from = ref;
  return var;
}
inline model::EnvVar field(const std::string& name, const std::string& path) {
  model::EnvVar var;
  var.name = name;
  var.field = path;
  return var;
}

inline model::VolumeMount mount(const std::string& volume, const std::string& path) {
  model::VolumeMount mount;
  mount.volume = volume;
  mount.path = path;
  return mount;
}

inline model::VolumeItem item(const std::string& key, const std::string& path) {
  model::VolumeItem item;
  item.key = key;
  item.path = path;
  return item;
}

inline model::VolumeSource volume_source(model::VolumeSource::Kind kind, const std::string& name = {}) {
  model::VolumeSource source;
  source.kind = kind;
  source.name = name;
  return source;
}

/// A volume of files, mounted by the pod's first container.
inline model::VolumeSpec& add_files(model::PodSpec& pod, const std::string& name) {
  if (!pod.extras) pod.extras = model::PodExtras();
  pod.containers.edit()[0].mounts.push_back(mount(name, "/mnt/" + name));
  model::VolumeSpec& volume = pod.extras->volumes.edit().emplace_back();
  volume.name = name;
  volume.kind = model::VolumeSpec::Kind::kFiles;
  return volume;
}

}  // namespace spillway::test
