#include "vk-provider/kube/access_client.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;
using Json = nlohmann::json;

struct World {
  base::Deadline soon() const { return reactor.timers.now() + std::chrono::seconds(5); }
  Json body(size_t i) const { return Json::parse(api.requests.at(i).body); }

  test::VirtualReactor reactor;
  test::ScriptedKubeApi api{reactor.timers};
  AccessClient client{api};
};

UserInfo a_user() {
  UserInfo user;
  user.name = "system:serviceaccount:kube-system:metrics-server";
  user.uid = "sa-1";
  user.groups = {"system:serviceaccounts", "system:authenticated"};
  user.extra = {{"authentication.kubernetes.io/pod-name", {"metrics-server-0"}}};
  return user;
}

TEST_CASE("a token is reviewed, and tells who sent it") {
  World w;
  w.api.answer(R"({"kind":"TokenReview","metadata":{},"spec":{"token":"t0p"},"status":{"authenticated":true,"user":{
    "username":"system:serviceaccount:kube-system:metrics-server","uid":"sa-1",
    "groups":["system:serviceaccounts","system:authenticated"],
    "extra":{"authentication.kubernetes.io/pod-name":["metrics-server-0"]}},"audiences":["api"]}})");
  const auto verdict = w.reactor.run(w.client.review_token(base::Secret("t0p"), w.soon()));
  REQUIRE(verdict.has_value());
  REQUIRE(verdict->user.has_value());
  CHECK(*verdict->user == a_user());
  const KubeRequest& request = w.api.requests.at(0);
  CHECK(request.method == net::Method::kPost);
  CHECK(request.target == "/apis/authentication.k8s.io/v1/tokenreviews");
  CHECK(request.content_type == "application/json");
  CHECK(w.body(0) == Json::parse(R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1",
                                     "spec":{"token":"t0p"}})"));
}

TEST_CASE("a token that is not valid is no error, and an answer that cannot be read is no yes") {
  World w;
  w.api.answer(R"({"kind":"TokenReview","status":{"authenticated":false,"error":"[invalid bearer token]"}})");
  w.api.answer(R"({"kind":"TokenReview","status":{"user":{"username":"root"}}})");
  for (int i = 0; i < 2; ++i) {
    const auto verdict = w.reactor.run(w.client.review_token(base::Secret("t0p"), w.soon()));
    REQUIRE(verdict.has_value());
    CHECK_FALSE(verdict->user.has_value());
  }
  for (const char* broken : {"", "[]", R"({"status":{"authenticated":true,"user":{"username":"root"}})",
                             R"({"status":{"authenticated":true,"user":{"username":""}}})"}) {
    CAPTURE(broken);
    w.api.answer(broken);
    const auto verdict = w.reactor.run(w.client.review_token(base::Secret("t0p"), w.soon()));
    REQUIRE_FALSE(verdict.has_value());
    CHECK(verdict.error().kind == ErrorKind::kInvalid);
    CHECK(verdict.error().message.find("t0p") == std::string::npos);
  }
}

TEST_CASE("an access review asks about one node's sub-resource") {
  World w;
  w.api.answer(R"({"kind":"SubjectAccessReview","status":{"allowed":true,"reason":"RBAC"}})");
  AccessQuestion question;
  question.user = a_user();
  question.verb = "get";
  question.node = "burst";
  question.subresource = "metrics";
  CHECK(w.reactor.run(w.client.review_access(question, w.soon())).value());
  CHECK(w.api.requests.at(0).target == "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  CHECK(w.body(0) == Json::parse(R"({"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{
    "user":"system:serviceaccount:kube-system:metrics-server","uid":"sa-1",
    "groups":["system:serviceaccounts","system:authenticated"],
    "extra":{"authentication.kubernetes.io/pod-name":["metrics-server-0"]},
    "resourceAttributes":{"verb":"get","version":"v1","resource":"nodes","subresource":"metrics","name":"burst"}}})"));
}

TEST_CASE("only a clear yes of an access review is one") {
  World w;
  const auto answered = [&](const char* body) {
    w.api.answer(body);
    return w.reactor.run(w.client.review_access(AccessQuestion(), w.soon()));
  };
  CHECK_FALSE(answered(R"({"status":{"allowed":false}})").value());
  CHECK_FALSE(answered(R"({"status":{"allowed":true,"denied":true}})").value());
  CHECK_FALSE(answered(R"({"status":{"allowed":"true"}})").value());
  CHECK(answered(R"({"status":{"allowed":true})").error().kind == ErrorKind::kInvalid);
  CHECK(answered("{}").error().kind == ErrorKind::kInvalid);
}

TEST_CASE("a serving certificate is asked for by a name of the server's making, and waited for") {
  World w;
  w.api.answer(R"({"metadata":{"name":"spillway-x7k"},"status":{}})");
  w.api.answer(R"({"metadata":{"name":"spillway-x7k"},"status":{"conditions":[{"type":"Approved"}]}})");
  w.api.answer(R"({"metadata":{"name":"spillway-x7k"},"status":{"conditions":[{"type":"Approved"}],)"
               R"("certificate":")" +
               net::base64_encode("-----BEGIN CERTIFICATE-----") + "\"}}");
  SigningRequest request;
  request.name_prefix = "spillway-";
  request.request_pem = "-----BEGIN CERTIFICATE REQUEST-----";
  request.signer = "kubernetes.io/kubelet-serving";
  const auto made = w.reactor.run(w.client.create_signing_request(request, w.soon()));
  REQUIRE(made.has_value());
  CHECK(made->name == "spillway-x7k");
  CHECK(made->step == SigningState::Step::kPending);
  CHECK(w.body(0) == Json{{"kind", "CertificateSigningRequest"},
                          {"apiVersion", "certificates.k8s.io/v1"},
                          {"metadata", {{"generateName", "spillway-"}}},
                          {"spec",
                           {{"request", net::base64_encode(request.request_pem)},
                            {"signerName", "kubernetes.io/kubelet-serving"},
                            {"usages", {"digital signature", "server auth"}}}}});
  CHECK(w.reactor.run(w.client.get_signing_request("spillway-x7k", w.soon()))->step == SigningState::Step::kPending);
  CHECK(w.api.requests.at(1).target == "/apis/certificates.k8s.io/v1/certificatesigningrequests/spillway-x7k");
  const auto issued = w.reactor.run(w.client.get_signing_request("spillway-x7k", w.soon()));
  REQUIRE(issued.has_value());
  CHECK(issued->step == SigningState::Step::kIssued);
  CHECK(issued->certificate_pem == "-----BEGIN CERTIFICATE-----");
}

TEST_CASE("a refused certificate says by whom and why") {
  World w;
  w.api.answer(R"({"metadata":{"name":"c"},"status":{"conditions":[
    {"type":"Denied","reason":"KubectlDeny","message":"not on my watch"}]}})");
  const auto state = w.reactor.run(w.client.get_signing_request("c", w.soon()));
  REQUIRE(state.has_value());
  CHECK(state->step == SigningState::Step::kRefused);
  CHECK(state->message == "Denied: KubectlDeny: not on my watch");
}

TEST_CASE("the client CA comes from the cluster's ConfigMap, and its absence is told") {
  World w;
  w.api.answer(R"({"data":{"client-ca-file":"-----BEGIN CERTIFICATE-----\nx\n","requestheader-client-ca-file":"y"}})");
  CHECK(w.reactor.run(w.client.get_client_ca(w.soon())).value() == "-----BEGIN CERTIFICATE-----\nx\n");
  CHECK(w.api.requests.at(0).target == "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication");
  w.api.answer(R"({"data":{"requestheader-client-ca-file":"y"}})");
  const auto none = w.reactor.run(w.client.get_client_ca(w.soon()));
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().kind == ErrorKind::kNotFound);
  CHECK(none.error().message == "the ConfigMap kube-system/extension-apiserver-authentication has no client-ca-file");
}

}  // namespace
}  // namespace spillway::kube
