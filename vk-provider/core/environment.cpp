#include "vk-provider/core/environment.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace spillway::core {
namespace {

using model::ConfigRef;

std::string_view word(ConfigRef::Kind kind) { return kind == ConfigRef::Kind::kSecret ? "secret" : "configmap"; }

ConfigSource source_of(const ConfigRef& ref) {
  ConfigSource source;
  source.kind = ref.kind;
  source.name = ref.name;
  return source;
}

/// Names that the API server accepts for env[].name today: printable ASCII without '='.
bool is_env_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f && c != '='; });
}

/// Insertion order of first appearance, last value wins: what a process sees does not depend on a hash.
class Environment {
 public:
  void set(const std::string& name, std::string value) {
    const auto it = index_.find(name);
    if (it != index_.end()) {
      values_[it->second].second = std::move(value);
      return;
    }
    index_.emplace(name, values_.size());
    values_.emplace_back(name, std::move(value));
  }
  std::optional<std::string> find(std::string_view name) const {
    const auto it = index_.find(std::string(name));
    if (it == index_.end()) return std::nullopt;
    return values_[it->second].second;
  }
  std::vector<std::pair<std::string, std::string>> take() { return std::move(values_); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::pair<std::string, std::string>> values_;
};

base::Result<void> add_env_from(Environment& env, const ConfigRef& ref, const std::string& ns, const ConfigData& data) {
  const auto it = data.find(source_of(ref));
  if (it == data.end() || !it->second) {
    if (ref.optional) return {};
    return base::fail(base::ErrorKind::kNotFound,
                      fmt::format("{} \"{}\" not found in namespace {}", word(ref.kind), ref.name, ns));
  }
  for (const auto& [key, value] : *it->second) {
    std::string name = ref.prefix + key;
    if (is_env_name(name)) env.set(name, value);
  }
  return {};
}

base::Result<std::optional<std::string>> find_key(const ConfigRef& ref, const std::string& ns, const ConfigData& data) {
  const auto it = data.find(source_of(ref));
  if (it == data.end() || !it->second) {
    if (ref.optional) return std::nullopt;
    return base::fail(base::ErrorKind::kNotFound,
                      fmt::format("{} \"{}\" not found in namespace {}", word(ref.kind), ref.name, ns));
  }
  const auto key = it->second->find(ref.key);
  if (key != it->second->end()) return key->second;
  if (ref.optional) return std::nullopt;
  return base::fail(base::ErrorKind::kNotFound,
                    fmt::format("couldn't find key {} in {} {}/{}", ref.key,
                                ref.kind == ConfigRef::Kind::kSecret ? "Secret" : "ConfigMap", ns, ref.name));
}

base::Result<model::ResolvedContainer> resolve(const model::ContainerSpec& spec, const std::string& ns,
                                               const ConfigData& data) {
  Environment env;
  for (const ConfigRef& ref : spec.env_from) {
    if (auto added = add_env_from(env, ref, ns, data); !added) return base::fail(std::move(added.error()));
  }
  const auto lookup = [&](std::string_view name) { return env.find(name); };
  for (const model::EnvVar& var : spec.env) {
    if (!var.from) {
      env.set(var.name, expand(var.value, lookup));
      continue;
    }
    auto value = find_key(*var.from, ns, data);
    if (!value) return base::fail(std::move(value.error()));
    if (*value) env.set(var.name, std::move(**value));
  }

  model::ResolvedContainer container;
  container.name = spec.name;
  container.image = spec.image;
  container.working_dir = spec.working_dir;
  container.ports = spec.ports;
  container.resources = spec.resources;
  container.pull_policy = spec.pull_policy;
  for (const std::string& arg : spec.command) container.command.push_back(expand(arg, lookup));
  for (const std::string& arg : spec.args) container.args.push_back(expand(arg, lookup));
  container.env = env.take();
  return container;
}

}  // namespace

std::string expand(std::string_view text, const std::function<std::optional<std::string>(std::string_view)>& lookup) {
  std::string out;
  size_t pos = 0;
  while (pos < text.size()) {
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

std::vector<ConfigSource> config_sources(const model::PodSpec& pod) {
  std::set<ConfigSource> sources;
  for (const model::ContainerSpec& container : pod.containers) {
    for (const ConfigRef& ref : container.env_from) sources.insert(source_of(ref));
    for (const model::EnvVar& var : container.env) {
      if (var.from) sources.insert(source_of(*var.from));
    }
  }
  return {sources.begin(), sources.end()};
}

base::Result<std::vector<model::ResolvedContainer>> resolve_containers(const model::PodSpec& pod,
                                                                       const ConfigData& data) {
  std::vector<model::ResolvedContainer> containers;
  for (const model::ContainerSpec& spec : pod.containers) {
    auto container = resolve(spec, pod.key.ns, data);
    if (!container) return base::fail(std::move(container.error()));
    containers.push_back(std::move(*container));
  }
  return containers;
}

}  // namespace spillway::core
