#include "vk-provider/core/references.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "vk-provider/core/downward.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

using model::ConfigRef;
using model::VolumeSource;

std::string_view lower_word(ConfigRef::Kind kind) { return kind == ConfigRef::Kind::kSecret ? "secret" : "configmap"; }
std::string_view reason_word(ConfigRef::Kind kind) { return kind == ConfigRef::Kind::kSecret ? "Secret" : "ConfigMap"; }

/// Collects each reference once, in the order of the sets.
struct Collector {
  std::set<ConfigSource> config;
  std::set<ConfigSource> mounted;
  std::set<TokenWish> tokens;
  bool metadata = false;

  void add(const model::ContainerSpec& container) {
    for (const ConfigRef& ref : container.env_from) config.emplace(ref.kind, ref.name);
    for (const model::EnvVar& var : container.env) {
      if (var.from) config.emplace(var.from->kind, var.from->name);
      metadata = metadata || is_metadata_field(var.field);
    }
  }
  void add(const VolumeSource& source, bool with_tokens) {
    switch (source.kind) {
      case VolumeSource::Kind::kConfigMap: mounted.emplace(ConfigRef::Kind::kConfigMap, source.name); break;
      case VolumeSource::Kind::kSecret: mounted.emplace(ConfigRef::Kind::kSecret, source.name); break;
      case VolumeSource::Kind::kDownwardApi:
        for (const model::VolumeItem& item : source.items) metadata = metadata || is_metadata_field(item.field);
        break;
      case VolumeSource::Kind::kToken: {
        TokenWish wish;
        wish.audience = source.audience;
        wish.expiration = source.expiration;
        if (with_tokens) tokens.insert(std::move(wish));
        break;
      }
    }
  }
};

}  // namespace

std::vector<const model::ContainerSpec*> all_containers(const model::PodSpec& pod) {
  std::vector<const model::ContainerSpec*> out;
  if (pod.extras) {
    for (const model::ContainerSpec& container : pod.extras->init_containers) out.push_back(&container);
  }
  for (const model::ContainerSpec& container : pod.containers) out.push_back(&container);
  return out;
}

std::vector<const model::VolumeSpec*> mounted_volumes(const model::PodSpec& pod) {
  std::vector<const model::VolumeSpec*> out;
  if (!pod.extras) return out;
  std::set<std::string> mounted;
  for (const model::ContainerSpec* container : all_containers(pod)) {
    for (const model::VolumeMount& mount : container->mounts) mounted.insert(mount.volume);
  }
  for (const model::VolumeSpec& volume : pod.extras->volumes) {
    if (mounted.contains(volume.name)) out.push_back(&volume);
  }
  return out;
}

bool sends_token(const model::PodSpec& pod) {
  const auto it = pod.annotations.find(std::string(model::kAnnotationSendToken));
  return it != pod.annotations.end() && it->second == "true";
}

References references(const model::PodSpec& pod) {
  Collector all;
  for (const model::ContainerSpec* container : all_containers(pod)) all.add(*container);
  const bool with_tokens = sends_token(pod);
  for (const model::VolumeSpec* volume : mounted_volumes(pod)) {
    for (const VolumeSource& source : volume->sources) all.add(source, with_tokens);
  }
  all.config.insert(all.mounted.begin(), all.mounted.end());
  References out;
  out.mounted.assign(all.mounted.begin(), all.mounted.end());
  out.config.assign(all.config.begin(), all.config.end());
  out.tokens.assign(all.tokens.begin(), all.tokens.end());
  out.metadata = all.metadata;
  return out;
}

base::Result<const model::ConfigObject*> ConfigReader::find(const ConfigSource& source, bool optional) {
  const std::string_view need = optional ? "Optional" : "Mandatory";
  const auto it = read_.config.find(source);
  const bool asked = it != read_.config.end();
  if (asked && it->second) return &*it->second;
  if (!asked || it->second.error().kind == base::ErrorKind::kNotFound) {
    std::string message = fmt::format("{} \"{}\" not found", lower_word(source.kind), source.name);
    note(fmt::format("{}{}NotFound", need, reason_word(source.kind)), message);
    if (optional) return nullptr;
    return base::fail(base::ErrorKind::kNotFound, std::move(message));
  }
  const base::Error& error = it->second.error();
  std::string message =
      fmt::format("failed to read {} \"{}\": {}", lower_word(source.kind), source.name, error.message);
  note(fmt::format("FailedToRead{}{}", need, reason_word(source.kind)), message);
  return base::fail(error.kind, std::move(message));
}

void ConfigReader::note_missing_key(const ConfigSource& source, const std::string& key, bool optional) {
  note(fmt::format("{}{}KeyNotFound", optional ? "Optional" : "Mandatory", reason_word(source.kind)),
       fmt::format("key \"{}\" does not exist in {} \"{}\"", key, lower_word(source.kind), source.name));
}

void ConfigReader::note(std::string reason, std::string message) {
  Note note(std::move(reason), std::move(message));
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
}

}  // namespace spillway::core
