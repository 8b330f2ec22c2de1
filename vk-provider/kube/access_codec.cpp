#include "vk-provider/kube/access_codec.hpp"

#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

std::unexpected<base::Error> no_answer(std::string_view kind) {
  return base::fail(ErrorKind::kInvalid, "the API server's answer is no " + std::string(kind) + ", or broke off");
}

/// The two members of the object that are read. False if the text is not one whole object.
bool find_parts(std::string_view body, std::string_view& metadata, std::string_view& status) {
  JsonObject members(body);
  while (members.next()) {
    if (members.key() == "metadata") metadata = members.value();
    if (members.key() == "status") status = members.value();
  }
  return !members.failed() && json_is_object(body);
}

std::vector<std::string> decode_texts(std::string_view json) {
  std::vector<std::string> out;
  JsonArray list(json);
  while (list.next()) out.push_back(json_string_or_empty(list.value()));
  return out;
}

UserInfo decode_user(std::string_view json) {
  UserInfo out;
  out.name = json_string_or_empty(json_member(json, "username"));
  out.uid = json_string_or_empty(json_member(json, "uid"));
  out.groups = decode_texts(json_member(json, "groups"));
  JsonObject extra(json_member(json, "extra"));
  while (extra.next()) {
    if (auto key = json_unescape(extra.key())) out.extra.insert_or_assign(std::move(*key), decode_texts(extra.value()));
  }
  return out;
}

void write_texts(JsonWriter& out, const std::vector<std::string>& texts) {
  out.open_array();
  for (const std::string& text : texts) out.string(text);
  out.close_array();
}

}  // namespace

std::string encode_token_review(const base::Secret& token) {
  JsonWriter out;
  out.open_object().field("kind", "TokenReview").field("apiVersion", "authentication.k8s.io/v1");
  out.key("spec").open_object().field("token", token.reveal()).close_object();
  out.close_object();
  return out.take();
}

base::Result<TokenVerdict> decode_token_review(std::string_view body) {
  std::string_view metadata;
  std::string_view status;
  if (!find_parts(body, metadata, status)) return no_answer("TokenReview");
  TokenVerdict out;
  if (!json_is_true(json_member(status, "authenticated"))) return out;
  UserInfo user = decode_user(json_member(status, "user"));
  // Without a name nothing could be allowed or forbidden to it.
  if (user.name.empty()) return no_answer("TokenReview with a user");
  out.user = std::move(user);
  return out;
}

std::string encode_access_review(const AccessQuestion& question) {
  JsonWriter out;
  out.open_object().field("kind", "SubjectAccessReview").field("apiVersion", "authorization.k8s.io/v1");
  out.key("spec").open_object();
  out.field("user", question.user.name).field_if("uid", question.user.uid);
  write_texts(out.key("groups"), question.user.groups);
  if (!question.user.extra.empty()) {
    out.key("extra").open_object();
    for (const auto& [key, values] : question.user.extra) write_texts(out.key(key), values);
    out.close_object();
  }
  out.key("resourceAttributes").open_object();
  out.field("verb", question.verb).field("version", "v1").field("resource", "nodes");
  out.field("subresource", question.subresource).field("name", question.node);
  out.close_object().close_object().close_object();
  return out.take();
}

base::Result<bool> decode_access_review(std::string_view body) {
  std::string_view metadata;
  std::string_view status;
  if (!find_parts(body, metadata, status) || !json_is_object(status)) return no_answer("SubjectAccessReview");
  return json_is_true(json_member(status, "allowed")) && !json_is_true(json_member(status, "denied"));
}

std::string encode_signing_request(const SigningRequest& request) {
  JsonWriter out;
  out.open_object().field("kind", "CertificateSigningRequest").field("apiVersion", "certificates.k8s.io/v1");
  out.key("metadata").open_object().field("generateName", request.name_prefix).close_object();
  out.key("spec").open_object();
  out.field("request", net::base64_encode(request.request_pem)).field("signerName", request.signer);
  // Those of a key that only signs: with an EC key nothing is enciphered.
  out.key("usages").open_array().string("digital signature").string("server auth").close_array();
  out.close_object().close_object();
  return out.take();
}

base::Result<SigningState> decode_signing_request(std::string_view body) {
  std::string_view metadata;
  std::string_view status;
  SigningState out;
  if (!find_parts(body, metadata, status)) return no_answer("CertificateSigningRequest");
  out.name = json_string_or_empty(json_member(metadata, "name"));
  if (out.name.empty()) return no_answer("CertificateSigningRequest");
  JsonArray conditions(json_member(status, "conditions"));
  while (conditions.next()) {
    const std::string type = json_string_or_empty(json_member(conditions.value(), "type"));
    if (type != "Denied" && type != "Failed") continue;
    out.step = SigningState::Step::kRefused;
    out.message = type + ": " + json_string_or_empty(json_member(conditions.value(), "reason")) + ": " +
                  json_string_or_empty(json_member(conditions.value(), "message"));
    return out;
  }
  const std::string encoded = json_string_or_empty(json_member(status, "certificate"));
  if (encoded.empty()) return out;
  auto certificate = net::base64_decode(encoded);
  if (!certificate) return no_answer("CertificateSigningRequest with a certificate in base64");
  out.step = SigningState::Step::kIssued;
  out.certificate_pem = std::move(*certificate);
  return out;
}

}  // namespace spillway::kube
