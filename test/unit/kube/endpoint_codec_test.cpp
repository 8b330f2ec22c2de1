#include "vk-provider/kube/endpoint_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

using namespace spillway;
using nlohmann::json;

namespace {

model::EndpointService service_of(const json& spec) {
  const json object = {{"metadata", {{"name", "web"}, {"namespace", "a"}, {"uid", "u"}}}, {"spec", spec}};
  const auto service = kube::decode_endpoint_service(object.dump());
  REQUIRE(service);
  return service->value_or(model::EndpointService());
}

json a_spec() {
  return {{"selector", {{"app", "web"}, {"example.com/tier", "front"}}},
          {"ipFamilies", {"IPv4", "IPv6"}},
          {"ports",
           {{{"name", "http"}, {"port", 80}, {"targetPort", "web"}, {"appProtocol", "kubernetes.io/h2c"}},
            {{"name", "dns"}, {"port", 53}, {"protocol", "UDP"}, {"targetPort", 5353}},
            {{"port", 7}}}}};
}

model::EndpointSlice a_slice() {
  model::EndpointSlice slice;
  slice.ns = "a";
  slice.name = "web-1";
  slice.uid = "s";
  slice.resource_version = "7";
  slice.service = "web";
  slice.service_uid = "u";
  slice.managed_by = "spillway.dev";
  slice.installation = "main";
  slice.headless = slice.ipv6 = true;
  model::EndpointPort& port = slice.ports.emplace_back();
  port.name = "http";
  port.port = 30001;
  port.app_protocol = "kubernetes.io/h2c";
  model::Endpoint& endpoint = slice.endpoints.emplace_back();
  endpoint.address = "2001:db8::1";
  endpoint.hostname = "web-0";
  endpoint.node = "burst";
  endpoint.zone = "eu-1";
  endpoint.pod_name = "web-0";
  endpoint.pod_uid = base::PodUid("p");
  endpoint.serving = endpoint.terminating = true;
  return slice;
}

}  // namespace

TEST_CASE("a Service's selector, families and ports") {
  const model::EndpointService service = service_of(a_spec());
  CHECK(service.ns == "a");
  CHECK(service.name == "web");
  CHECK(service.uid == "u");
  CHECK(service.selector == std::map<std::string, std::string>{{"app", "web"}, {"example.com/tier", "front"}});
  CHECK(service.ipv4);
  CHECK(service.ipv6);
  CHECK_FALSE(service.headless);
  CHECK_FALSE(service.publish_not_ready);
  REQUIRE(service.ports.size() == 3);
  CHECK(service.ports[0].target == 0);
  CHECK(service.ports[0].target_name == "web");
  CHECK(service.ports[0].app_protocol == "kubernetes.io/h2c");
  CHECK(service.ports[1].target == 5353);
  CHECK(service.ports[1].protocol == model::Protocol::kUdp);
  CHECK(service.ports[2].target == 7);
}

TEST_CASE("headless, not ready, and old Services") {
  json spec = a_spec();
  spec["clusterIP"] = "None";
  spec["publishNotReadyAddresses"] = true;
  spec.erase("ipFamilies");
  const model::EndpointService service = service_of(spec);
  CHECK(service.headless);
  CHECK(service.publish_not_ready);
  CHECK(service.ipv4);
  CHECK_FALSE(service.ipv6);
}

TEST_CASE("a Service that is no affair of ours, and one that is none") {
  for (const char* key : {"selector", "ports"}) {
    json spec = a_spec();
    spec.erase(key);
    CHECK(service_of(spec).name.empty());
  }
  json external = a_spec();
  external["type"] = "ExternalName";
  CHECK(service_of(external).name.empty());
  for (const char* text : {"", "null", "{}", "[]", R"({"metadata":{"name":"web","namespace":"a"}})",
                           R"({"metadata":{"name":"web","namespace":"a","uid":"u"},"spec":{"sel)"}) {
    INFO(text);
    CHECK_FALSE(kube::decode_endpoint_service(text));
    CHECK_FALSE(kube::decode_endpoint_slice(text));
  }
}

TEST_CASE("a slice is read back as it was written") {
  const model::EndpointSlice slice = a_slice();
  json object = json::parse(kube::encode_endpoint_slice(slice));
  CHECK(object["addressType"] == "IPv6");
  CHECK(object["metadata"]["labels"]["service.kubernetes.io/headless"] == "");
  object["metadata"]["uid"] = "s";
  object["metadata"]["resourceVersion"] = "7";
  const auto read = kube::decode_endpoint_slice(object.dump());
  REQUIRE(read);
  CHECK(*read == slice);
  CHECK(read->uid == "s");
  CHECK(read->resource_version == "7");
}

TEST_CASE("a patch and a removal name what they are about") {
  model::EndpointSlice slice = a_slice();
  slice.headless = false;
  const json patch = json::parse(kube::encode_endpoint_slice_patch(slice));
  CHECK(patch["metadata"]["uid"] == "s");
  CHECK(patch["metadata"]["resourceVersion"] == "7");
  CHECK(patch["metadata"]["labels"]["service.kubernetes.io/headless"].is_null());
  CHECK(patch["endpoints"][0]["conditions"] == json{{"ready", false}, {"serving", true}, {"terminating", true}});
  CHECK_FALSE(patch.contains("addressType"));
  CHECK(json::parse(kube::encode_endpoint_slice_removal(slice))["preconditions"] ==
        json{{"uid", "s"}, {"resourceVersion", "7"}});
}

TEST_CASE("an endpoint with two addresses equals none of ours") {
  json object = json::parse(kube::encode_endpoint_slice(a_slice()));
  object["metadata"]["uid"] = "s";
  object["metadata"]["resourceVersion"] = "8";
  object["endpoints"][0]["addresses"].push_back("2001:db8::2");
  const auto read = kube::decode_endpoint_slice(object.dump());
  REQUIRE(read);
  CHECK(*read != a_slice());
}

TEST_CASE("labels as one text") {
  CHECK(kube::decode_label_text(R"({"metadata":{"labels":{"app":"web","example.com/tier":""}}})") ==
        ",app=web,example.com/tier=,");
  CHECK(kube::decode_label_text(R"({"metadata":{"labels":null}})").empty());
  CHECK(kube::decode_label_text(R"({"metadata":{"name":"web"}})").empty());
}
