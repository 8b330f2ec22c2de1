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
      {"spec.containers[].env[].valueFrom.fieldRef", "refused"},
      {"spec.containers[].env[].valueFrom.resourceFieldRef", "refused"},
      {"spec.containers[].env[].valueFrom.fileKeyRef", "refused"},
      {"spec.containers[].resources", "honoured"},
      {"spec.containers[].resources.claims", "refused"},
      {"spec.containers[].resizePolicy", "accepted"},
      {"spec.containers[].restartPolicy", "refused"},
      {"spec.containers[].restartPolicyRules", "refused"},
      {"spec.containers[].volumeMounts", "volumes"},
      {"spec.containers[].volumeDevices", "network_volumes"},
      {"spec.containers[].livenessProbe", "exec"},
      {"spec.containers[].readinessProbe", "exec"},
      {"spec.containers[].startupProbe", "exec"},
      {"spec.containers[].lifecycle", "exec"},
      {"spec.containers[].lifecycle.stopSignal", "stop_signal"},
      {"spec.containers[].terminationMessagePath", "refused"},
      {"spec.containers[].terminationMessagePolicy", "refused"},
      {"spec.containers[].securityContext", "security_context"},
      {"spec.containers[].securityContext.privileged", "refused"},
      {"spec.containers[].securityContext.windowsOptions", "refused"},
      {"spec.containers[].stdin", "tty"},
      {"spec.containers[].stdinOnce", "tty"},
      {"spec.containers[].tty", "tty"},
      {"spec.initContainers[]", "init_containers"},
      {"spec.ephemeralContainers[]", "refused"},
      {"spec.restartPolicy", "honoured"},
      {"spec.terminationGracePeriodSeconds", "honoured"},
      {"spec.readinessGates", "honoured"},
      {"spec.activeDeadlineSeconds", "refused"},
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
      {"spec.enableServiceLinks", "accepted"},
      {"spec.imagePullSecrets", "registry_auth"},
      {"spec.dnsPolicy", "refused"},
      {"spec.dnsConfig", "refused"},
      {"spec.hostname", "refused"},
      {"spec.subdomain", "refused"},
      {"spec.hostnameOverride", "refused"},
      {"spec.setHostnameAsFQDN", "refused"},
      {"spec.hostAliases", "refused"},
      {"spec.hostNetwork", "host_network"},
      {"spec.hostPID", "refused"},
      {"spec.hostIPC", "refused"},
      {"spec.hostUsers", "refused"},
      {"spec.shareProcessNamespace", "refused"},
      {"spec.runtimeClassName", "refused"},
      {"spec.os", "refused"},
      {"spec.resources", "refused"},
      {"spec.resourceClaims", "refused"},
      {"spec.securityContext", "security_context"},
      {"spec.securityContext.windowsOptions", "refused"},
      {"spec.securityContext.sysctls", "refused"},
      {"spec.volumes[].name", "accepted"},
      {"spec.volumes[].emptyDir", "volumes"},
      {"spec.volumes[].emptyDir.medium", "refused"},  // one that does not exist; Memory is below
      {"spec.volumes[].configMap", "files"},
      {"spec.volumes[].secret", "files"},
      {"spec.volumes[].downwardAPI", "files"},
      {"spec.volumes[].projected", "files"},
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

/// A pod with one container, that sets nothing but the field.
Json pod_with(const Field& field) {
  Json pod = Json::parse(R"({"metadata":{"uid":"u","name":"n","namespace":"s"},
                             "spec":{"containers":[{"name":"main","image":"i:1"}]}})");
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

std::vector<model::FieldUse> uses_in(const std::string& spec) {
  return uses_of(Json{{"metadata", {{"uid", "u"}, {"name", "n"}, {"namespace", "s"}}}, {"spec", Json::parse(spec)}});
}

TEST_CASE("every field of PodSpec is honoured, accepted or reported") {
  for (const Field& field : api_fields()) {
    CAPTURE(field.path);
    const std::string expected = expectation_of(field.path);
    REQUIRE_FALSE(expected.empty());

    const auto uses = uses_of(pod_with(field));
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
    CHECK(rule->treatment == FieldClass::kNeeds);
    REQUIRE_FALSE(uses.empty());  // the table's word comes first; a decoder may find the sample itself wrong, too
    CHECK((uses[0].needs ? to_string(*uses[0].needs) : "refused") == expected);
    CHECK_FALSE(uses[0].why.empty());
    std::string pattern = uses[0].path;
    for (size_t i = pattern.find("[0]"); i != std::string::npos; i = pattern.find("[0]")) pattern.replace(i, 3, "[]");
    CHECK(covers(pattern, field.path));
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

TEST_CASE("defaults of the API server ask for nothing") {
  CHECK(paths_of(uses_in(R"({"containers":[{"name":"main","image":"i","resources":{},"env":[],"envFrom":null,
      "ports":[{"containerPort":80,"protocol":"TCP","hostPort":0}],"securityContext":{},"lifecycle":{},
      "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","stdin":false,"tty":false,
      "imagePullPolicy":"Always","livenessProbe":null}],
      "initContainers":[],"volumes":[],"imagePullSecrets":[],"restartPolicy":"Always","dnsPolicy":"ClusterFirst",
      "securityContext":{},"hostNetwork":false,"hostPID":false,"hostUsers":true,"shareProcessNamespace":false,
      "enableServiceLinks":false,"os":{"name":"linux"},"hostname":"","affinity":{},"resources":{}})"))
            .empty());
}

TEST_CASE("all that cannot be had is named in one go, by its path") {
  const auto uses = uses_in(R"({
      "initContainers":[{"name":"i","image":"i"},{"name":"j","image":"j"}],
      "containers":[
        {"name":"a","image":"a","volumeMounts":[{"name":"shm","mountPath":"/dev/shm"},{"name":"cfg","mountPath":"/c"}],
         "livenessProbe":{"httpGet":{"port":80}},"securityContext":{"privileged":true,"runAsUser":0}},
        {"name":"b","image":"b","env":[{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}]}],
      "volumes":[{"name":"shm","emptyDir":{"medium":"Memory"}},{"name":"cfg","configMap":{"name":"c"}},
                 {"name":"huge","emptyDir":{"medium":"HugePages"}},{"name":"scratch","emptyDir":{}}],
      "hostPID":true,"fromTheFuture":{"x":1}})");
  std::map<std::string, std::string> found;
  for (const auto& use : uses) found[use.path] = use.needs ? to_string(*use.needs) : "refused";
  CHECK(found == std::map<std::string, std::string>{
                     {"spec.initContainers[0]", "init_containers"},
                     {"spec.initContainers[1]", "init_containers"},
                     {"spec.containers[0].volumeMounts[0]", "shm"},
                     {"spec.containers[0].volumeMounts[1]", "files"},
                     {"spec.containers[0].livenessProbe", "exec"},
                     {"spec.containers[0].securityContext.privileged", "refused"},
                     {"spec.containers[0].securityContext.runAsUser", "security_context"},
                     {"spec.containers[1]", "multi_container"},
                     {"spec.containers[1].env[0].valueFrom.fieldRef", "refused"},
                     {"spec.volumes[0].emptyDir", "shm"},
                     {"spec.volumes[1].configMap", "files"},
                     {"spec.volumes[2].emptyDir", "refused"},
                     {"spec.volumes[3].emptyDir", "volumes"},
                     {"spec.hostPID", "refused"},
                     {"spec.fromTheFuture", "refused"},
                 });
}

TEST_CASE("fields that a newer API server has are refused wherever they stand") {
  CHECK(paths_of(uses_in(R"({"containers":[{"name":"a","image":"a","turbo":true,
      "env":[{"name":"X","valueFrom":{"oracleRef":{"name":"o"}}}],"ports":[{"containerPort":1,"spin":"up"}]}],
      "volumes":[{"name":"v","wormhole":{}}]})")) ==
        std::vector<std::string>{"spec.containers[0].env[0].valueFrom.oracleRef", "spec.containers[0].ports[0].spin",
                                 "spec.containers[0].turbo", "spec.volumes[0].wormhole"});
}

TEST_CASE("resources that cannot be rented are named") {
  const auto uses = uses_in(R"({"containers":[{"name":"a","image":"a","resources":{
      "limits":{"nvidia.com/mig-1g.12gb":"1","cpu":"x","nvidia.com/gpu":"1"},"requests":{"hugepages-2Mi":"4Mi"}}},
      {"name":"b","image":"b","resources":{"limits":{"amd.com/gpu":"1"}}}]})");
  CHECK(paths_of(uses) == std::vector<std::string>{"spec.containers[0].resources.limits[nvidia.com/mig-1g.12gb]",
                                                   "spec.containers[0].resources.requests[hugepages-2Mi]",
                                                   "spec.containers[1]", "spec.containers[0].resources.limits[cpu]",
                                                   "spec.containers[1].resources.limits[amd.com/gpu]"});
}

TEST_CASE("only the token volume that the API server adds is withheld without a word") {
  const std::string token = R"({"serviceAccountToken":{"path":"token"}})";
  const std::string root = R"({"configMap":{"name":"kube-root-ca.crt"}})";
  const auto decode = [&](const std::string& name, const std::string& sources, const std::string& mount) {
    const std::string text = R"({"metadata":{"uid":"u","name":"n","namespace":"s"},"spec":{"containers":[{"name":"a",
      "image":"a","volumeMounts":[{"name":")" +
                             name + R"(","mountPath":")" + mount + R"("}]}],"volumes":[{"name":")" + name +
                             R"(","projected":{"sources":[)" + sources + "]}}]}}";
    auto pod = decode_pod(text, {});
    REQUIRE(pod.has_value());
    return pod->spec;
  };
  const std::string path = "/var/run/secrets/kubernetes.io/serviceaccount";
  const auto plain = decode("kube-api-access-x", token + "," + root, path);
  CHECK(plain->uses.empty());
  CHECK(plain->service_account_token_withheld);

  CHECK(paths_of(decode("kube-api-access-x", token, "/elsewhere")->uses) ==
        std::vector<std::string>{"spec.containers[0].volumeMounts[0]"});
  for (const auto& own : {decode("mine", token, path), decode("kube-api-access-x", root, path),
                          decode("kube-api-access-x", token + R"(,{"secret":{"name":"mine"}})", path),
                          decode("kube-api-access-x", token + R"(,{"configMap":{"name":"mine"}})", path)}) {
    CHECK_FALSE(own->service_account_token_withheld);
    CHECK(paths_of(own->uses) ==
          std::vector<std::string>{"spec.containers[0].volumeMounts[0]", "spec.volumes[0].projected"});
  }
}

}  // namespace
}  // namespace spillway::kube
