#include "vk-provider/api/authn_rules.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::api;

TEST_CASE("a bearer token is found in its header, and nothing else is taken for one") {
  struct Row {
    const char* header;
    const char* token;  // null: none
  };
  const Row rows[] = {
      {"Bearer abc", "abc"},
      {"bearer abc", "abc"},
      {"BEARER abc.def-_~+/=", "abc.def-_~+/="},
      {"  Bearer abc  ", "abc"},
      {"Bearer abc x", "abc"},
      {"", nullptr},
      {"   ", nullptr},
      {"Bearer", nullptr},
      {"Bearer ", nullptr},
      {"Bearer  abc", nullptr},
      {"Basic dXNlcjpwdw==", nullptr},
      {"Bearerabc", nullptr},
  };
  for (const Row& row : rows) {
    CAPTURE(row.header);
    const auto token = bearer_of(row.header);
    REQUIRE(token.has_value() == (row.token != nullptr));
    if (token) CHECK(token->reveal() == row.token);
  }
}

TEST_CASE("a certificate's subject is a user of the group of those who were authenticated") {
  const kube::UserInfo user = user_of_certificate("kube-apiserver-kubelet-client", {"kubeadm:cluster-admins"});
  CHECK(user.name == "kube-apiserver-kubelet-client");
  CHECK(user.groups == std::vector<std::string>{"kubeadm:cluster-admins", "system:authenticated"});
  CHECK(user_of_certificate("x", {"system:authenticated"}).groups == std::vector<std::string>{"system:authenticated"});
  CHECK(anonymous_user().name == "system:anonymous");
  CHECK(anonymous_user().groups == std::vector<std::string>{"system:unauthenticated"});
}

TEST_CASE("methods are verbs as with a kubelet") {
  CHECK(verb_of("GET") == "get");
  CHECK(verb_of("POST") == "create");
  CHECK(verb_of("PUT") == "update");
  CHECK(verb_of("PATCH") == "patch");
  CHECK(verb_of("DELETE") == "delete");
  CHECK(verb_of("HEAD").empty());
  CHECK(verb_of("get").empty());
}

TEST_CASE("paths are sub-resources of the node as with a kubelet, the finer one first") {
  using Names = std::vector<std::string>;
  const std::pair<const char*, Names> rows[] = {
      {"pods", {"pods", "proxy"}},
      {"runningpods", {"pods", "proxy"}},
      {"healthz", {"healthz", "proxy"}},
      {"configz", {"configz", "proxy"}},
      {"stats", {"stats"}},
      {"metrics", {"metrics"}},
      {"logs", {"log"}},
      {"checkpoint", {"checkpoint"}},
      {"statusz", {"statusz"}},
      {"flagz", {"configz"}},
      {"exec", {"proxy"}},
      {"attach", {"proxy"}},
      {"run", {"proxy"}},
      {"portForward", {"proxy"}},
      {"containerLogs", {"proxy"}},
      {"debug", {"proxy"}},
      {"metricsx", {"proxy"}},
      {"", {"proxy"}},
  };
  for (const auto& [segment, wanted] : rows) {
    CAPTURE(segment);
    CHECK(subresources_of(segment) == wanted);
  }
}

TEST_CASE("who is refused reads the kubelet's words") {
  AccessAttributes wanted;
  wanted.node = "burst";
  wanted.verb = "get";
  wanted.subresources = {"pods", "proxy"};
  CHECK(forbidden_text(anonymous_user(), wanted) ==
        "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[pods proxy])\n");
  CHECK(authorization_error_text(anonymous_user(), wanted, "pods", "connection refused") ==
        "Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=pods): "
        "connection refused\n");
}
