#include "vk-provider/kube/object_codec.hpp"

#include <utility>

#include <fmt/format.h>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;
using Strings = std::map<std::string, std::string>;

/// An object of strings. `what` names it in an error.
base::Result<Strings> decode_map(std::string_view json, bool base64, std::string_view what) {
  Strings out;
  JsonObject members(json);
  while (members.next()) {
    auto key = json_unescape(members.key());
    auto value = json_string(members.value());
    if (value && base64) value = net::base64_decode(*value);
    if (!key || !value) {
      return base::fail(ErrorKind::kInvalid,
                        std::string(what) + " of the object cannot be read at key " + std::string(members.key()));
    }
    out.insert_or_assign(std::move(*key), std::move(*value));
  }
  if (members.failed()) {
    return base::fail(ErrorKind::kInvalid, std::string(what) + " of the object is not well-formed JSON");
  }
  return out;
}

struct Parts {
  std::string_view metadata, status, type, data, binary_data;
};

base::Result<Parts> parts_of(std::string_view body) {
  Parts out;
  JsonObject members(body);
  while (members.next()) {
    if (members.key() == "metadata") out.metadata = members.value();
    if (members.key() == "status") out.status = members.value();
    if (members.key() == "type") out.type = members.value();
    if (members.key() == "data") out.data = members.value();
    if (members.key() == "binaryData") out.binary_data = members.value();
  }
  if (members.failed() || !json_is_object(body)) {
    return base::fail(ErrorKind::kInvalid, "the API server's answer is no object, or broke off");
  }
  return out;
}

base::Result<model::ConfigObject> decode_config(std::string_view body, bool secret) {
  const auto parts = parts_of(body);
  if (!parts) return base::fail(parts.error());
  auto data = decode_map(parts->data, secret, "data");
  if (!data) return base::fail(std::move(data.error()));
  auto binary = decode_map(parts->binary_data, true, "binaryData");
  if (!binary) return base::fail(std::move(binary.error()));
  model::ConfigObject out;
  out.type = json_string_or_empty(parts->type);
  out.data = std::move(*data);
  if (!secret) out.binary_data = std::move(*binary);
  return out;
}

model::Protocol decode_protocol(std::string_view value) {
  if (value == "\"UDP\"") return model::Protocol::kUdp;
  if (value == "\"SCTP\"") return model::Protocol::kSctp;
  return model::Protocol::kTcp;
}

/// One registry's entry: `auth` is base64 of user:password and wins. False if it cannot be read.
bool decode_login(std::string_view json, model::PullAuth& out) {
  JsonObject members(json);
  std::string auth;
  std::string password;
  while (members.next()) {
    if (members.key() == "username") out.username = json_string_or_empty(members.value());
    if (members.key() == "password") password = json_string_or_empty(members.value());
    if (members.key() == "auth") auth = json_string_or_empty(members.value());
  }
  if (members.failed() || !json_is_object(json)) return false;
  if (!auth.empty()) {
    // Some tools leave the padding away.
    while (auth.size() % 4 != 0) auth += '=';
    auto pair = net::base64_decode(auth);
    const size_t colon = pair ? pair->find(':') : std::string::npos;
    if (colon == std::string::npos) return false;
    out.username = pair->substr(0, colon);
    password = pair->substr(colon + 1);
  }
  out.password = base::Secret(std::move(password));
  return true;
}

/// `registries` maps each registry to its login.
base::Result<std::vector<model::PullAuth>> decode_logins(std::string_view registries) {
  std::vector<model::PullAuth> out;
  JsonObject members(registries);
  while (members.next()) {
    const auto registry = json_unescape(members.key());
    model::PullAuth auth;
    if (!registry || !decode_login(members.value(), auth)) {
      return base::fail(ErrorKind::kInvalid, "the login for registry " + std::string(members.key()) +
                                                 " cannot be read: it needs username and password, or auth");
    }
    auth.registry = *registry;
    if (!auth.username.empty() || !auth.password.empty()) out.push_back(std::move(auth));
  }
  if (members.failed()) return base::fail(ErrorKind::kInvalid, "it is not well-formed JSON");
  return out;
}

}  // namespace

base::Result<model::ConfigObject> decode_config_map(std::string_view body) { return decode_config(body, false); }
base::Result<model::ConfigObject> decode_secret(std::string_view body) { return decode_config(body, true); }

base::Result<model::PodMetadata> decode_pod_metadata(std::string_view body) {
  const auto parts = parts_of(body);
  if (!parts) return base::fail(parts.error());
  auto labels = decode_map(json_member(parts->metadata, "labels"), false, "labels");
  if (!labels) return base::fail(std::move(labels.error()));
  auto annotations = decode_map(json_member(parts->metadata, "annotations"), false, "annotations");
  if (!annotations) return base::fail(std::move(annotations.error()));
  model::PodMetadata out;
  out.uid = base::PodUid(json_string_or_empty(json_member(parts->metadata, "uid")));
  out.labels = std::move(*labels);
  out.annotations = std::move(*annotations);
  if (out.uid.empty()) return base::fail(ErrorKind::kInvalid, "the API server's answer has no metadata.uid");
  return out;
}

model::Service decode_service(std::string_view json) {
  model::Service out;
  out.name = json_string_or_empty(json_member(json_member(json, "metadata"), "name"));
  const std::string_view spec = json_member(json, "spec");
  out.cluster_ip = json_string_or_empty(json_member(spec, "clusterIP"));
  if (out.cluster_ip == "None") out.cluster_ip.clear();
  JsonArray ports(json_member(spec, "ports"));
  while (ports.next()) {
    model::ServicePort& port = out.ports.emplace_back();
    port.name = json_string_or_empty(json_member(ports.value(), "name"));
    const auto number = json_int(json_member(ports.value(), "port")).value_or(0);
    port.port = std::in_range<int>(number) ? static_cast<int>(number) : 0;
    port.protocol = decode_protocol(json_member(ports.value(), "protocol"));
  }
  return out;
}

std::uint64_t digest_of(const model::ConfigObject& object) {
  std::string text;
  for (const auto* values : {&object.data, &object.binary_data}) {
    for (const auto& [key, value] : *values) text += fmt::format("{}:{}={}:{}", key.size(), key, value.size(), value);
    text += ';';
  }
  std::uint64_t out = 0;
  const auto hash = net::sha256(text);
  for (size_t i = 0; i < sizeof(out); ++i) out = out << 8U | hash.at(i);
  return out;
}

std::string encode_token_request(const model::PodKey& pod, std::string_view audience, std::chrono::seconds expiration) {
  JsonWriter out;
  out.open_object().field("kind", "TokenRequest").field("apiVersion", "authentication.k8s.io/v1");
  out.key("spec").open_object();
  out.key("audiences").open_array();
  if (!audience.empty()) out.string(audience);
  out.close_array();
  out.field_number("expirationSeconds", expiration.count());
  out.key("boundObjectRef").open_object();
  out.field("kind", "Pod").field("apiVersion", "v1").field("name", pod.name.str()).field("uid", pod.uid.str());
  out.close_object().close_object().close_object();
  return out.take();
}

base::Result<model::BoundToken> decode_token(std::string_view body) {
  const auto parts = parts_of(body);
  if (!parts) return base::fail(parts.error());
  model::BoundToken out;
  out.token = base::Secret(json_string_or_empty(json_member(parts->status, "token")));
  const auto expires = json_string(json_member(parts->status, "expirationTimestamp"));
  const auto time = expires ? base::from_rfc3339(*expires) : std::nullopt;
  if (out.token.empty() || !time) {
    return base::fail(ErrorKind::kInvalid, "the API server's answer holds no token, or no time until which it holds");
  }
  out.expires_at = *time;
  return out;
}

base::Result<std::vector<model::PullAuth>> decode_pull_secret(const model::ConfigObject& secret) {
  const bool nested = secret.type == "kubernetes.io/dockerconfigjson";
  if (!nested && secret.type != "kubernetes.io/dockercfg") return {};
  const std::string key = nested ? ".dockerconfigjson" : ".dockercfg";
  const auto it = secret.data.find(key);
  if (it == secret.data.end()) return base::fail(ErrorKind::kInvalid, "it has no key " + key);
  if (!json_is_object(it->second)) return base::fail(ErrorKind::kInvalid, key + " is no JSON object");
  if (!nested) return decode_logins(it->second);
  std::string_view auths;
  JsonObject members(it->second);
  while (members.next()) {
    if (members.key() == "auths") auths = members.value();
  }
  if (members.failed()) return base::fail(ErrorKind::kInvalid, key + " is not well-formed JSON");
  return decode_logins(auths);
}

}  // namespace spillway::kube
