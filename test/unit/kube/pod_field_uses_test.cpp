// What pods set beyond what is honoured everywhere: the words of kube/pod_fields about whole specs.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::kube {
namespace {

using Json = nlohmann::json;
using model::Capability;

Json a_pod(const std::string& spec) {
  return Json{{"metadata", {{"uid", "u"}, {"name", "n"}, {"namespace", "s"}}}, {"spec", Json::parse(spec)}};
}

std::vector<model::FieldUse> uses_of(const Json& pod) {
  const auto decoded = decode_pod(pod.dump(), {});
  REQUIRE(decoded.has_value());
  return decoded->spec->uses;
}

std::vector<model::FieldUse> uses_in(const std::string& spec) { return uses_of(a_pod(spec)); }

std::vector<std::string> paths_of(const std::vector<model::FieldUse>& uses) {
  std::vector<std::string> out;
  out.reserve(uses.size());
  for (const auto& use : uses) out.push_back(use.path);
  return out;
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
                     {"spec.containers[0].livenessProbe", "restart_container"},
                     {"spec.containers[0].livenessProbe.httpGet", "dial"},
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
  const std::vector<std::string> files = {"spec.containers[0].volumeMounts[0]", "spec.volumes[0].projected"};
  CHECK(paths_of(decode("kube-api-access-x", root, path)->uses) == files);
  auto with_token = files;
  with_token.emplace_back("spec.volumes[0].projected.sources[0].serviceAccountToken");
  for (const auto& own :
       {decode("mine", token, path), decode("kube-api-access-x", token + R"(,{"secret":{"name":"mine"}})", path),
        decode("kube-api-access-x", token + R"(,{"configMap":{"name":"mine"}})", path)}) {
    CHECK_FALSE(own->service_account_token_withheld);
    CHECK(paths_of(own->uses) == with_token);
  }
}

TEST_CASE("a probe that ends what fails needs a provider that can, and so does a postStart hook") {
  const auto needs_of = [](const std::string& fields) {
    std::map<std::string, std::string> out;
    for (const auto& use :
         uses_in(R"({"restartPolicy":"Never","containers":[{"name":"a","image":"a",)" + fields + "}]}")) {
      out[use.path.substr(std::string("spec.containers[0].").size())] =
          use.needs ? std::string(to_string(*use.needs)) : "refused";
    }
    return out;
  };
  using Needs = std::map<std::string, std::string>;
  CHECK(needs_of(R"("livenessProbe":{"exec":{"command":["x"]}})") ==
        Needs{{"livenessProbe", "restart_container"}, {"livenessProbe.exec", "exec"}});
  CHECK(needs_of(R"("startupProbe":{"grpc":{"port":1}})") ==
        Needs{{"startupProbe", "restart_container"}, {"startupProbe.grpc", "dial"}});
  CHECK(needs_of(R"("readinessProbe":{"tcpSocket":{"port":1}})") == Needs{{"readinessProbe.tcpSocket", "dial"}});
  CHECK(needs_of(R"("lifecycle":{"postStart":{"sleep":{"seconds":1}}})") ==
        Needs{{"lifecycle.postStart", "restart_container"}});
  CHECK(needs_of(R"("lifecycle":{"preStop":{"sleep":{"seconds":1}}})").empty());
}

TEST_CASE("a port of another host needs nothing of the provider; one of the node is asked by nobody") {
  const auto uses_with = [](const std::string& host) {
    return uses_in(R"({"containers":[{"name":"a","image":"a","readinessProbe":{"httpGet":{"port":80,"host":")" + host +
                   R"("}},"lifecycle":{"preStop":{"httpGet":{"port":80,"host":")" + host + R"("}}}}]})");
  };
  CHECK(uses_with("monitor.example.com").empty());
  CHECK(paths_of(uses_with("")) == std::vector<std::string>{"spec.containers[0].lifecycle.preStop.httpGet",
                                                            "spec.containers[0].readinessProbe.httpGet"});
  for (const char* own : {"localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"}) {
    const auto uses = uses_with(own);
    CHECK(paths_of(uses) == std::vector<std::string>{"spec.containers[0].lifecycle.preStop.httpGet.host",
                                                     "spec.containers[0].readinessProbe.httpGet.host"});
    CHECK_FALSE(uses[0].needs);
    CHECK_THAT(uses[0].why, Catch::Contains("leave it out"));
  }
}

TEST_CASE("init containers are judged by the rows of containers, under their own path") {
  const auto uses = uses_in(R"({"containers":[{"name":"a","image":"a"}],"initContainers":[
      {"name":"side","image":"s","restartPolicy":"Always","securityContext":{"privileged":true}},
      {"name":"once","image":"o","turbo":1,"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","emptyDir":{}}]})");
  std::map<std::string, std::string> found;
  for (const auto& use : uses) found[use.path] = use.needs ? to_string(*use.needs) : "refused";
  CHECK(found == std::map<std::string, std::string>{
                     {"spec.initContainers[0]", "init_containers"},
                     {"spec.initContainers[0].securityContext.privileged", "refused"},
                     {"spec.initContainers[1]", "init_containers"},
                     {"spec.initContainers[1].turbo", "refused"},
                     {"spec.initContainers[1].volumeMounts[0]", "volumes"},
                     {"spec.volumes[0].emptyDir", "volumes"},
                 });
}

TEST_CASE("a field that nobody knows inside one that is honoured is refused, too") {
  CHECK(
      paths_of(uses_in(R"({"containers":[{"name":"a","image":"a","volumeMounts":[{"name":"v","mountPath":"/v","x":1}]}],
      "volumes":[{"name":"v","configMap":{"name":"c","items":[{"key":"k","path":"p","x":1}]}}],
      "hostAliases":[{"ip":"10.0.0.1","x":1}],"resources":{"limits":{"hugepages-2Mi":"1"}}})")) ==
      std::vector<std::string>{"spec.containers[0].volumeMounts[0]", "spec.containers[0].volumeMounts[0].x",
                               "spec.hostAliases", "spec.hostAliases[0].x", "spec.resources.limits[hugepages-2Mi]",
                               "spec.volumes[0].configMap", "spec.volumes[0].configMap.items[0].x"});
}

TEST_CASE("only the runtime class that GPU machines have anyway is accepted") {
  const auto with_class = [](const std::string& name) {
    return paths_of(uses_in(R"({"containers":[{"name":"a","image":"a"}],"runtimeClassName":")" + name + "\"}"));
  };
  CHECK(with_class("nvidia").empty());
  CHECK(with_class("gvisor") == std::vector<std::string>{"spec.runtimeClassName"});
}

TEST_CASE("a token that the pod asks for needs a provider that can replace it; without the order it is refused") {
  Json pod = a_pod(R"({"containers":[{"name":"main","image":"i:1"}]})");
  pod["spec"]["volumes"] = Json::parse(R"([{"name":"mesh","projected":{"sources":[
      {"serviceAccountToken":{"path":"t","audience":"mesh","expirationSeconds":600}}]}}])");
  const std::string path = "spec.volumes[0].projected.sources[0].serviceAccountToken";
  const auto needs = [&] {
    for (const auto& use : uses_of(pod)) {
      if (use.path == path) return use;
    }
    return model::FieldUse();
  };
  CHECK_FALSE(needs().needs);
  CHECK_THAT(needs().why, Catch::Contains("spillway.dev/send-service-account-token"));
  pod["metadata"]["annotations"] = {{"spillway.dev/send-service-account-token", "true"}};
  CHECK(needs().needs == Capability::kPutFiles);
}

TEST_CASE("an address that is not known before the start cannot be given to the container") {
  const auto why = [](const std::string& field) {
    const auto uses = uses_in(R"({"containers":[{"name":"a","image":"a","env":[{"name":"X","valueFrom":{"fieldRef":
        {"fieldPath":")" + field +
                              "\"}}}]}]}");
    REQUIRE(uses.size() <= 1);
    return uses.empty() ? std::string() : uses[0].why;
  };
  CHECK_THAT(why("status.podIP"), Catch::Contains("known only after its start"));
  CHECK_THAT(why("status.podIPs"), Catch::Contains("known only after its start"));
  CHECK_THAT(why("metadata.turbo"), Catch::Contains("no such field"));
}

}  // namespace
}  // namespace spillway::kube
