#include "test/support/api_model/pod_rules.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

const json* by_name(const json& list, const json& name) {
  const auto it = std::ranges::find_if(list, [&](const json& item) { return member(item, "name") == name; });
  return it == list.end() ? nullptr : &*it;
}

/// ContainerShouldRestart: the container's own policy comes before the pod's.
bool may_run_again(const json& spec, const json& container_status) {
  const json* container = by_name(member(spec, "containers"), member(container_status, "name"));
  if (container == nullptr) return false;
  const std::string policy = container->value("restartPolicy", spec.value("restartPolicy", "Always"));
  if (policy == "Always") return true;
  return policy == "OnFailure" && container_status["state"]["terminated"].value("exitCode", 0) != 0;
}

void validate_transitions(const Object& old, const Draft& wanted, std::vector<FieldError>& errors) {
  const json& before = member(old.status(), "containerStatuses");
  const json& after = member(wanted.status(), "containerStatuses");
  for (size_t i = 0; i < before.size(); ++i) {
    if (!member(before[i], "state").contains("terminated")) continue;
    const json* now = by_name(after, member(before[i], "name"));
    if (now == nullptr || member(*now, "state").contains("terminated")) continue;
    if (may_run_again(old.spec(), before[i])) continue;
    errors.push_back(forbidden(fmt::format("status.containerStatuses[{}].state", i),
                               "may not be transitioned to non-terminated state"));
  }
}

bool is_ipv6(const json& entry) { return entry.value("ip", "").find(':') != std::string::npos; }

void validate_one_of_each_family(const json& status, const char* list, std::vector<FieldError>& errors) {
  const json& ips = member(status, list);
  if (ips.size() <= 1) return;
  if (ips.size() == 2 && is_ipv6(ips[0]) != is_ipv6(ips[1])) return;
  errors.push_back(
      invalid_value(fmt::format("status.{}", list), ips, "may specify no more than one IP for each IP family"));
}

/// The spec without what may be edited.
json fixed_part(json spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list)) continue;
    for (json& container : spec[list]) container.erase("image");
  }
  for (const char* field : {"tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds"}) spec.erase(field);
  return spec;
}

}  // namespace

void default_new_pod(Draft& pod) {
  json& spec = pod.edit(Slot::kSpec);
  if (!spec.contains("restartPolicy")) spec["restartPolicy"] = "Always";
  if (!spec.contains("terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 30;
  pod.edit(Slot::kStatus) = {{"phase", "Pending"}};
}

void complete_pod_status(const Object& old, Draft& wanted) {
  json& status = wanted.edit(Slot::kStatus);
  if (!status.is_object()) status = json::object();
  const json& before = old.status();
  for (const char* kept : {"qosClass", "observedGeneration"}) {
    if (!status.contains(kept) && before.contains(kept)) status[kept] = before[kept];
  }
  // podIP is what old kubelets write: where the two differ, it wins.
  const std::string ip = status.value("podIP", "");
  json& ips = status["podIPs"];
  if (!ips.is_array()) ips = json::array();
  if (!ip.empty() && (ips.empty() || ips[0].value("ip", "") != ip)) ips = json::array({{{"ip", ip}}});
  if (ips.empty()) {
    status.erase("podIPs");
    status.erase("podIP");
  } else {
    status["podIP"] = ips[0]["ip"];
  }
  if (const auto hosts = status.find("hostIPs"); hosts != status.end() && hosts->empty()) status.erase(hosts);
}

void validate_pod_status(const Object& old, const Draft& wanted, std::vector<FieldError>& errors) {
  const json& status = wanted.status();
  if (member(status, "qosClass") != member(old.status(), "qosClass")) {
    errors.push_back(immutable("status.qosClass", member(status, "qosClass")));
  }
  validate_transitions(old, wanted, errors);
  validate_one_of_each_family(status, "podIPs", errors);
  const json& hosts = member(status, "hostIPs");
  if (!hosts.empty() && hosts[0].value("ip", "") != status.value("hostIP", "")) {
    errors.push_back(invalid_value("status.hostIPs[0].ip", hosts[0]["ip"], "must be equal to `hostIP`"));
  }
  validate_one_of_each_family(status, "hostIPs", errors);
}

void validate_pod_spec_update(const Object& old, const Draft& wanted, std::vector<FieldError>& errors) {
  if (old.spec() == wanted.spec() || fixed_part(old.spec()) == fixed_part(wanted.spec())) return;
  errors.push_back(forbidden(
      "spec",
      "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"));
}

}  // namespace spillway::test::api_model
