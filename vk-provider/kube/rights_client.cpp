#include "vk-provider/kube/rights_client.hpp"

#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::kube {

std::string encode_access_review(const UserInfo& user, const ResourceRight& right) {
  JsonWriter out;
  out.open_object().field("kind", "SubjectAccessReview").field("apiVersion", "authorization.k8s.io/v1");
  out.key("spec").open_object().field("user", user.name).key("groups").open_array();
  for (const std::string& group : user.groups) out.string(group);
  out.close_array().key("resourceAttributes").open_object();
  out.field_if("group", right.group).field("resource", right.resource).field_if("subresource", right.subresource);
  out.field("verb", right.verb).field_if("namespace", right.ns).field_if("name", right.name);
  out.close_object().close_object().close_object();
  return out.take();
}

base::Result<std::string> decode_self_review(std::string_view body) {
  auto name = json_string(json_member(json_member(json_member(body, "status"), "userInfo"), "username"));
  if (name && !name->empty()) return std::move(*name);
  return base::fail(base::ErrorKind::kInvalid, "the API server's answer is no SelfSubjectReview");
}

UserInfo service_account(const std::string& ns, const std::string& name) {
  UserInfo out;
  out.name = "system:serviceaccount:" + ns + ":" + name;
  out.groups = {"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"};
  return out;
}

async::Task<std::string> RightsClient::post(std::string target, std::string body, base::Deadline deadline) {
  KubeRequest request;
  request.method = net::Method::kPost;
  request.target = std::move(target);
  request.body = std::move(body);
  request.content_type = "application/json";
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return std::move(answer->body);
}

async::Task<bool> RightsClient::review(UserInfo user, ResourceRight right, base::Deadline deadline) {
  auto body =
      co_await post("/apis/authorization.k8s.io/v1/subjectaccessreviews", encode_access_review(user, right), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_access_review(*body);
}

async::Task<std::string> RightsClient::who_am_i(base::Deadline deadline) {
  auto body = co_await post("/apis/authentication.k8s.io/v1/selfsubjectreviews",
                            R"({"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"})", deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_self_review(*body);
}

}  // namespace spillway::kube
