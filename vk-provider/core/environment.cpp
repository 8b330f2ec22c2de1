#include "vk-provider/core/environment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "vk-provider/core/downward.hpp"

namespace spillway::core {
namespace {

using model::ConfigRef;
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

/// Names that the API server accepts for env[].name today: printable ASCII without '='.
bool is_env_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= ' ' && c < 0x7f && c != '='; });
}

/// Insertion order of first appearance, last value wins: what a process sees does not depend on a hash.
class Environment {
 public:
  void set(const std::string& name, std::string value) {
    const auto it = index_.find(name);
    if (it != index_.end()) {
      std::string& old = values_[it->second].second;
      bytes_ += value.size() - old.size();
      old = std::move(value);
      return;
    }
    index_.emplace(name, values_.size());
    bytes_ += name.size() + value.size();
    values_.emplace_back(name, std::move(value));
  }
  std::optional<std::string> find(std::string_view name) const {
    const auto it = index_.find(name);
    if (it == index_.end()) return std::nullopt;
    return values_[it->second].second;
  }
  bool too_large() const { return bytes_ > kEnvironmentLimit; }
  std::vector<std::pair<std::string, std::string>> take() { return std::move(values_); }

 private:
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<std::pair<std::string, std::string>> values_;
  size_t bytes_ = 0;
};

base::Result<void> add_env_from(Environment& env, const ConfigRef& ref, const std::string& ns, ConfigReader& reader) {
  const auto object = reader.find(ConfigSource(ref.kind, ref.name), ref.optional);
  if (!object) return base::fail(object.error());
  if (*object == nullptr) return {};
  std::string skipped;
  for (const auto& [key, value] : (*object)->data) {
    std::string name = ref.prefix + key;
    if (is_env_name(name)) {
      env.set(name, value);
    } else {
      skipped += (skipped.empty() ? "" : ", ") + name;
    }
  }
  if (!skipped.empty()) {
    reader.note("InvalidEnvironmentVariableNames",
                fmt::format("Keys [{}] from the EnvFrom {} {}/{} were skipped since they are considered invalid "
                            "environment variable names.",
                            skipped, ref.kind == ConfigRef::Kind::kSecret ? "secret" : "configMap", ns, ref.name));
  }
  return {};
}

base::Result<std::optional<std::string>> find_key(const ConfigRef& ref, const std::string& ns, ConfigReader& reader) {
  const ConfigSource source(ref.kind, ref.name);
  const auto object = reader.find(source, ref.optional);
  if (!object) return base::fail(object.error());
  if (*object == nullptr) return std::nullopt;
  const auto key = (*object)->data.find(ref.key);
  if (key != (*object)->data.end()) return key->second;
  reader.note_missing_key(source, ref.key, ref.optional);
  if (ref.optional) return std::nullopt;
  return base::fail(base::ErrorKind::kNotFound,
                    fmt::format("couldn't find key {} in {} {}/{}", ref.key,
                                ref.kind == ConfigRef::Kind::kSecret ? "Secret" : "ConfigMap", ns, ref.name));
}

/// Empty: the variable is left out.
base::Result<std::optional<std::string>> value_of(const EnvironmentInput& in, const model::ContainerSpec& spec,
                                                  const model::EnvVar& var, const Lookup& lookup,
                                                  ConfigReader& reader) {
  if (var.from) return find_key(*var.from, in.pod.key.ns, reader);
  if (!var.field.empty()) return field_value(in.pod, in.read, var.field);
  if (var.resource) return resource_value(in.pod, in.read, *var.resource, spec.name.str());
  return expand(var.value, lookup);
}

base::Result<void> add_env(Environment& env, const EnvironmentInput& in, const model::ContainerSpec& spec,
                           const Lookup& lookup, ConfigReader& reader) {
  for (const ConfigRef& ref : spec.env_from) {
    if (auto added = add_env_from(env, ref, in.pod.key.ns, reader); !added) return added;
    if (env.too_large()) break;
  }
  for (const model::EnvVar& var : spec.env) {
    if (env.too_large()) break;
    auto value = value_of(in, spec, var, lookup, reader);
    if (!value) return base::fail(std::move(value.error()));
    if (*value) env.set(var.name, std::move(**value));
  }
  if (!env.too_large()) return {};
  return base::fail(base::ErrorKind::kInvalid, fmt::format("the environment of container {} is larger than {} MiB",
                                                           spec.name.str(), kEnvironmentLimit >> 20U));
}

base::Result<void> expand_words(const std::vector<std::string>& words, const Lookup& lookup,
                                std::vector<std::string>& out) {
  size_t bytes = 0;
  for (const std::string& word : words) {
    bytes += out.emplace_back(expand(word, lookup)).size();
    if (bytes > kEnvironmentLimit) {
      return base::fail(base::ErrorKind::kInvalid,
                        fmt::format("command and args are larger than {} MiB", kEnvironmentLimit >> 20U));
    }
  }
  return {};
}

/// A path inside a volume: not absolute, and no step back. Source: pkg/volume/validation and the API's own rules.
base::Result<std::string> sub_path_of(const model::VolumeMount& mount, const Lookup& lookup) {
  std::string path = mount.sub_path;
  if (mount.sub_path_is_expression) {
    std::string missing;
    path = expand(mount.sub_path, [&](std::string_view name) {
      auto value = lookup(name);
      if (!value && missing.empty()) missing = name;
      return value;
    });
    if (!missing.empty()) {
      return base::fail(base::ErrorKind::kNotFound,
                        fmt::format("missing value for \"{}\" in subPathExpr of volume mount {}", missing, mount.path));
    }
  }
  if (path.starts_with('/')) {
    return base::fail(base::ErrorKind::kInvalid, fmt::format("error SubPath `{}` must not be an absolute path", path));
  }
  const std::string framed = "/" + path + "/";
  if (framed.find("/../") != std::string::npos || path.find('\0') != std::string::npos) {
    return base::fail(base::ErrorKind::kInvalid,
                      fmt::format("unable to provision SubPath `{}`: must not contain '..'", path));
  }
  return path;
}

bool is_files(const model::PodSpec& pod, const std::string& volume) {
  return pod.extras && std::ranges::any_of(pod.extras->volumes, [&](const model::VolumeSpec& v) {
           return v.name == volume && v.kind == model::VolumeSpec::Kind::kFiles;
         });
}

base::Result<void> add_mounts(const EnvironmentInput& in, const model::ContainerSpec& spec, const Lookup& lookup,
                              std::vector<model::ResolvedMount>& out) {
  for (const model::VolumeMount& mount : spec.mounts) {
    auto sub_path = sub_path_of(mount, lookup);
    if (!sub_path) return base::fail(std::move(sub_path.error()));
    model::ResolvedMount& resolved = out.emplace_back();
    resolved.volume = mount.volume;
    resolved.path = mount.path;
    resolved.sub_path = std::move(*sub_path);
    resolved.read_only = mount.read_only || is_files(in.pod, mount.volume);
  }
  return {};
}

model::ResolvedContainer without_references(const model::ContainerSpec& spec) {
  model::ResolvedContainer out;
  out.name = spec.name;
  out.image = spec.image;
  out.working_dir = spec.working_dir;
  out.ports = spec.ports;
  out.resources = spec.resources;
  out.pull_policy = spec.pull_policy;
  out.security = spec.security;
  out.stop_signal = spec.stop_signal;
  out.termination_message_path = spec.termination_message_path;
  out.termination_message_from_logs = spec.termination_message_from_logs;
  out.stdin_open = spec.stdin_open;
  out.stdin_once = spec.stdin_once;
  out.tty = spec.tty;
  return out;
}

}  // namespace

std::string expand(std::string_view text, const Lookup& lookup, size_t limit) {
  std::string out;
  size_t pos = 0;
  while (pos < text.size() && out.size() <= limit) {
    if (text[pos] != '$' || pos + 1 == text.size()) {
      out += text[pos++];
      continue;
    }
    const char next = text[pos + 1];
    if (next == '$') {
      out += '$';
      pos += 2;
      continue;
    }
    const size_t close = next == '(' ? text.find(')', pos + 2) : std::string_view::npos;
    if (close == std::string_view::npos) {
      // Neither an escape nor a reference: the $ and what follows stand for themselves.
      out += '$';
      out += next;
      pos += 2;
      continue;
    }
    const std::string_view name = text.substr(pos + 2, close - pos - 2);
    const auto value = lookup(name);
    out += value ? *value : std::string(text.substr(pos, close + 1 - pos));
    pos = close + 1;
  }
  return out;
}

base::Result<model::ResolvedContainer> resolve_container(const EnvironmentInput& in, const model::ContainerSpec& spec,
                                                         std::vector<Note>& notes) {
  Environment env;
  const Lookup lookup = [&](std::string_view name) -> std::optional<std::string> {
    if (auto value = env.find(name)) return value;
    const auto it = in.service_variables.find(std::string(name));
    return it == in.service_variables.end() ? std::nullopt : std::optional(it->second);
  };
  ConfigReader reader(in.read, notes);
  if (auto added = add_env(env, in, spec, lookup, reader); !added) return base::fail(std::move(added.error()));

  model::ResolvedContainer out = without_references(spec);
  if (auto done = expand_words(spec.command, lookup, out.command); !done) return base::fail(std::move(done.error()));
  if (auto done = expand_words(spec.args, lookup, out.args); !done) return base::fail(std::move(done.error()));
  if (auto done = add_mounts(in, spec, lookup, out.mounts); !done) return base::fail(std::move(done.error()));
  for (const auto& [name, value] : in.service_variables) {
    if (!env.find(name)) env.set(name, value);
  }
  out.env = env.take();
  return out;
}

}  // namespace spillway::core
