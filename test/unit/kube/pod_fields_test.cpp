#include "vk-provider/kube/pod_fields.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::kube {
namespace {

using Json = nlohmann::json;
using model::Capability;

/// What is expected of a field: one of the three, and of what is needed the capability (`refused`: nothing helps).
/// The longest path that a field begins with decides. Written without a look at the table that is tested.
const std::map<std::string, std::string>& expectations() {
  static const std::map<std::string, std::string> table = {
      {"spec.containers[].name", "honoured"},
      {"spec.containers[].image", "honoured"},
      {"spec.containers[].command", "honoured"},
      {"spec.containers[].args", "honoured"},
      {"spec.containers[].workingDir", "honoured"},
      {"spec.containers[].imagePullPolicy", "honoured"},
      {"spec.containers[].ports", "honoured"},
      {"spec.containers[].ports[].hostPort", "refused"},
      {"spec.containers[].ports[].hostIP", "refused"},
      {"spec.containers[].env", "honoured"},
      {"spec.containers[].envFrom", "honoured"},
      {"spec.containers[].env[].valueFrom.fieldRef", "honoured"},
      {"spec.containers[].env[].valueFrom.resourceFieldRef", "honoured"},
      {"spec.containers[].env[].valueFrom.fileKeyRef", "refused"},
      {"spec.containers[].resources", "honoured"},
      {"spec.containers[].resources.claims", "refused"},
      {"spec.containers[].resizePolicy", "accepted"},
      {"spec.containers[].restartPolicy", "restart_container"},
      {"spec.containers[].restartPolicyRules", "restart_container"},
      {"spec.containers[].restartPolicyRules[].action", "refused"},              // one that does not exist
      {"spec.containers[].restartPolicyRules[].exitCodes.operator", "refused"},  // the same
      {"spec.containers[].volumeMounts", "volumes"},
      {"spec.containers[].volumeMounts[].mountPropagation", "refused"},
      {"spec.containers[].volumeDevices", "network_volumes"},
      {"spec.containers[].livenessProbe", "restart_container"},  // it ends what fails
      {"spec.containers[].livenessProbe.initialDelaySeconds", "honoured"},
      {"spec.containers[].livenessProbe.timeoutSeconds", "honoured"},
      {"spec.containers[].livenessProbe.periodSeconds", "honoured"},
      {"spec.containers[].livenessProbe.successThreshold", "honoured"},
      {"spec.containers[].livenessProbe.failureThreshold", "honoured"},
      {"spec.containers[].livenessProbe.terminationGracePeriodSeconds", "honoured"},
      {"spec.containers[].livenessProbe.exec", "exec"},
      {"spec.containers[].livenessProbe.httpGet", "dial"},
      {"spec.containers[].livenessProbe.httpGet.host", "restart_container"},  // asked from here
      {"spec.containers[].livenessProbe.tcpSocket", "dial"},
      {"spec.containers[].livenessProbe.tcpSocket.host", "restart_container"},  // asked from here
      {"spec.containers[].livenessProbe.grpc", "dial"},
      {"spec.containers[].readinessProbe", "honoured"},
      {"spec.containers[].readinessProbe.exec", "exec"},
      {"spec.containers[].readinessProbe.httpGet", "dial"},
      {"spec.containers[].readinessProbe.httpGet.host", "honoured"},
      {"spec.containers[].readinessProbe.tcpSocket", "dial"},
      {"spec.containers[].readinessProbe.tcpSocket.host", "honoured"},
      {"spec.containers[].readinessProbe.grpc", "dial"},
      {"spec.containers[].startupProbe", "restart_container"},  // it ends what fails
      {"spec.containers[].startupProbe.initialDelaySeconds", "honoured"},
      {"spec.containers[].startupProbe.timeoutSeconds", "honoured"},
      {"spec.containers[].startupProbe.periodSeconds", "honoured"},
      {"spec.containers[].startupProbe.successThreshold", "honoured"},
      {"spec.containers[].startupProbe.failureThreshold", "honoured"},
      {"spec.containers[].startupProbe.terminationGracePeriodSeconds", "honoured"},
      {"spec.containers[].startupProbe.exec", "exec"},
      {"spec.containers[].startupProbe.httpGet", "dial"},
      {"spec.containers[].startupProbe.httpGet.host", "restart_container"},  // asked from here
      {"spec.containers[].startupProbe.tcpSocket", "dial"},
      {"spec.containers[].startupProbe.tcpSocket.host", "restart_container"},  // asked from here
      {"spec.containers[].startupProbe.grpc", "dial"},
      {"spec.containers[].lifecycle.postStart.exec", "exec"},
      {"spec.containers[].lifecycle.postStart.httpGet", "dial"},
      {"spec.containers[].lifecycle.postStart.httpGet.host", "restart_container"},
      {"spec.containers[].lifecycle.postStart.sleep", "restart_container"},
      {"spec.containers[].lifecycle.postStart.tcpSocket", "refused"},
      {"spec.containers[].lifecycle.preStop.exec", "exec"},
      {"spec.containers[].lifecycle.preStop.httpGet", "dial"},
      {"spec.containers[].lifecycle.preStop.httpGet.host", "honoured"},
      {"spec.containers[].lifecycle.preStop.sleep", "honoured"},
      {"spec.containers[].lifecycle.preStop.tcpSocket", "refused"},
      {"spec.containers[].lifecycle.stopSignal", "stop_signal"},
      {"spec.containers[].terminationMessagePath", "termination_message"},
      {"spec.containers[].terminationMessagePolicy", "termination_message"},
      {"spec.containers[].securityContext", "security_context"},
      {"spec.containers[].securityContext.privileged", "refused"},
      {"spec.containers[].securityContext.procMount", "refused"},
      {"spec.containers[].securityContext.seLinuxOptions", "refused"},
      {"spec.containers[].securityContext.seccompProfile.localhostProfile", "refused"},
      {"spec.containers[].securityContext.appArmorProfile.localhostProfile", "refused"},
      {"spec.containers[].securityContext.windowsOptions", "refused"},
      {"spec.containers[].stdin", "tty"},
      {"spec.containers[].stdinOnce", "tty"},
      {"spec.containers[].tty", "tty"},
      {"spec.initContainers[]", "init_containers"},
      {"spec.ephemeralContainers[]", "refused"},
      {"spec.restartPolicy", "honoured"},
      {"spec.terminationGracePeriodSeconds", "honoured"},
      {"spec.readinessGates", "honoured"},
      {"spec.activeDeadlineSeconds", "honoured"},
      {"spec.nodeName", "accepted"},
      {"spec.nodeSelector", "accepted"},
      {"spec.affinity", "accepted"},
      {"spec.tolerations", "accepted"},
      {"spec.topologySpreadConstraints", "accepted"},
      {"spec.schedulerName", "accepted"},
      {"spec.schedulingGates", "accepted"},
      {"spec.schedulingGroup", "accepted"},
      {"spec.priority", "accepted"},
      {"spec.priorityClassName", "accepted"},
      {"spec.preemptionPolicy", "accepted"},
      {"spec.overhead", "accepted"},
      {"spec.serviceAccountName", "accepted"},
      {"spec.serviceAccount", "accepted"},
      {"spec.automountServiceAccountToken", "accepted"},
      {"spec.enableServiceLinks", "honoured"},
      {"spec.imagePullSecrets", "registry_auth"},
      {"spec.dnsPolicy", "dns_config"},
      {"spec.dnsConfig", "dns_config"},
      {"spec.hostname", "hostname"},
      {"spec.subdomain", "hostname"},
      {"spec.hostnameOverride", "refused"},
      {"spec.setHostnameAsFQDN", "hostname"},
      {"spec.hostAliases", "host_aliases"},
      {"spec.hostNetwork", "host_network"},
      {"spec.hostPID", "refused"},
      {"spec.hostIPC", "refused"},
      {"spec.hostUsers", "refused"},
      {"spec.shareProcessNamespace", "shared_processes"},
      {"spec.runtimeClassName", "refused"},
      {"spec.os", "refused"},
      {"spec.resources", "honoured"},
      {"spec.resources.claims", "refused"},
      {"spec.resourceClaims", "refused"},
      {"spec.securityContext", "security_context"},
      {"spec.securityContext.windowsOptions", "refused"},
      {"spec.securityContext.sysctls", "refused"},
      {"spec.securityContext.seLinuxOptions", "refused"},
      {"spec.securityContext.seLinuxChangePolicy", "accepted"},
      {"spec.securityContext.fsGroupChangePolicy", "accepted"},
      {"spec.securityContext.supplementalGroupsPolicy", "refused"},
      {"spec.securityContext.seccompProfile.localhostProfile", "refused"},
      {"spec.securityContext.appArmorProfile.localhostProfile", "refused"},
      {"spec.volumes[].name", "accepted"},
      {"spec.volumes[].emptyDir", "volumes"},
      {"spec.volumes[].emptyDir.medium", "refused"},  // one that does not exist; Memory is below
      {"spec.volumes[].configMap", "files"},
      {"spec.volumes[].secret", "files"},
      {"spec.volumes[].downwardAPI", "files"},
      {"spec.volumes[].projected", "files"},
      {"spec.volumes[].projected.sources[].serviceAccountToken", "refused"},  // without the annotation
      {"spec.volumes[].projected.sources[].clusterTrustBundle", "refused"},
      {"spec.volumes[].projected.sources[].podCertificate", "refused"},
      {"spec.volumes[].persistentVolumeClaim", "network_volumes"},
      {"spec.volumes[].ephemeral", "network_volumes"},
      {"spec.volumes[].awsElasticBlockStore", "refused"},
      {"spec.volumes[].azureDisk", "refused"},
      {"spec.volumes[].azureFile", "refused"},
      {"spec.volumes[].cephfs", "refused"},
      {"spec.volumes[].cinder", "refused"},
      {"spec.volumes[].csi", "refused"},
      {"spec.volumes[].fc", "refused"},
      {"spec.volumes[].flexVolume", "refused"},
      {"spec.volumes[].flocker", "refused"},
      {"spec.volumes[].gcePersistentDisk", "refused"},
      {"spec.volumes[].gitRepo", "refused"},
      {"spec.volumes[].glusterfs", "refused"},
      {"spec.volumes[].hostPath", "refused"},
      {"spec.volumes[].image", "refused"},
      {"spec.volumes[].iscsi", "refused"},
      {"spec.volumes[].nfs", "refused"},
      {"spec.volumes[].photonPersistentDisk", "refused"},
      {"spec.volumes[].portworxVolume", "refused"},
      {"spec.volumes[].quobyte", "refused"},
      {"spec.volumes[].rbd", "refused"},
      {"spec.volumes[].scaleIO", "refused"},
      {"spec.volumes[].storageos", "refused"},
      {"spec.volumes[].vsphereVolume", "refused"},
  };
  return table;
}

bool covers(const std::string& above, const std::string& path) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '.' ||
                                     path[above.size()] == '[' || path[above.size()] == '{');
}

std::string expectation_of(const std::string& path) {
  std::string best;
  std::string longest;
  for (const auto& [above, expected] : expectations()) {
    if (covers(above, path) && above.size() > longest.size()) {
      longest = above;
      best = expected;
    }
  }
  return best;
}

struct Field {
  std::string path;
  std::string type;
};

std::vector<Field> api_fields() {
  std::ifstream file(std::string(SPILLWAY_SOURCE_DIR) + "/test/data/pod_spec_fields.txt");
  REQUIRE(file.good());
  std::vector<Field> out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const size_t blank = line.find(' ');
    REQUIRE(blank != std::string::npos);
    out.push_back({line.substr(0, blank), line.substr(blank + 1)});
  }
  REQUIRE(out.size() > 400);
  return out;
}

/// A value that is not the field's default.
Json sample(const Field& field) {
  if (field.path.ends_with("hostUsers") || field.path.ends_with("allowPrivilegeEscalation")) return false;
  if (field.type == "boolean") return true;
  if (field.type == "integer") return 7;
  if (field.type == "quantity") return "1";
  if (field.type == "object") return Json{{"name", "x"}};
  return "x";
}

/// A pod with one container.
Json plain_pod() {
  return Json::parse(R"({"metadata":{"uid":"u","name":"n","namespace":"s"},
                         "spec":{"containers":[{"name":"main","image":"i:1"}]}})");
}

/// A number of a probe says nothing without a handler, nor a handler's field without its port. Empty for other fields.
std::string probe_of(const std::string& path) {
  const size_t at = path.find("Probe.");
  return at == std::string::npos ? "" : path.substr(0, at + 5).substr(std::string("spec.containers[].").size());
}

std::string handler_of(const std::string& path) {
  for (const std::string word : {".httpGet", ".tcpSocket", ".grpc"}) {
    const size_t at = path.find(word + ".");
    if (at != std::string::npos) return word.substr(1);
  }
  return path.find(".exec.") == std::string::npos && path.find(".sleep.") == std::string::npos ? "" : "exec";
}

/// It sets the field, and nothing else but what has to stand beside it.
Json pod_with(const Field& field) {
  Json pod = plain_pod();
  Json* at = &pod;
  std::stringstream steps(field.path);
  for (std::string step; std::getline(steps, step, '.');) {
    const bool list = step.ends_with("[]");
    const bool map = step.ends_with("{}");
    at = &(*at)[list || map ? step.substr(0, step.size() - 2) : step];
    if (list) at = &(*at)[0];
    if (map) at = &(*at)["cpu"];
  }
  *at = sample(field);
  if (field.path.find(".env[].valueFrom.fieldRef.") != std::string::npos) {
    // Of the paths that a pod may read only those that exist are honoured.
    const std::string list = field.path.substr(5, field.path.find("[]") - 5);
    pod["spec"][list][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] = "metadata.name";
  }
  const std::string probe = probe_of(field.path);
  const std::string handler = handler_of(field.path);
  if (probe.empty() || handler == "exec") return pod;
  Json& around = pod["spec"]["containers"][0][probe];
  if (handler.empty()) around["exec"]["command"] = {"true"};
  if (!handler.empty() && !around[handler].contains("port")) around[handler]["port"] = 80;
  return pod;
}

/// What the field's pod sets beside it.
Json pod_around(const Field& field) {
  Json pod = plain_pod();
  const std::string probe = probe_of(field.path);
  if (!probe.empty() && handler_of(field.path).empty()) {
    pod["spec"]["containers"][0][probe]["exec"]["command"] = {"true"};
  }
  return pod;
}

std::vector<model::FieldUse> uses_of(const Json& pod) {
  const auto decoded = decode_pod(pod.dump(), {});
  REQUIRE(decoded.has_value());
  return decoded->spec->uses;
}

std::vector<std::string> paths_of(const std::vector<model::FieldUse>& uses) {
  std::vector<std::string> out;
  out.reserve(uses.size());
  for (const auto& use : uses) out.push_back(use.path);
  return out;
}

/// `spec.containers[0].x` -> `spec.containers[].x`
std::string pattern_of(std::string path) {
  for (size_t i = path.find("[0]"); i != std::string::npos; i = path.find("[0]")) path.replace(i, 3, "[]");
  return path;
}

/// The uses that the field brings about, the most precise one first.
std::vector<model::FieldUse> uses_by(const Field& field) {
  const auto around = paths_of(uses_of(pod_around(field)));
  std::vector<model::FieldUse> out;
  for (auto& use : uses_of(pod_with(field))) {
    if (std::ranges::find(around, use.path) != around.end()) continue;
    if (covers(pattern_of(use.path), field.path)) out.push_back(std::move(use));
  }
  std::ranges::sort(out, [](const auto& a, const auto& b) { return a.path.size() > b.path.size(); });
  return out;
}

TEST_CASE("every field of PodSpec is honoured, accepted or reported") {
  for (const Field& field : api_fields()) {
    CAPTURE(field.path);
    const std::string expected = expectation_of(field.path);
    REQUIRE_FALSE(expected.empty());

    const auto uses = uses_by(field);
    const bool taken = expected == "honoured" || expected == "accepted";
    REQUIRE(uses.empty() == taken);

    const std::string looked_up =
        field.path.substr(0, field.path.find('{')) + (field.path.ends_with("{}") ? "[cpu]" : "");
    const FieldRule* const rule = find_pod_field_rule(looked_up);
    REQUIRE(rule != nullptr);
    if (taken) {
      CHECK(rule->treatment == (expected == "honoured" ? FieldClass::kHonoured : FieldClass::kAccepted));
      continue;
    }
    CHECK((uses[0].needs ? to_string(*uses[0].needs) : "refused") == expected);
    CHECK_FALSE(uses[0].why.empty());
    CHECK(find_pod_field_rule(pattern_of(uses[0].path))->treatment == FieldClass::kNeeds);
  }
}

TEST_CASE("no expectation and no rule is left over from a field that is gone") {
  const auto fields = api_fields();
  const auto exists = [&](const std::string& path) {
    return std::ranges::any_of(fields, [&](const Field& field) { return covers(path, field.path); });
  };
  for (const auto& [path, expected] : expectations()) {
    CAPTURE(path);
    CHECK(exists(path));
  }
  std::set<std::string_view> seen;
  for (const FieldRule& rule : pod_field_rules()) {
    CAPTURE(rule.path);
    CHECK(seen.insert(rule.path).second);
    const std::string path(rule.path);
    CHECK(exists(path.find("resources.") == std::string::npos ? path : path.substr(0, path.find('[', 20))));
  }
}

}  // namespace
}  // namespace spillway::kube
