#include "vk-provider/kube/object_codec.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "vk-provider/net/digest.hpp"

using namespace spillway;
using namespace spillway::kube;
using Json = nlohmann::json;

namespace {

std::vector<model::PullAuth> logins(const std::string& type, const std::string& content) {
  model::ConfigObject secret;
  secret.type = type;
  secret.data[type == "kubernetes.io/dockercfg" ? ".dockercfg" : ".dockerconfigjson"] = content;
  auto out = decode_pull_secret(secret);
  REQUIRE(out);
  return *out;
}

constexpr const char* kConfigJson = "kubernetes.io/dockerconfigjson";

}  // namespace

TEST_CASE("binaryData of a ConfigMap is decoded, data of a Secret too") {
  const auto map = decode_config_map(R"({"data":{"a":"eA=="},"binaryData":{"b":"AP/+"}})");
  REQUIRE(map);
  CHECK(map->data == std::map<std::string, std::string>{{"a", "eA=="}});
  CHECK(map->binary_data == std::map<std::string, std::string>{{"b", std::string("\0\xFF\xFE", 3)}});
  const auto secret = decode_secret(R"({"type":"Opaque","data":{"a":"eA=="}})");
  REQUIRE(secret);
  CHECK(secret->type == "Opaque");
  CHECK(secret->data.at("a") == "x");
  CHECK_FALSE(decode_config_map(R"({"binaryData":{"b":"no base64"}})"));
}

TEST_CASE("pull secrets of both types, with a login or with auth, for several registries") {
  const std::string auth = net::base64_encode("bob:pa:ss");
  const auto both = logins(kConfigJson, R"({"auths":{"registry.example:5000/team":{"username":"amy","password":"p1"},)"
                                        R"("https://index.docker.io/v1/":{"auth":")" +
                                            auth + R"(","username":"x"}}})");
  REQUIRE(both.size() == 2);
  CHECK(both[0].registry == "registry.example:5000/team");
  CHECK(both[0].username == "amy");
  CHECK(both[0].password.reveal() == "p1");
  CHECK(both[1].registry == "https://index.docker.io/v1/");
  CHECK(both[1].username == "bob");
  CHECK(both[1].password.reveal() == "pa:ss");

  const auto old = logins("kubernetes.io/dockercfg", R"({"ghcr.io":{"username":"amy","password":"p","email":"e"}})");
  REQUIRE(old.size() == 1);
  CHECK(old[0].registry == "ghcr.io");

  std::string bare = net::base64_encode("a:b12");
  while (bare.ends_with('=')) bare.pop_back();
  CHECK(logins(kConfigJson, R"({"auths":{"r":{"auth":")" + bare + R"("}}})")[0].password.reveal() == "b12");
  CHECK(logins(kConfigJson, R"({"auths":{"r":{}}})").empty());
  CHECK(logins(kConfigJson, "{}").empty());
  CHECK(logins("Opaque", "canary").empty());
}

TEST_CASE("a pull secret that cannot be read says where, never what") {
  for (const char* content : {"", "canary", R"({"auths":{"r":"canary"}})", R"({"auths":{"r":{"auth":"canary!"}}})",
                              R"({"auths":{"r":{"username":"canary")", R"({"auths":{"r":{"auth":"Y2FuYXJ5"}}})"}) {
    CAPTURE(content);
    model::ConfigObject secret;
    secret.type = kConfigJson;
    secret.data[".dockerconfigjson"] = content;
    const auto out = decode_pull_secret(secret);
    REQUIRE_FALSE(out);
    CHECK(out.error().message.find("canary") == std::string::npos);
  }
  model::ConfigObject without;
  without.type = kConfigJson;
  CHECK(decode_pull_secret(without).error().message == "it has no key .dockerconfigjson");
}

TEST_CASE("services: a headless one and a name of elsewhere have no address") {
  const auto service = decode_service(R"({"metadata":{"name":"db"},"spec":{"clusterIP":"10.0.0.7","ports":[
      {"port":5432},{"name":"dns","port":53,"protocol":"UDP"}]}})");
  CHECK(service.name == "db");
  CHECK(service.cluster_ip == "10.0.0.7");
  REQUIRE(service.ports.size() == 2);
  CHECK(service.ports[0].port == 5432);
  CHECK(service.ports[1].protocol == model::Protocol::kUdp);
  CHECK(decode_service(R"({"metadata":{"name":"x"},"spec":{"clusterIP":"None"}})").cluster_ip.empty());
  CHECK(decode_service(R"({"metadata":{"name":"x"},"spec":{"externalName":"e"}})").cluster_ip.empty());
}

TEST_CASE("a token is asked for a pod, and read with its end") {
  model::PodKey pod;
  pod.ns = "team-a";
  pod.name = "web";
  pod.uid = base::PodUid("u-1");
  CHECK(Json::parse(encode_token_request(pod, "vault", std::chrono::seconds(600))) ==
        Json::parse(R"({"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":["vault"],
            "expirationSeconds":600,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"web","uid":"u-1"}}})"));
  CHECK(Json::parse(encode_token_request(pod, "", std::chrono::seconds(3600)))["spec"]["audiences"] == Json::array());
  const auto token = decode_token(R"({"status":{"token":"ey.J","expirationTimestamp":"2026-11-29T01:00:00Z"}})");
  REQUIRE(token);
  CHECK(token->token.reveal() == "ey.J");
  CHECK(base::to_rfc3339(token->expires_at) == "2026-11-29T01:00:00Z");
  CHECK_FALSE(decode_token(R"({"status":{"token":"canary"}})"));
}

TEST_CASE("labels and annotations of a pod") {
  const auto metadata =
      decode_pod_metadata(R"({"metadata":{"uid":"u-1","labels":{"a/b":"c"},"annotations":{"x":"\u00e4\n"}}})");
  REQUIRE(metadata);
  CHECK(metadata->uid.str() == "u-1");
  CHECK(metadata->labels == std::map<std::string, std::string>{{"a/b", "c"}});
  CHECK(metadata->annotations == std::map<std::string, std::string>{{"x", "\xC3\xA4\n"}});
  CHECK_FALSE(decode_pod_metadata("{}"));
}
