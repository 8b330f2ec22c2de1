#include "vk-provider/kube/volume_codec.hpp"

#include <optional>
#include <string>
#include <utility>

#include "vk-provider/kube/env_codec.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::kube {
namespace {

using model::VolumeItem;
using model::VolumeSource;
using model::VolumeSpec;
using Kind = VolumeSource::Kind;

constexpr int kDefaultMode = 0644;
constexpr int kMaxMode = 0777;

std::optional<int> decode_mode(std::string_view json, const std::string& path, Findings& findings) {
  if (json_is_null(json)) return std::nullopt;
  const auto mode = json_int(json);
  if (mode && *mode >= 0 && *mode <= kMaxMode) return static_cast<int>(*mode);
  findings.fault(path, "it must be a mode from 0 to 0777 (511)");
  return std::nullopt;
}

std::vector<VolumeItem> decode_items(std::string_view json, const std::string& path, Findings& findings) {
  std::vector<VolumeItem> out;
  each_element(json, findings, [&](size_t i, std::string_view element) {
    VolumeItem& item = out.emplace_back();
    each_member(element, findings, [&](std::string_view key, std::string_view value) {
      if (key == "key") item.key = json_string_or_empty(value);
      if (key == "path") item.path = json_string_or_empty(value);
      if (key == "mode") item.mode = decode_mode(value, element_path(path, i) + ".mode", findings);
      if (key == "fieldRef") item.field = json_string_or_empty(json_member(value, "fieldPath"));
      if (key == "resourceFieldRef" && json_is_object(value)) item.resource = decode_resource_ref(value);
    });
  });
  return out;
}

std::optional<Kind> source_kind(std::string_view key) {
  if (key == "configMap") return Kind::kConfigMap;
  if (key == "secret") return Kind::kSecret;
  if (key == "downwardAPI") return Kind::kDownwardApi;
  if (key == "serviceAccountToken") return Kind::kToken;
  return std::nullopt;
}

/// A source of a projected volume, or a volume that has but one. A secret volume says secretName where all others say
/// name.
VolumeSource decode_source(Kind kind, std::string_view json, const std::string& path, Findings& findings) {
  VolumeSource out;
  out.kind = kind;
  each_member(json, findings, [&](std::string_view key, std::string_view value) {
    if (key == "name" || key == "secretName") out.name = json_string_or_empty(value);
    if (key == "optional") out.optional = json_is_true(value);
    if (key == "items") out.items = decode_items(value, path + ".items", findings);
    if (kind != Kind::kToken) return;
    if (key == "path") out.path = json_string_or_empty(value);
    if (key == "audience") out.audience = json_string_or_empty(value);
    if (key == "expirationSeconds") out.expiration = decode_seconds(value).value_or(out.expiration);
  });
  return out;
}

void decode_projected(std::string_view json, const std::string& path, VolumeSpec& out, Findings& findings) {
  each_element(json_member(json, "sources"), findings, [&](size_t i, std::string_view source) {
    const std::string at = element_path(path + ".sources", i);
    each_member(source, findings, [&](std::string_view key, std::string_view value) {
      const auto kind = source_kind(key);
      if (!kind || !json_is_object(value)) return;
      out.sources.push_back(decode_source(*kind, value, at + "." + std::string(key), findings));
    });
  });
}

void decode_empty_dir(std::string_view json, const std::string& path, VolumeSpec& out, Findings& findings) {
  out.kind = json_member(json, "medium") == "\"Memory\"" ? VolumeSpec::Kind::kMemory : VolumeSpec::Kind::kScratch;
  const std::string_view limit = json_member(json, "sizeLimit");
  if (json_is_null(limit)) return;
  const auto size = model::quantity_value(json_string(limit).value_or(std::string(limit)));
  if (!size || *size < 0) return findings.fault(path + ".sizeLimit", "it is no sensible quantity");
  if (*size > 0) out.size_limit = size;  // zero is no limit, as in the API
}

/// False if the member is no kind of volume that can be had.
bool decode_kind(std::string_view key, std::string_view value, const std::string& path, VolumeSpec& out,
                 Findings& findings) {
  if (!json_is_object(value)) return false;
  const std::string at = path + "." + std::string(key);
  const auto kind = source_kind(key);
  if (key == "emptyDir") {
    decode_empty_dir(value, at, out, findings);
    return true;
  }
  if (key == "projected") {
    decode_projected(value, at, out, findings);
  } else if (kind && *kind != Kind::kToken) {
    out.sources.push_back(decode_source(*kind, value, at, findings));
  } else {
    return false;
  }
  out.kind = VolumeSpec::Kind::kFiles;
  out.default_mode =
      decode_mode(json_member(value, "defaultMode"), at + ".defaultMode", findings).value_or(kDefaultMode);
  return true;
}

}  // namespace

std::vector<VolumeSpec> decode_volumes(std::string_view json, std::string_view withheld, Findings& findings) {
  std::vector<VolumeSpec> out;
  each_element(json, findings, [&](size_t i, std::string_view element) {
    VolumeSpec volume;
    bool known = false;
    each_member(element, findings, [&](std::string_view key, std::string_view value) {
      if (key == "name") volume.name = json_string_or_empty(value);
      known = decode_kind(key, value, element_path("spec.volumes", i), volume, findings) || known;
    });
    if (known && (withheld.empty() || volume.name != withheld)) out.push_back(std::move(volume));
  });
  return out;
}

}  // namespace spillway::kube
