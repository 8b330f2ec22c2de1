// One row of the table of kube/pod_fields.hpp, and the words in which its parts are written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "vk-provider/model/capability.hpp"

namespace spillway::kube {

enum class FieldClass : std::uint8_t { kHonoured, kAccepted, kNeeds };

/// It covers everything below its path, unless rows below it say more: then what they do not name is unknown.
struct FieldRule {
  std::string_view path;  // spec.containers[].ports[].hostPort; a key of a map stands in brackets: limits[cpu]
  FieldClass treatment = FieldClass::kNeeds;
  std::optional<model::Capability> needs;  // only with kNeeds; empty: nothing can honour it
  std::string_view why;                    // only with kNeeds
  std::string_view harmless;               // only with kNeeds: values that ask for nothing, separated by |
};

namespace rules {

constexpr FieldRule honoured(std::string_view path) { return {path, FieldClass::kHonoured, std::nullopt, {}, {}}; }
constexpr FieldRule accepted(std::string_view path) { return {path, FieldClass::kAccepted, std::nullopt, {}, {}}; }
constexpr FieldRule needs(std::string_view path, model::Capability what, std::string_view why,
                          std::string_view harmless = {}) {
  return {path, FieldClass::kNeeds, what, why, harmless};
}
constexpr FieldRule refused(std::string_view path, std::string_view why, std::string_view harmless = {}) {
  return {path, FieldClass::kNeeds, std::nullopt, why, harmless};
}

inline constexpr std::string_view kNotYet = "it is not honoured yet";
inline constexpr std::string_view kNoDra =
    "a rented machine has no driver for resource claims; ask for GPUs under resources";
inline constexpr std::string_view kSecurity = "the provider has to apply security settings";
inline constexpr std::string_view kWindows = "rented machines run Linux";
inline constexpr std::string_view kClaim = "the provider has to attach network volumes";
inline constexpr std::string_view kLabels = "a rented machine has no SELinux labels of ours";
inline constexpr std::string_view kLocalProfile = "a profile on the disk of a rented machine is not ours to write";
inline constexpr std::string_view kNoSuchHandler = "no kubelet runs it; use exec or httpGet";

}  // namespace rules

/// The parts of the table.
std::span<const FieldRule> container_field_rules();
std::span<const FieldRule> volume_field_rules();

}  // namespace spillway::kube
