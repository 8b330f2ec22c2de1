#include "vk-provider/kube/access_client.hpp"

#include <utility>

#include "vk-provider/kube/object_codec.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

constexpr const char* kSigningRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
constexpr const char* kClientCa = "client-ca-file";

}  // namespace

async::Task<std::string> AccessClient::post(std::string target, std::string body, base::Deadline deadline) {
  KubeRequest request;
  request.method = net::Method::kPost;
  request.target = std::move(target);
  request.body = std::move(body);
  request.content_type = "application/json";
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return std::move(answer->body);
}

async::Task<std::string> AccessClient::get(std::string target, base::Deadline deadline) {
  KubeRequest request;
  request.target = std::move(target);
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return std::move(answer->body);
}

async::Task<TokenVerdict> AccessClient::review_token(base::Secret token, base::Deadline deadline) {
  auto body = co_await post("/apis/authentication.k8s.io/v1/tokenreviews", encode_token_review(token), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_token_review(*body);
}

async::Task<bool> AccessClient::review_access(AccessQuestion question, base::Deadline deadline) {
  auto body =
      co_await post("/apis/authorization.k8s.io/v1/subjectaccessreviews", encode_access_review(question), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_access_review(*body);
}

async::Task<SigningState> AccessClient::create_signing_request(SigningRequest request, base::Deadline deadline) {
  auto body = co_await post(kSigningRequests, encode_signing_request(request), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_signing_request(*body);
}

async::Task<SigningState> AccessClient::get_signing_request(std::string name, base::Deadline deadline) {
  auto body = co_await get(std::string(kSigningRequests) + "/" + net::encode_path_segment(name), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_signing_request(*body);
}

async::Task<std::string> AccessClient::get_client_ca(base::Deadline deadline) {
  auto body = co_await get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  auto map = decode_config_map(*body);
  if (!map) co_return base::fail(std::move(map.error()));
  const auto found = map->data.find(kClientCa);
  if (found == map->data.end() || found->second.empty()) {
    co_return base::fail(
        ErrorKind::kNotFound,
        std::string("the ConfigMap kube-system/extension-apiserver-authentication has no ") + kClientCa);
  }
  co_return std::move(found->second);
}

}  // namespace spillway::kube
