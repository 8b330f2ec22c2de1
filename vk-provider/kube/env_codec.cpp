#include "vk-provider/kube/env_codec.hpp"

#include <optional>
#include <utility>

namespace spillway::kube {
namespace {

using model::ConfigRef;

ConfigRef decode_ref(std::string_view json, ConfigRef::Kind kind) {
  ConfigRef out;
  out.kind = kind;
  out.name = json_string_or_empty(json_member(json, "name"));
  out.key = json_string_or_empty(json_member(json, "key"));
  out.optional = json_is_true(json_member(json, "optional"));
  return out;
}

void decode_value_from(std::string_view json, model::EnvVar& out, Findings& findings) {
  each_member(json, findings, [&](std::string_view key, std::string_view value) {
    if (!json_is_object(value)) return;
    if (key == "configMapKeyRef") out.from = decode_ref(value, ConfigRef::Kind::kConfigMap);
    if (key == "secretKeyRef") out.from = decode_ref(value, ConfigRef::Kind::kSecret);
    if (key == "fieldRef") out.field = json_string_or_empty(json_member(value, "fieldPath"));
    if (key == "resourceFieldRef") out.resource = decode_resource_ref(value);
  });
}

}  // namespace

model::ResourceRef decode_resource_ref(std::string_view json) {
  model::ResourceRef out;
  out.container = json_string_or_empty(json_member(json, "containerName"));
  out.resource = json_string_or_empty(json_member(json, "resource"));
  const std::string_view divisor = json_member(json, "divisor");
  out.divisor = json_string(divisor).value_or(json_is_null(divisor) ? "" : std::string(divisor));
  if (out.divisor == "0") out.divisor.clear();
  return out;
}

std::vector<ConfigRef> decode_env_from(std::string_view json, Findings& findings) {
  std::vector<ConfigRef> out;
  each_element(json, findings, [&](size_t, std::string_view element) {
    std::optional<ConfigRef> ref;
    std::string prefix;
    each_member(element, findings, [&](std::string_view key, std::string_view value) {
      if (key == "prefix") prefix = json_string_or_empty(value);
      if (!json_is_object(value)) return;
      if (key == "configMapRef") ref = decode_ref(value, ConfigRef::Kind::kConfigMap);
      if (key == "secretRef") ref = decode_ref(value, ConfigRef::Kind::kSecret);
    });
    if (!ref) return;
    ref->prefix = std::move(prefix);
    out.push_back(std::move(*ref));
  });
  return out;
}

std::vector<model::EnvVar> decode_env(std::string_view json, Findings& findings) {
  std::vector<model::EnvVar> out;
  each_element(json, findings, [&](size_t, std::string_view element) {
    model::EnvVar& variable = out.emplace_back();
    each_member(element, findings, [&](std::string_view key, std::string_view value) {
      if (key == "name") variable.name = json_string_or_empty(value);
      if (key == "value") variable.value = json_string_or_empty(value);
      if (key == "valueFrom") decode_value_from(value, variable, findings);
    });
  });
  return out;
}

}  // namespace spillway::kube
