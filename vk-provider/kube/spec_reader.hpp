// What the decoders of a pod's spec have in common: how they walk, and where they say what is wrong.
//
// Pure. Tolerant of absent, null and mistyped optional fields, as all decoders of this layer.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::kube {

/// Gathers what decoders find wrong. A fault is a field whose value nobody can honour; a text that is not well-formed
/// makes the whole pod unreadable.
struct Findings {
  std::vector<model::FieldUse> faults;
  bool broken = false;

  void fault(std::string path, std::string why) {
    model::FieldUse& use = faults.emplace_back();
    use.path = std::move(path);
    use.why = std::move(why);
  }
};

/// Calls f(key, value) for each member.
template <class F>
void each_member(std::string_view json, Findings& findings, F f) {
  JsonObject members(json);
  while (members.next()) f(members.key(), members.value());
  findings.broken = findings.broken || members.failed();
}

/// Calls f(index, value) for each element.
template <class F>
void each_element(std::string_view json, Findings& findings, F f) {
  JsonArray list(json);
  for (size_t i = 0; list.next(); ++i) f(i, list.value());
  findings.broken = findings.broken || list.failed();
}

inline std::string element_path(std::string_view list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

inline std::vector<std::string> decode_strings(std::string_view json, Findings& findings) {
  std::vector<std::string> out;
  each_element(json, findings, [&](size_t, std::string_view value) { out.push_back(json_string_or_empty(value)); });
  return out;
}

inline int decode_int(std::string_view json, int otherwise = 0) {
  const auto number = json_int(json).value_or(otherwise);
  return std::in_range<int>(number) ? static_cast<int>(number) : otherwise;
}

inline std::optional<std::chrono::seconds> decode_seconds(std::string_view json) {
  const auto number = json_int(json);
  return number && *number >= 0 ? std::optional(std::chrono::seconds(*number)) : std::nullopt;
}

}  // namespace spillway::kube
