#include "vk-provider/kube/config_map_client.hpp"

#include <optional>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/kube/list_page.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

constexpr std::string_view kMetadataOnly =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Nothing if it broke off, or holds what is no text.
std::optional<std::map<std::string, std::string>> decode_texts(std::string_view json) {
  std::map<std::string, std::string> out;
  JsonObject members(json);
  while (members.next()) {
    auto key = json_unescape(members.key());
    auto value = json_string(members.value());
    if (!key || !value) return std::nullopt;
    out.insert_or_assign(std::move(*key), std::move(*value));
  }
  if (members.failed()) return std::nullopt;
  return out;
}

base::Result<ConfigMap> decode(std::string_view json) {
  std::string_view metadata;
  std::string_view data;
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "metadata") metadata = members.value();
    if (members.key() == "data") data = members.value();
  }
  ConfigMap out;
  auto labels = decode_texts(json_member(metadata, "labels"));
  auto texts = decode_texts(data);
  out.name = json_string_or_empty(json_member(metadata, "name"));
  out.resource_version = json_string_or_empty(json_member(metadata, "resourceVersion"));
  if (members.failed() || !labels || !texts || out.name.empty() || out.resource_version.empty()) {
    return base::fail(ErrorKind::kInvalid, "the API server's answer is no ConfigMap, or broke off");
  }
  out.labels = std::move(*labels);
  out.data = std::move(*texts);
  return out;
}

std::string encode(const ConfigMap& map, const std::string& ns) {
  JsonWriter w;
  w.open_object().field("kind", "ConfigMap").field("apiVersion", "v1");
  w.key("metadata").open_object().field("name", map.name).field("namespace", ns);
  w.field_if("resourceVersion", map.resource_version);
  w.key("labels").open_object();
  for (const auto& [key, value] : map.labels) w.field(key, value);
  w.close_object().close_object();
  w.key("data").open_object();
  for (const auto& [key, value] : map.data) w.field(key, value);
  w.close_object().close_object();
  return w.take();
}

}  // namespace

std::string ConfigMapClient::collection() const {
  return "/api/v1/namespaces/" + net::encode_path_segment(ns_) + "/configmaps";
}

// So few that a page stays small: what is kept here comes near to the largest that an object may be.
async::Task<std::vector<ConfigMap>> ConfigMapClient::list(std::string selector, base::Deadline deadline) {
  return list_pages("?labelSelector=" + net::encode_query_value(selector) + "&limit=10", "application/json", deadline);
}

async::Task<std::vector<ConfigMap>> ConfigMapClient::list_names(std::string selector, base::Deadline deadline) {
  return list_pages("?labelSelector=" + net::encode_query_value(selector) + "&limit=500",
                    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", deadline);
}

async::Task<std::vector<ConfigMap>> ConfigMapClient::list_pages(std::string query, std::string accept,
                                                                base::Deadline deadline) {
  std::vector<ConfigMap> out;
  std::string next;
  do {
    KubeRequest request;
    request.target = collection() + query;
    request.accept = accept;
    if (!next.empty()) request.target += "&continue=" + net::encode_query_value(next);
    auto page = co_await api_.send(std::move(request), deadline);
    if (!page) co_return base::fail(std::move(page.error()));
    const std::optional<ListPage> list = parse_list_page(page->body);
    JsonArray items(list ? list->items : std::string_view());
    while (items.next()) {
      auto map = decode(items.value());
      if (!map) co_return base::fail(std::move(map.error()));
      out.push_back(std::move(*map));
    }
    if (!list || items.failed()) co_return base::fail(ErrorKind::kUnavailable, "the list of ConfigMaps was cut");
    next = list->continue_token;
  } while (!next.empty());
  co_return out;
}

async::Task<ConfigMap> ConfigMapClient::get(std::string name, base::Deadline deadline) {
  KubeRequest request;
  request.target = collection() + "/" + net::encode_path_segment(name);
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return decode(answer->body);
}

async::Task<std::string> ConfigMapClient::put(ConfigMap map, base::Deadline deadline) {
  KubeRequest request;
  const bool create = map.resource_version.empty();
  request.method = create ? net::Method::kPost : net::Method::kPut;
  request.target = collection() + (create ? "" : "/" + net::encode_path_segment(map.name));
  request.body = encode(map, ns_);
  request.content_type = "application/json";
  request.accept = kMetadataOnly;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  auto version = json_string(json_member(json_member(answer->body, "metadata"), "resourceVersion"));
  if (!version) co_return base::fail(ErrorKind::kUnknownOutcome, "the answer to a write of a ConfigMap broke off");
  co_return std::move(*version);
}

async::Task<void> ConfigMapClient::remove(std::string name, std::string resource_version, base::Deadline deadline) {
  KubeRequest request;
  request.method = net::Method::kDelete;
  request.target = collection() + "/" + net::encode_path_segment(name);
  JsonWriter w;
  w.open_object().field("kind", "DeleteOptions").field("apiVersion", "v1");
  w.key("preconditions").open_object().field("resourceVersion", resource_version).close_object().close_object();
  request.body = w.take();
  request.content_type = "application/json";
  request.accept = kMetadataOnly;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return base::Result<void>();
}

}  // namespace spillway::kube
