// The policy of a descheduler (v1alpha2, and v1alpha1 before it), which stands as YAML in a ConfigMap.
#include <array>
#include <utility>

#include "vk-provider/daemon/cli_doctor_codec.hpp"
#include "vk-provider/daemon/cli_manifest.hpp"
#include "vk-provider/kube/json_scan.hpp"

namespace spillway::daemon {
namespace {

using kube::json_member;
using kube::json_string_or_empty;
using kube::JsonArray;
using kube::JsonObject;

constexpr std::string_view kKind = "DeschedulerPolicy";

bool has_text(std::string_view list, std::string_view text) {
  JsonArray values(list);
  while (values.next()) {
    if (json_string_or_empty(values.value()) == text) return true;
  }
  return false;
}

/// Once podProtections is used, the older switch is ignored.
bool protects_local_storage(std::string_view evictor, bool otherwise) {
  const std::string_view protections = json_member(evictor, "podProtections");
  const std::string_view off = json_member(protections, "defaultDisabled");
  if (JsonArray(off).next() || JsonArray(json_member(protections, "extraEnabled")).next()) {
    return !has_text(off, "PodsWithLocalStorage");
  }
  return otherwise && !kube::json_is_true(json_member(evictor, "evictLocalStoragePods"));
}

/// What all profiles of a policy share.
core::SeenPolicy decode_head(std::string_view policy, std::string object) {
  core::SeenPolicy out;
  out.object = std::move(object);
  const std::string text = json_string_or_empty(json_member(policy, "nodeSelector"));
  if (auto nodes = core::parse_label_selector(text)) {
    out.nodes = std::move(*nodes);
  } else {
    out.problem = "its nodeSelector cannot be read: " + text;
  }
  out.bounded = kube::json_int(json_member(policy, "maxNoOfPodsToEvictPerNode")).value_or(0) > 0;
  out.protects_local_storage = !kube::json_is_true(json_member(policy, "evictLocalStoragePods"));
  return out;
}

core::SeenPolicy decode_profile(std::string_view profile, core::SeenPolicy out) {
  out.object += ", profile " + json_string_or_empty(json_member(profile, "name"));
  for (const char* const point : {"deschedule", "balance"}) {
    JsonArray enabled(json_member(json_member(json_member(profile, "plugins"), point), "enabled"));
    while (enabled.next()) out.plugins.push_back(json_string_or_empty(enabled.value()));
  }
  JsonArray configs(json_member(profile, "pluginConfig"));
  while (configs.next()) {
    const std::string name = json_string_or_empty(json_member(configs.value(), "name"));
    const std::string_view args = json_member(configs.value(), "args");
    if (name == "DefaultEvictor") out.protects_local_storage = protects_local_storage(args, out.protects_local_storage);
    if (name == "RemovePodsViolatingNodeTaints") {
      out.soft_taints = kube::json_is_true(json_member(args, "includePreferNoSchedule"));
    }
  }
  return out;
}

core::SeenPolicy decode_strategies(std::string_view policy, core::SeenPolicy out) {
  JsonObject strategies(json_member(policy, "strategies"));
  while (strategies.next()) {
    if (!kube::json_is_true(json_member(strategies.value(), "enabled"))) continue;
    std::string name(strategies.key());
    if (name == "RemovePodsViolatingNodeTaints") {
      const std::string_view params = json_member(strategies.value(), "params");
      out.soft_taints = kube::json_is_true(json_member(params, "includePreferNoSchedule"));
    }
    out.plugins.push_back(std::move(name));
  }
  return out;
}

void take_policy(const std::string& text, const std::string& object, std::vector<core::SeenPolicy>& out) {
  const auto json = yaml_to_json(text);
  if (!json) {
    core::SeenPolicy& broken = out.emplace_back();
    broken.object = object;
    broken.problem = "cannot be read: " + json.error().message;
    return;
  }
  if (json_string_or_empty(json_member(*json, "kind")) != kKind) return;
  const core::SeenPolicy head = decode_head(*json, object);
  if (!json_member(*json, "strategies").empty()) out.push_back(decode_strategies(*json, head));
  JsonArray profiles(json_member(*json, "profiles"));
  while (profiles.next()) out.push_back(decode_profile(profiles.value(), head));
}

}  // namespace

std::vector<core::SeenPolicy> decode_policies(std::string_view config_map) {
  std::vector<core::SeenPolicy> out;
  if (config_map.find(kKind) == std::string_view::npos) return out;
  const ObjectName name = decode_name(config_map);
  JsonObject data(json_member(config_map, "data"));
  while (data.next()) {
    const std::string text = json_string_or_empty(data.value());
    if (text.find(kKind) == std::string::npos) continue;
    take_policy(text, "ConfigMap " + name.ns + "/" + name.name + ", " + std::string(data.key()), out);
  }
  return out;
}

}  // namespace spillway::daemon
