// What is read for a pod, how often, and what comes of what cannot be read.
#include "vk-provider/control/pod_resolver.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "test/support/api_server_model.hpp"
#include "test/support/faulty_kube_api.hpp"
#include "test/support/reference_builder.hpp"
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/net/digest.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using control::Resolution;
using nlohmann::json;
using Kind = model::ConfigRef::Kind;

namespace {

/// A cluster, and a resolver for its pods.
class World {
 public:
  World() : api(reactor.timers), client(api), resolver(client, reactor.timers) {
    profile.name = "burst";
    profile.internal_ip = "192.0.2.10";
    profile.capacity = {{"cpu", "64"}, {"memory", "256Gi"}, {"ephemeral-storage", "1Ti"}};
    api.create("/api/v1/namespaces/team-a/configmaps", {{"metadata", {{"name", "unused"}}}});
    api.forget_requests();
  }

  void add_secret(const std::string& name, const json& data, const std::string& type = "Opaque") {
    json encoded = json::object();
    for (const auto& [key, value] : data.items()) encoded[key] = net::base64_encode(value.get<std::string>());
    api.create("/api/v1/namespaces/team-a/secrets",
               {{"metadata", {{"name", name}}}, {"type", type}, {"data", encoded}});
    api.forget_requests();
  }
  void add_service(const std::string& ns, const std::string& name, const std::string& ip) {
    const json ports = json::array({{{"port", 80}, {"protocol", "TCP"}}});
    api.create("/api/v1/namespaces/" + ns + "/services",
               {{"metadata", {{"name", name}}}, {"spec", {{"clusterIP", ip}, {"ports", ports}}}});
    api.forget_requests();
  }
  /// The pod as an object, too, so that its metadata can be read.
  void add_pod(const json& labels) {
    const json object = api.create("/api/v1/namespaces/team-a/pods",
                                   {{"metadata", {{"name", "web-0"}, {"namespace", "team-a"}, {"labels", labels}}},
                                    {"spec", {{"containers", {{{"name", "main"}, {"image", "app:1"}}}}}}});
    pod.key.uid = base::PodUid(object["metadata"]["uid"].get<std::string>());
    api.forget_requests();
  }

  Resolution resolve() { return reactor.run(resolver.resolve(test::share(pod), profile, {})); }
  std::string value(const std::string& name) {
    const Resolution resolution = resolve();
    REQUIRE(resolution.pod);
    for (const auto& [key, value] : resolution.pod->containers[0].env) {
      if (key == name) return value;
    }
    return "(not set)";
  }
  int asked(const std::string& what) {
    const auto it = api.requests().find(what);
    return it == api.requests().end() ? 0 : it->second;
  }
  model::ContainerSpec& main() { return pod.containers.edit()[0]; }

  test::VirtualReactor reactor;
  test::ApiServerModel api;
  kube::Client client;
  control::PodResolver resolver;
  model::NodeProfile profile;
  model::PodSpec pod = test::a_pod();
};

}  // namespace

TEST_CASE("each object is read once, however often it is referred to") {
  World w;
  w.add_secret("keys", {{"a", "1"}, {"b", "2"}});
  w.main().env_from = {test::config_ref(Kind::kSecret, "keys", "")};
  w.main().env = {test::from("A", test::config_ref(Kind::kSecret, "keys", "a")),
                  test::from("B", test::config_ref(Kind::kSecret, "keys", "b"))};
  test::add_files(w.pod, "files").sources = {test::volume_source(model::VolumeSource::Kind::kSecret, "keys")};
  w.pod.extras->pull_secrets = {"keys"};
  const Resolution resolution = w.resolve();
  REQUIRE(resolution.pod);
  CHECK(resolution.notes.empty());
  CHECK(resolution.pod->files.size() == 2);
  CHECK(resolution.pod->spec->key.name == "web-0");
  CHECK(resolution.pod->hostname == "web-0");
  CHECK(w.asked("GET secrets") == 1);
  // Values are those at the start, so nothing is kept for the next pod.
  w.resolve();
  CHECK(w.asked("GET secrets") == 2);
}

TEST_CASE("a pod that refers to nothing costs no request of its own") {
  World w;
  w.main().env = {test::field("HOST", "status.hostIP"), test::field("NAME", "metadata.name")};
  CHECK(w.value("HOST") == "192.0.2.10");
  // Shared with all that start in its namespace.
  CHECK(w.api.requests() == std::map<std::string, int>{{"GET services", 2}});
}

TEST_CASE("labels and annotations are read from the live pod, and only where they are asked for") {
  World w;
  w.add_pod({{"index", "3"}});
  w.main().env = {test::field("RANK", "metadata.labels['index']"), test::field("X", "metadata.annotations['x']")};
  CHECK(w.value("RANK") == "3");
  CHECK(w.asked("GET pods") == 1);

  w.pod.key.uid = base::PodUid(test::kUid);
  const Resolution other = w.resolve();
  REQUIRE_FALSE(other.pod);
  CHECK(other.pod.error().why == model::WaitReason::kConfig);
  CHECK(other.pod.error().message ==
        "Error: the pod's labels and annotations cannot be read: pod team-a/web-0 is another one by now");
}

TEST_CASE("limits that are not set are what the node can hold") {
  World w;
  model::EnvVar var;
  var.name = "MEMORY";
  var.resource = model::ResourceRef();
  var.resource->resource = "limits.memory";
  var.resource->divisor = "1Gi";
  w.main().env = {var};
  CHECK(w.value("MEMORY") == "256");
}

TEST_CASE("services of the namespace, and the API server's, which is always told") {
  World w;
  w.add_service("team-a", "db", "10.0.0.7");
  w.add_service("team-a", "headless", "None");
  w.add_service("team-b", "other", "10.0.0.8");
  w.add_service("default", "kubernetes", "10.0.0.1");
  CHECK(w.value("DB_SERVICE_HOST") == "10.0.0.7");
  CHECK(w.value("KUBERNETES_PORT") == "tcp://10.0.0.1:80");
  CHECK(w.value("HEADLESS_SERVICE_HOST") == "(not set)");
  CHECK(w.value("OTHER_SERVICE_HOST") == "(not set)");
  w.pod.service_links = false;
  CHECK(w.value("DB_SERVICE_HOST") == "(not set)");
  CHECK(w.value("KUBERNETES_SERVICE_HOST") == "10.0.0.1");
}

TEST_CASE("two hundred pods of a namespace make one list of its services") {
  test::VirtualReactor reactor;
  test::ScriptedKubeApi api(reactor.timers);
  int lists = 0;
  int api_services = 0;
  api.handler = [&](const kube::KubeRequest& request) -> std::optional<base::Result<kube::KubeResponse>> {
    kube::KubeResponse response;
    response.body = R"({"metadata":{"name":"kubernetes"},"spec":{"clusterIP":"10.0.0.1"}})";
    if (request.target.find("?limit=") != std::string::npos) {
      ++lists;
      response.body = R"({"metadata":{"resourceVersion":"1"},"items":[]})";
    } else {
      ++api_services;
    }
    return response;
  };
  kube::Client client(api);
  control::PodResolver resolver(client, reactor.timers);
  model::NodeProfile profile;
  int done = 0;
  const auto start = [&](int count) {
    for (int i = 0; i < count; ++i) {
      boost::asio::co_spawn(
          reactor.ctx, resolver.resolve(test::share(test::a_pod()), profile, {}),
          [&](const std::exception_ptr&, const Resolution& resolution) { done += resolution.pod.has_value() ? 1 : 0; });
    }
  };
  start(200);
  reactor.run_for(100ms);
  CHECK(done == 200);
  CHECK(lists == 1);
  // A second later the namespace may have another service.
  reactor.run_for(1s);
  start(1);
  reactor.run_for(100ms);
  CHECK(lists == 2);
  // The API server's keeps its address, and is read once a minute.
  CHECK(api_services == 1);
  reactor.run_for(1min);
  start(1);
  reactor.run_for(100ms);
  CHECK(api_services == 2);
}

TEST_CASE("services that cannot be listed stop the pod, and say why") {
  World w;
  test::ScriptedKubeApi api(w.reactor.timers);
  api.fail(base::Error(base::ErrorKind::kPermission, "services is forbidden"));
  kube::Client client(api);
  control::PodResolver resolver(client, w.reactor.timers);
  const Resolution resolution = w.reactor.run(resolver.resolve(test::share(w.pod), w.profile, {}));
  REQUIRE_FALSE(resolution.pod);
  CHECK(resolution.pod.error().message == "Error: the services of the namespace cannot be read: services is forbidden");
}

TEST_CASE("logins come from all pull secrets; one that is missing is told and not fatal") {
  World w;
  w.add_secret("one", {{".dockerconfigjson", R"({"auths":{"a.example":{"username":"amy","password":"p1"}}})"}},
               "kubernetes.io/dockerconfigjson");
  w.add_secret("two", {{".dockercfg", R"({"b.example":{"username":"bob","password":"p2"}})"}},
               "kubernetes.io/dockercfg");
  w.pod.extras = model::PodExtras();
  w.pod.extras->pull_secrets = {"one", "none", "two", "nobody"};
  const Resolution resolution = w.resolve();
  REQUIRE(resolution.pod);
  REQUIRE(resolution.pod->pull_auth.size() == 2);
  CHECK(resolution.pod->pull_auth[0].registry == "a.example");
  CHECK(resolution.pod->pull_auth[1].password.reveal() == "p2");
  CHECK(resolution.notes ==
        std::vector{core::Note("FailedToRetrieveImagePullSecret",
                               "Unable to retrieve some image pull secrets (none, nobody); attempting to pull the "
                               "image may not succeed.")});

  w.add_secret("broken", {{".dockerconfigjson", "canary"}}, "kubernetes.io/dockerconfigjson");
  w.pod.extras->pull_secrets = {"broken"};
  const Resolution broken = w.resolve();
  REQUIRE_FALSE(broken.pod);
  CHECK(broken.pod.error().message ==
        "Error: image pull secret \"broken\" is malformed: .dockerconfigjson is no JSON object");
}
