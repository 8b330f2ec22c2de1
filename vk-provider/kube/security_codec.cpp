#include "vk-provider/kube/security_codec.hpp"

namespace spillway::kube {
namespace {

using Profile = model::Security::Profile;

std::vector<std::string> decode_capabilities(std::string_view json, Findings& findings) {
  std::vector<std::string> out = decode_strings(json, findings);
  for (std::string& name : out) {
    if (name.starts_with("CAP_")) name.erase(0, 4);
  }
  return out;
}

/// Localhost stands in the field table: a profile on the host's disk cannot be had.
Profile decode_profile(std::string_view json, const std::string& path, Findings& findings) {
  const std::string type = json_string_or_empty(json_member(json, "type"));
  if (type == "RuntimeDefault") return Profile::kRuntimeDefault;
  if (type == "Unconfined") return Profile::kUnconfined;
  if (type != "Localhost" && !type.empty()) findings.fault(path + ".type", "no such type of profile is known");
  return Profile::kDefault;
}

/// What pod and container have in common; the container's comes second.
bool decode_common(std::string_view key, std::string_view value, const std::string& path, model::Security& out,
                   Findings& findings) {
  if (json_is_null(value)) return false;
  if (key == "runAsUser") {
    out.user = json_int(value);
  } else if (key == "runAsGroup") {
    out.group = json_int(value);
  } else if (key == "runAsNonRoot") {
    out.non_root = json_is_true(value);
  } else if (key == "seccompProfile") {
    out.seccomp = decode_profile(value, path + ".seccompProfile", findings);
  } else if (key == "appArmorProfile") {
    out.app_armor = decode_profile(value, path + ".appArmorProfile", findings);
  } else {
    return false;
  }
  return true;
}

}  // namespace

base::Boxed<model::Security> decode_security(std::string_view pod, std::string_view container, const std::string& path,
                                             Findings& findings) {
  model::Security out;
  each_member(pod, findings, [&](std::string_view key, std::string_view value) {
    decode_common(key, value, "spec.securityContext", out, findings);
  });
  each_member(container, findings, [&](std::string_view key, std::string_view value) {
    if (decode_common(key, value, path, out, findings)) return;
    if (key == "readOnlyRootFilesystem") out.read_only_root = json_is_true(value);
    if (key == "allowPrivilegeEscalation") out.no_new_privileges = value == "false";
    if (key != "capabilities") return;
    out.add_capabilities = decode_capabilities(json_member(value, "add"), findings);
    out.drop_capabilities = decode_capabilities(json_member(value, "drop"), findings);
  });
  if (out == model::Security()) return {};
  return out;
}

}  // namespace spillway::kube
