// Objects of the API -> what the doctor wants to know of them.
//
// Pure. Reads only the fields that a check needs; tolerant of what is absent.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/core/doctor_facts.hpp"

namespace spillway::daemon {

/// metadata.namespace/metadata.name.
struct ObjectName {
  ObjectName() = default;
  std::string ns;
  std::string name;
};
ObjectName decode_name(std::string_view json);

/// Empty for a pod that is none of ours: it is on no node of `own`, and does not tolerate the provider taint.
std::optional<core::SeenPod> decode_seen_pod(std::string_view json, const std::set<std::string>& own);
/// One of its containers is kube-state-metrics.
bool is_state_metrics(std::string_view pod);

core::SeenBudget decode_budget(std::string_view json);
core::SeenDaemonSet decode_daemon_set(std::string_view json);
/// Empty for one that counts only some pods (scopes).
std::optional<core::SeenQuota> decode_quota(std::string_view json);
core::SeenFlavor decode_flavor(std::string_view json);
core::SeenSigning decode_signing(std::string_view json);

/// The policies of a ConfigMap, one for each profile; none if it holds no DeschedulerPolicy.
std::vector<core::SeenPolicy> decode_policies(std::string_view config_map);

}  // namespace spillway::daemon
