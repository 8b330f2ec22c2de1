#include "vk-provider/kube/pod_spec_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::kube {
namespace {

using Json = nlohmann::json;
using model::Handler;
using model::VolumeSource;
using model::VolumeSpec;
using std::chrono::seconds;

Json a_pod(Json spec) {
  return Json{{"metadata", {{"uid", "u"}, {"name", "n"}, {"namespace", "s"}}}, {"spec", std::move(spec)}};
}

model::PodSpecPtr decode(const Json& pod) {
  auto decoded = decode_pod(pod.dump(), {});
  REQUIRE(decoded.has_value());
  return decoded->spec;
}

model::PodSpecPtr decode_spec(const std::string& text) { return decode(a_pod(Json::parse(text))); }

model::ContainerSpec decode_one(const std::string& container) {
  return decode_spec(R"({"containers":[)" + container + "]}")->containers.at(0);
}

/// The reason that stands at a path; empty if there is none.
std::string why(const model::PodSpec& pod, const std::string& path) {
  for (const auto& use : pod.uses) {
    if (use.path == path && !use.needs) return use.why;
  }
  return {};
}

TEST_CASE("init containers and sidecars are containers like any other") {
  const auto pod = decode_spec(R"({"initContainers":[
      {"name":"fetch","image":"f:1","args":["a"],"resources":{"limits":{"memory":"1Gi"}}},
      {"name":"proxy","image":"p:1","restartPolicy":"Always","ports":[{"name":"http","containerPort":80}],
       "readinessProbe":{"httpGet":{"port":"http"}}}],
      "containers":[{"name":"main","image":"m:1"}]})");
  REQUIRE(pod->extras);
  const auto& init = pod->extras->init_containers;
  REQUIRE(init.size() == 2);
  CHECK(init[0].name == "fetch");
  CHECK(init[0].args == std::vector<std::string>{"a"});
  CHECK(init[0].resources.memory_limit == 1LL << 30);
  CHECK_FALSE(init[0].restart_policy);
  CHECK(init[1].restart_policy == model::RestartPolicy::kAlways);
  REQUIRE(init[1].readiness_probe);
  CHECK(init[1].readiness_probe->handler.port == 80);
  CHECK(pod->containers.size() == 1);
}

TEST_CASE("a pod that sets nothing special has no extras") {
  const auto pod = decode_spec(R"({"containers":[{"name":"a","image":"a"}],"initContainers":[],"volumes":null,
      "hostname":"","shareProcessNamespace":false,"dnsPolicy":"ClusterFirst","hostAliases":[],"imagePullSecrets":[],
      "securityContext":{},"setHostnameAsFQDN":false,"activeDeadlineSeconds":null,"resources":{}})");
  CHECK_FALSE(pod->extras);
  CHECK_FALSE(pod->containers[0].security);
  CHECK_FALSE(pod->containers[0].liveness_probe);
  CHECK(pod->containers[0].termination_message_path == "/dev/termination-log");
  CHECK(pod->service_links);
  CHECK_FALSE(pod->tolerates_everything);
}

TEST_CASE("probes have the API's defaults, and every number that is set") {
  const auto plain = decode_one(R"({"name":"a","image":"a","livenessProbe":{"exec":{"command":["test","-f","/x"]}}})");
  REQUIRE(plain.liveness_probe);
  const model::Probe& probe = *plain.liveness_probe;
  CHECK(probe.handler.kind == Handler::Kind::kExec);
  CHECK(probe.handler.command == std::vector<std::string>{"test", "-f", "/x"});
  CHECK(probe.initial_delay == seconds(0));
  CHECK(probe.timeout == seconds(1));
  CHECK(probe.period == seconds(10));
  CHECK(probe.success_threshold == 1);
  CHECK(probe.failure_threshold == 3);
  CHECK_FALSE(probe.grace);

  const auto full = decode_one(R"({"name":"a","image":"a","readinessProbe":{"grpc":{"port":9000,"service":"ready"},
      "initialDelaySeconds":5,"timeoutSeconds":2,"periodSeconds":7,"successThreshold":4,"failureThreshold":9,
      "terminationGracePeriodSeconds":0}})");
  REQUIRE(full.readiness_probe);
  CHECK(full.readiness_probe->handler.kind == Handler::Kind::kGrpc);
  CHECK(full.readiness_probe->handler.port == 9000);
  CHECK(full.readiness_probe->handler.service == "ready");
  CHECK(full.readiness_probe->initial_delay == seconds(5));
  CHECK(full.readiness_probe->timeout == seconds(2));
  CHECK(full.readiness_probe->period == seconds(7));
  CHECK(full.readiness_probe->success_threshold == 4);
  CHECK(full.readiness_probe->failure_threshold == 9);
  CHECK(full.readiness_probe->grace == seconds(0));
}

TEST_CASE("an HTTP handler keeps its path, scheme, host and headers") {
  const auto container = decode_one(R"({"name":"a","image":"a","startupProbe":{"httpGet":{"port":8443,"path":"/up?x=1",
      "scheme":"HTTPS","host":"h.example","httpHeaders":[{"name":"X-Key","value":"v"}]}},
      "lifecycle":{"postStart":{"httpGet":{"port":80}},"preStop":{"sleep":{"seconds":5}},"stopSignal":"SIGUSR1"}})");
  const Handler& handler = container.startup_probe->handler;
  CHECK(handler.kind == Handler::Kind::kHttpGet);
  CHECK(handler.port == 8443);
  CHECK(handler.path == "/up?x=1");
  CHECK(handler.https);
  CHECK(handler.host == "h.example");
  REQUIRE(handler.headers.size() == 1);
  CHECK(handler.headers[0].name == "X-Key");
  CHECK(handler.headers[0].value == "v");
  REQUIRE(container.post_start);
  CHECK(container.post_start->path == "/");
  CHECK_FALSE(container.post_start->https);
  REQUIRE(container.pre_stop);
  CHECK(container.pre_stop->kind == Handler::Kind::kSleep);
  CHECK(container.pre_stop->sleep == seconds(5));
  CHECK(container.stop_signal == "SIGUSR1");
}

TEST_CASE("a port is a number, a name of the same container's, or a number in quotes") {
  const auto port = [](const std::string& word) {
    return decode_spec(R"({"containers":[{"name":"a","image":"a","readinessProbe":{"tcpSocket":{"port":)" + word +
                       R"(}},"ports":[{"name":"web","containerPort":8080},{"name":"9","containerPort":90}]},
                       {"name":"b","image":"b","ports":[{"name":"other","containerPort":1}]}]})");
  };
  CHECK(port("8081")->containers[0].readiness_probe->handler.port == 8081);
  CHECK(port("\"web\"")->containers[0].readiness_probe->handler.port == 8080);
  CHECK(port("\"9\"")->containers[0].readiness_probe->handler.port == 90);
  CHECK(port("\"91\"")->containers[0].readiness_probe->handler.port == 91);
  const std::string path = "spec.containers[0].readinessProbe.tcpSocket.port";
  CHECK(why(*port("\"other\""), path) == "the container has no port called 'other'; add it to its ports");
  for (const char* bad : {"0", "65536", "-1", "\"\"", "null", "{}", "\"70000\""}) {
    CAPTURE(bad);
    CHECK_FALSE(why(*port(bad), path).empty());
  }
}

TEST_CASE("a probe or hook that can do nothing is a fault of the pod") {
  const auto fault = [](const std::string& member, const std::string& path) {
    const auto pod = decode_spec(R"({"containers":[{"name":"a","image":"a",)" + member + "}]}");
    return why(*pod, "spec.containers[0]." + path);
  };
  CHECK_THAT(fault(R"("livenessProbe":{"periodSeconds":5})", "livenessProbe"), Catch::Contains("set one of exec"));
  CHECK_THAT(fault(R"("livenessProbe":{"exec":{},"grpc":{"port":1}})", "livenessProbe"), Catch::Contains("several"));
  CHECK_FALSE(fault(R"("lifecycle":{"postStart":{"nothing":{}}})", "lifecycle.postStart").empty());
  CHECK(fault(R"("livenessProbe":{"exec":{"command":["x"]}})", "livenessProbe").empty());
}

TEST_CASE("volumes keep their kind, size, modes and items") {
  const auto pod = decode_spec(R"({"containers":[],"volumes":[
      {"name":"scratch","emptyDir":{"sizeLimit":"2Gi"}},
      {"name":"shm","emptyDir":{"medium":"Memory"}},
      {"name":"conf","configMap":{"name":"c","optional":true,"defaultMode":288,
        "items":[{"key":"a","path":"dir/a","mode":256},{"key":"b","path":"b"}]}},
      {"name":"keys","secret":{"secretName":"s"}},
      {"name":"me","downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}},
        {"path":"mem","resourceFieldRef":{"containerName":"main","resource":"limits.memory","divisor":"1Mi"}}]}},
      {"name":"all","projected":{"defaultMode":256,"sources":[{"secret":{"name":"p"}},{"configMap":{"name":"q"}},
        {"downwardAPI":{"items":[]}},{"serviceAccountToken":{"path":"t","audience":"vault","expirationSeconds":600}}]}},
      {"name":"disk","persistentVolumeClaim":{"claimName":"x"}}]})");
  REQUIRE(pod->extras);
  const auto& volumes = pod->extras->volumes;
  REQUIRE(volumes.size() == 6);
  CHECK(volumes[0].kind == VolumeSpec::Kind::kScratch);
  CHECK(volumes[0].size_limit == 2LL << 30);
  CHECK(volumes[1].kind == VolumeSpec::Kind::kMemory);
  CHECK_FALSE(volumes[1].size_limit);

  CHECK(volumes[2].kind == VolumeSpec::Kind::kFiles);
  CHECK(volumes[2].default_mode == 0440);
  REQUIRE(volumes[2].sources.size() == 1);
  CHECK(volumes[2].sources[0].name == "c");
  CHECK(volumes[2].sources[0].optional);
  REQUIRE(volumes[2].sources[0].items.size() == 2);
  CHECK(volumes[2].sources[0].items[0].key == "a");
  CHECK(volumes[2].sources[0].items[0].path == "dir/a");
  CHECK(volumes[2].sources[0].items[0].mode == 0400);
  CHECK_FALSE(volumes[2].sources[0].items[1].mode);

  CHECK(volumes[3].default_mode == 0644);
  CHECK(volumes[3].sources.at(0).kind == VolumeSource::Kind::kSecret);
  CHECK(volumes[3].sources.at(0).name == "s");
  REQUIRE(volumes[4].sources.at(0).items.size() == 2);
  CHECK(volumes[4].sources[0].items[0].field == "metadata.labels");
  REQUIRE(volumes[4].sources[0].items[1].resource);
  CHECK(volumes[4].sources[0].items[1].resource->divisor == "1Mi");

  CHECK(volumes[5].default_mode == 0400);
  REQUIRE(volumes[5].sources.size() == 4);
  CHECK(volumes[5].sources[0].name == "p");
  CHECK(volumes[5].sources[1].kind == VolumeSource::Kind::kConfigMap);
  CHECK(volumes[5].sources[2].kind == VolumeSource::Kind::kDownwardApi);
  CHECK(volumes[5].sources[3].kind == VolumeSource::Kind::kToken);
  CHECK(volumes[5].sources[3].path == "t");
  CHECK(volumes[5].sources[3].audience == "vault");
  CHECK(volumes[5].sources[3].expiration == seconds(600));
}

TEST_CASE("modes and sizes that make no sense are faults with their path") {
  const auto pod = decode_spec(R"({"containers":[],"volumes":[{"name":"a","emptyDir":{"sizeLimit":"much"}},
      {"name":"b","secret":{"secretName":"s","defaultMode":644,"items":[{"key":"k","path":"k","mode":-1}]}}]})");
  CHECK_FALSE(why(*pod, "spec.volumes[0].emptyDir.sizeLimit").empty());
  CHECK_FALSE(why(*pod, "spec.volumes[1].secret.defaultMode").empty());
  CHECK_FALSE(why(*pod, "spec.volumes[1].secret.items[0].mode").empty());
}

TEST_CASE("mounts keep their path in the volume") {
  const auto container = decode_one(R"json({"name":"a","image":"a","volumeMounts":[
      {"name":"v","mountPath":"/a","readOnly":true,"subPath":"x/y"},
      {"name":"v","mountPath":"/b","subPathExpr":"$(POD)"},{"name":"w","mountPath":"/c"}]})json");
  REQUIRE(container.mounts.size() == 3);
  CHECK(container.mounts[0].volume == "v");
  CHECK(container.mounts[0].path == "/a");
  CHECK(container.mounts[0].read_only);
  CHECK(container.mounts[0].sub_path == "x/y");
  CHECK_FALSE(container.mounts[0].sub_path_is_expression);
  CHECK(container.mounts[1].sub_path == "$(POD)");
  CHECK(container.mounts[1].sub_path_is_expression);
  CHECK_FALSE(container.mounts[2].read_only);
}

TEST_CASE("the container's security settings stand over the pod's") {
  const auto pod = decode_spec(R"({"securityContext":{"runAsUser":1000,"runAsGroup":2000,"runAsNonRoot":true,
        "fsGroup":3000,"supplementalGroups":[1,2],"seccompProfile":{"type":"RuntimeDefault"}},
      "containers":[{"name":"a","image":"a"},
        {"name":"b","image":"b","securityContext":{"runAsUser":0,"runAsNonRoot":false,"readOnlyRootFilesystem":true,
          "allowPrivilegeEscalation":false,"capabilities":{"add":["CAP_NET_ADMIN"],"drop":["ALL"]},
          "seccompProfile":{"type":"Unconfined"},"appArmorProfile":{"type":"RuntimeDefault"}}}]})");
  REQUIRE(pod->containers[0].security);
  const model::Security& a = *pod->containers[0].security;
  CHECK(a.user == 1000);
  CHECK(a.group == 2000);
  CHECK(a.non_root);
  CHECK(a.seccomp == model::Security::Profile::kRuntimeDefault);
  CHECK_FALSE(a.no_new_privileges);
  const model::Security& b = *pod->containers[1].security;
  CHECK(b.user == 0);
  CHECK(b.group == 2000);
  CHECK_FALSE(b.non_root);
  CHECK(b.read_only_root);
  CHECK(b.no_new_privileges);
  CHECK(b.add_capabilities == std::vector<std::string>{"NET_ADMIN"});
  CHECK(b.drop_capabilities == std::vector<std::string>{"ALL"});
  CHECK(b.seccomp == model::Security::Profile::kUnconfined);
  CHECK(b.app_armor == model::Security::Profile::kRuntimeDefault);
  CHECK(pod->extras->fs_group == 3000);
  CHECK(pod->extras->supplemental_groups == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("names, network and life of the pod") {
  const auto pod = decode_spec(R"({"containers":[{"name":"a","image":"a"}],"hostname":"h","subdomain":"d",
      "setHostnameAsFQDN":true,"hostAliases":[{"ip":"10.0.0.1","hostnames":["a","b"]}],"dnsPolicy":"None",
      "dnsConfig":{"nameservers":["9.9.9.9"],"searches":["x.example"],
        "options":[{"name":"ndots","value":"2"},{"name":"edns0"}]},
      "shareProcessNamespace":true,"imagePullSecrets":[{"name":"reg"},{}],
      "enableServiceLinks":false,"resources":{"requests":{"cpu":"3"},"limits":{"memory":"4Gi"}}})");
  const model::PodExtras& extras = *pod->extras;
  CHECK(extras.hostname == "h");
  CHECK(extras.subdomain == "d");
  CHECK(extras.hostname_as_fqdn);
  REQUIRE(extras.host_aliases.size() == 1);
  CHECK(extras.host_aliases[0].ip == "10.0.0.1");
  CHECK(extras.host_aliases[0].hostnames == std::vector<std::string>{"a", "b"});
  REQUIRE(extras.dns);
  CHECK(extras.dns->alone);
  CHECK(extras.dns->nameservers == std::vector<std::string>{"9.9.9.9"});
  CHECK(extras.dns->searches == std::vector<std::string>{"x.example"});
  CHECK(extras.dns->options == std::vector<std::string>{"ndots:2", "edns0"});
  CHECK(extras.share_processes);
  CHECK(extras.pull_secrets == std::vector<std::string>{"reg"});
  CHECK_FALSE(pod->service_links);
  REQUIRE(extras.resources);
  CHECK(extras.resources->cpu_request_milli == 3000);
  CHECK(extras.resources->memory_limit == 4LL << 30);
  CHECK(pod->containers[0].resources.memory_limit == 4LL << 30);
  CHECK(pod->containers[0].resources.cpu_request_milli == 0);
}

TEST_CASE("a container's own restart rules") {
  const auto pod = decode_spec(R"({"containers":[{"name":"a","image":"a","restartPolicy":"Never","restartPolicyRules":[
      {"action":"Restart","exitCodes":{"operator":"In","values":[42,43]}},
      {"action":"Restart","exitCodes":{"operator":"NotIn","values":[1]}},
      {"action":"RestartAllContainers","exitCodes":{"operator":"Like"}}]},
      {"name":"b","image":"b","restartPolicy":"Sometimes"}]})");
  const auto& a = pod->containers[0];
  CHECK(a.restart_policy == model::RestartPolicy::kNever);
  REQUIRE(a.restart_rules.size() == 3);
  CHECK(a.restart_rules[0].in);
  CHECK(a.restart_rules[0].exit_codes == std::vector<int>{42, 43});
  CHECK_FALSE(a.restart_rules[1].in);
  CHECK_FALSE(why(*pod, "spec.containers[0].restartPolicyRules[2].action").empty());
  CHECK_FALSE(why(*pod, "spec.containers[0].restartPolicyRules[2].exitCodes.operator").empty());
  CHECK_FALSE(why(*pod, "spec.containers[1].restartPolicy").empty());
}

TEST_CASE("variables may read a field of the pod or a resource of a container") {
  const auto container = decode_one(R"({"name":"a","image":"a","stdin":true,"stdinOnce":true,"tty":true,
      "terminationMessagePath":"/tmp/why","terminationMessagePolicy":"FallbackToLogsOnError","env":[
      {"name":"N","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},
      {"name":"M","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"0"}}},
      {"name":"C","valueFrom":{"resourceFieldRef":{"containerName":"b","resource":"requests.cpu","divisor":"1m"}}}]})");
  REQUIRE(container.env.size() == 3);
  CHECK(container.env[0].field == "metadata.name");
  REQUIRE(container.env[1].resource);
  CHECK(container.env[1].resource->resource == "limits.memory");
  CHECK(container.env[1].resource->divisor.empty());
  CHECK(container.env[2].resource->container == "b");
  CHECK(container.env[2].resource->divisor == "1m");
  CHECK(container.stdin_open);
  CHECK(container.stdin_once);
  CHECK(container.tty);
  CHECK(container.termination_message_path == "/tmp/why");
  CHECK(container.termination_message_from_logs);
}

TEST_CASE("a pod needs the GPUs that it holds at one time") {
  const auto gpus = [](const std::string& init, const std::string& containers) {
    const auto pod = decode_spec(R"({"initContainers":[)" + init + R"(],"containers":[)" + containers + "]}");
    return pod->gpu.count;
  };
  const auto with = [](int count, const std::string& more = "") {
    return R"({"name":"c","image":"c","resources":{"limits":{"nvidia.com/gpu":)" + std::to_string(count) + "}}" + more +
           "}";
  };
  const std::string sidecar = R"(,"restartPolicy":"Always")";
  CHECK(gpus("", with(1) + "," + with(2)) == 3);
  CHECK(gpus(with(4) + "," + with(2), with(1)) == 4);
  CHECK(gpus(with(1), with(2)) == 2);
  CHECK(gpus(with(1, sidecar), with(2)) == 3);
  // The sidecar runs beside the init container that comes after it, not beside the one before.
  CHECK(gpus(with(1, sidecar) + "," + with(3), with(1)) == 4);
  CHECK(gpus(with(3) + "," + with(1, sidecar), with(1)) == 3);
  const auto pod = decode_spec(R"({"containers":[)" + with(2) + R"(,{"name":"d","image":"d"}]})");
  CHECK(pod->containers[0].resources.gpus == 2);
  CHECK(pod->containers[1].resources.gpus == 0);
}

TEST_CASE("GPU counts that do not fit are refused") {
  const auto pod =
      decode_spec(R"({"containers":[{"name":"a","image":"a","resources":{"limits":{"nvidia.com/gpu":2147483647}}},
      {"name":"b","image":"b","resources":{"limits":{"nvidia.com/gpu":2147483647}}},
      {"name":"c","image":"c","resources":{"limits":{"nvidia.com/gpu":"9E"}}}]})");
  CHECK(why(*pod, "spec.containers[2].resources.limits[nvidia.com/gpu]") == "nobody has so many GPUs");
  CHECK(why(*pod, "spec.containers") == "nobody has so many GPUs");
}

TEST_CASE("only a toleration of everything makes a pod stand everywhere") {
  const auto everywhere = [](const std::string& toleration) {
    return decode_spec(R"({"containers":[],"tolerations":[{"key":"a","operator":"Exists"},)" + toleration + "]}")
        ->tolerates_everything;
  };
  CHECK(everywhere(R"({"operator":"Exists"})"));
  CHECK(everywhere(R"({"operator":"Exists","effect":"NoSchedule"})"));
  CHECK_FALSE(everywhere(R"({"operator":"Exists","effect":"NoExecute"})"));
  CHECK_FALSE(everywhere(R"({"key":"x","operator":"Exists"})"));
  CHECK_FALSE(everywhere(R"({"operator":"Equal"})"));
}

TEST_CASE("the token's volume comes along only if the pod asks for it") {
  Json pod = a_pod(Json::parse(R"({"containers":[{"name":"a","image":"a","volumeMounts":[
      {"name":"kube-api-access-x","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}]}],
      "volumes":[{"name":"kube-api-access-x","projected":{"sources":[
        {"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
        {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}]})"));
  const auto plain = decode(pod);
  CHECK(plain->service_account_token_withheld);
  CHECK_FALSE(plain->extras);
  CHECK(plain->containers[0].mounts.empty());

  pod["metadata"]["annotations"] = {{"spillway.dev/send-service-account-token", "true"}};
  const auto sent = decode(pod);
  CHECK_FALSE(sent->service_account_token_withheld);
  REQUIRE(sent->extras);
  CHECK(sent->extras->volumes.at(0).sources.at(0).expiration == seconds(3607));
  CHECK(sent->containers[0].mounts.size() == 1);
  CHECK_FALSE(sent->uses.empty());
}

TEST_CASE("mistyped fields of a spec are tolerated") {
  const auto pod = decode_spec(R"({"containers":[null,7,{"name":7,"env":[null,{"valueFrom":5}],"volumeMounts":{"a":1},
      "livenessProbe":7,"lifecycle":[],"securityContext":3,"resources":"x","restartPolicyRules":{}}],
      "volumes":[5,{"name":"v","configMap":3},{"name":"w","projected":{"sources":[1]}}],"securityContext":[],
      "hostAliases":"x","dnsConfig":7,"tolerations":{"operator":"Exists"},"activeDeadlineSeconds":"x",
      "imagePullSecrets":[3],"initContainers":5,"terminationGracePeriodSeconds":"x"})");
  CHECK(pod->containers.size() == 3);
  CHECK(pod->grace == seconds(30));
}

}  // namespace
}  // namespace spillway::kube
