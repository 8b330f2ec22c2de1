#include "vk-provider/kube/client.hpp"

#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/kube/list_page.hpp"
#include "vk-provider/kube/object_codec.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kStrategicMerge = "application/strategic-merge-patch+json";
// For writes of whose answer only the resourceVersion matters: a tenth of the bytes.
constexpr std::string_view kMetadataOnly =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// /api/v1/namespaces/<ns>/<resource>[/<name>]. Names of ConfigMaps and Secrets come from pods, whose authors may write
/// anything there: `..` would lead elsewhere with our rights.
base::Result<std::string> object_path(std::string_view group, std::string_view resource, const std::string& ns,
                                      const std::string& name) {
  const auto leads_elsewhere = [](const std::string& part) { return part.empty() || part == "." || part == ".."; };
  if (leads_elsewhere(ns) || leads_elsewhere(name)) {
    return base::fail(ErrorKind::kInvalid, "\"" + ns + "/" + name + "\" is no name among " + std::string(resource));
  }
  return std::string(group) + "/namespaces/" + net::encode_path_segment(ns) + "/" + std::string(resource) + "/" +
         net::encode_path_segment(name);
}

std::string collection_path(std::string_view group, std::string_view resource, const std::string& ns) {
  return std::string(group) + "/namespaces/" + net::encode_path_segment(ns) + "/" + std::string(resource);
}

constexpr std::string_view kCore = "/api/v1";
constexpr std::string_view kCoordination = "/apis/coordination.k8s.io/v1";

KubeRequest get_request(std::string target) {
  KubeRequest request;
  request.target = std::move(target);
  return request;
}

KubeRequest write_request(net::Method method, std::string target, std::string body, std::string_view content_type) {
  KubeRequest request;
  request.method = method;
  request.target = std::move(target);
  request.body = std::move(body);
  request.content_type = content_type;
  return request;
}

base::Result<std::string> resource_version_of(std::string_view body) {
  auto version = json_string(json_member(body, "metadata", "resourceVersion"));
  if (!version) return base::fail(ErrorKind::kInvalid, "the API server's answer has no metadata.resourceVersion");
  return std::move(*version);
}

/// The server says 422 "metadata.uid: field is immutable" where it means that the object is another one by now.
base::Error with_uid_conflict(base::Error error) {
  if (error.kind == ErrorKind::kInvalid && error.message.find("metadata.uid") != std::string::npos) {
    error.kind = ErrorKind::kConflict;
  }
  return error;
}

std::string encode_delete(const model::PodKey& key) {
  JsonWriter out;
  out.open_object().field("kind", "DeleteOptions").field("apiVersion", "v1").field_number("gracePeriodSeconds", 0);
  out.key("preconditions").open_object().field("uid", key.uid.str()).close_object();
  out.close_object();
  return out.take();
}

std::string encode_lease(const Lease& lease) {
  JsonWriter out;
  out.open_object().field("kind", "Lease").field("apiVersion", "coordination.k8s.io/v1");
  out.key("metadata").open_object();
  out.field("name", lease.name).field("namespace", lease.ns).field_if("resourceVersion", lease.resource_version);
  if (!lease.owner_node_uid.empty()) {
    out.key("ownerReferences").open_array().open_object();
    out.field("apiVersion", "v1").field("kind", "Node");
    out.field("name", lease.owner_node_name).field("uid", lease.owner_node_uid);
    out.close_object().close_array();
  }
  out.close_object().key("spec").open_object();
  out.field_if("holderIdentity", lease.holder);
  if (lease.duration.count() > 0) out.field_number("leaseDurationSeconds", lease.duration.count());
  if (lease.acquire_time) out.field("acquireTime", base::to_rfc3339_micro(*lease.acquire_time));
  if (lease.renew_time) out.field("renewTime", base::to_rfc3339_micro(*lease.renew_time));
  out.field_number("leaseTransitions", lease.transitions);
  out.close_object().close_object();
  return out.take();
}

std::optional<base::WallTime> decode_time(std::string_view value) {
  const auto text = json_string(value);
  return text ? base::from_rfc3339(*text) : std::nullopt;
}

base::Result<Lease> decode_lease(std::string_view body) {
  Lease out;
  const std::string_view metadata = json_member(body, "metadata");
  out.ns = json_string_or_empty(json_member(metadata, "namespace"));
  out.name = json_string_or_empty(json_member(metadata, "name"));
  out.resource_version = json_string_or_empty(json_member(metadata, "resourceVersion"));
  if (out.name.empty() || out.resource_version.empty()) {
    return base::fail(ErrorKind::kInvalid, "the API server's answer is no Lease");
  }
  JsonArray owners(json_member(metadata, "ownerReferences"));
  while (owners.next()) {
    if (json_member(owners.value(), "kind") != "\"Node\"") continue;
    out.owner_node_name = json_string_or_empty(json_member(owners.value(), "name"));
    out.owner_node_uid = json_string_or_empty(json_member(owners.value(), "uid"));
  }
  const std::string_view spec = json_member(body, "spec");
  out.holder = json_string_or_empty(json_member(spec, "holderIdentity"));
  out.duration = std::chrono::seconds(json_int(json_member(spec, "leaseDurationSeconds")).value_or(0));
  out.acquire_time = decode_time(json_member(spec, "acquireTime"));
  out.renew_time = decode_time(json_member(spec, "renewTime"));
  const auto transitions = json_int(json_member(spec, "leaseTransitions")).value_or(0);
  out.transitions = std::in_range<int>(transitions) ? static_cast<int>(transitions) : 0;
  return out;
}

std::string encode_event(const Event& event) {
  JsonWriter out;
  out.open_object().field("kind", "Event").field("apiVersion", "v1");
  out.key("metadata").open_object().field("name", event.name).field("namespace", event.ns).close_object();
  out.key("involvedObject").open_object();
  out.field("kind", event.involved_kind).field_if("namespace", event.involved_namespace);
  out.field("name", event.involved_name).field_if("uid", event.involved_uid);
  out.field_if("apiVersion", event.involved_version);
  out.close_object();
  out.field("type", event.warning ? "Warning" : "Normal").field("reason", event.reason);
  out.field("message", event.message);
  out.key("source").open_object().field("component", model::kFieldManager).field_if("host", event.host).close_object();
  out.field("reportingComponent", model::kFieldManager).field_if("reportingInstance", event.host);
  out.field("firstTimestamp", base::to_rfc3339(event.first_seen));
  out.field("lastTimestamp", base::to_rfc3339(event.last_seen));
  out.field_number("count", event.count);
  out.close_object();
  return out.take();
}

std::string encode_event_patch(const Event& event) {
  JsonWriter out;
  out.open_object().field_number("count", event.count).field("lastTimestamp", base::to_rfc3339(event.last_seen));
  out.field("message", event.message).close_object();
  return out.take();
}

}  // namespace

async::Task<std::string> Client::get_object(std::string_view api, std::string_view resource, std::string ns,
                                            std::string name, base::Deadline deadline) {
  auto path = object_path(api, resource, ns, name);
  if (!path) co_return base::fail(std::move(path.error()));
  auto answer = co_await api_.send(get_request(std::move(*path)), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return std::move(answer->body);
}

async::Task<std::string> Client::get_cluster_uid(base::Deadline deadline) {
  auto answer = co_await api_.send(get_request("/api/v1/namespaces/kube-system"), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  auto uid = json_string(json_member(json_member(answer->body, "metadata"), "uid"));
  if (!uid || uid->empty()) {
    co_return base::fail(ErrorKind::kInvalid, "the API server's answer for namespace kube-system has no metadata.uid");
  }
  co_return std::move(*uid);
}

async::Task<std::string> Client::patch_pod_status(PodStatusPatch patch, base::Deadline deadline) {
  auto path = object_path(kCore, "pods", patch.key.ns, patch.key.name);
  if (!path) co_return base::fail(std::move(path.error()));
  KubeRequest request =
      write_request(net::Method::kPatch, *path + "/status", encode_status_patch(patch), kStrategicMerge);
  request.accept = kMetadataOnly;
  ++status_writes_;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(with_uid_conflict(std::move(answer.error())));
  co_return resource_version_of(answer->body);
}

async::Task<void> Client::delete_pod(model::PodKey key, base::Deadline deadline) {
  auto path = object_path(kCore, "pods", key.ns, key.name);
  if (!path) co_return base::fail(std::move(path.error()));
  KubeRequest request = write_request(net::Method::kDelete, std::move(*path), encode_delete(key), kJson);
  request.accept = kMetadataOnly;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return base::Result<void>();
}

async::Task<DecodedPod> Client::get_pod(std::string ns, std::string name, base::Deadline deadline) {
  auto body = co_await get_object(kCore, "pods", std::move(ns), std::move(name), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_pod(*body, {});
}

async::Task<model::PodMetadata> Client::get_pod_metadata(model::PodKey key, base::Deadline deadline) {
  auto path = object_path(kCore, "pods", key.ns, key.name);
  if (!path) co_return base::fail(std::move(path.error()));
  KubeRequest request = get_request(std::move(*path));
  request.accept = kMetadataOnly;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  auto metadata = decode_pod_metadata(answer->body);
  if (metadata && metadata->uid != key.uid) {
    co_return base::fail(ErrorKind::kNotFound, "pod " + key.to_string() + " is another one by now");
  }
  co_return metadata;
}

async::Task<model::ConfigObject> Client::get_config_map(std::string ns, std::string name, base::Deadline deadline) {
  auto body = co_await get_object(kCore, "configmaps", std::move(ns), std::move(name), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_config_map(*body);
}

async::Task<model::ConfigObject> Client::get_secret(std::string ns, std::string name, base::Deadline deadline) {
  auto body = co_await get_object(kCore, "secrets", std::move(ns), std::move(name), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_secret(*body);
}

async::Task<model::Service> Client::get_service(std::string ns, std::string name, base::Deadline deadline) {
  auto body = co_await get_object(kCore, "services", std::move(ns), std::move(name), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_service(*body);
}

async::Task<std::vector<model::Service>> Client::list_services(std::string ns, base::Deadline deadline) {
  std::vector<model::Service> services;
  std::string next;
  do {
    std::string target = collection_path(kCore, "services", ns) + "?limit=500";
    if (!next.empty()) target += "&continue=" + net::encode_query_value(next);
    auto page = co_await api_.send(get_request(std::move(target)), deadline);
    if (!page) co_return base::fail(std::move(page.error()));
    const std::optional<ListPage> list = parse_list_page(page->body);
    JsonArray items(list ? list->items : std::string_view());
    while (items.next()) services.push_back(decode_service(items.value()));
    if (!list || items.failed()) co_return base::fail(ErrorKind::kUnavailable, "the list of services was cut");
    next = list->continue_token;
  } while (!next.empty());
  co_return services;
}

async::Task<model::BoundToken> Client::request_token(model::PodKey pod, std::string account, std::string audience,
                                                     std::chrono::seconds expiration, base::Deadline deadline) {
  auto path = object_path(kCore, "serviceaccounts", pod.ns, account);
  if (!path) co_return base::fail(std::move(path.error()));
  auto answer = co_await api_.send(
      write_request(net::Method::kPost, *path + "/token", encode_token_request(pod, audience, expiration), kJson),
      deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return decode_token(answer->body);
}

async::Task<Lease> Client::get_lease(std::string ns, std::string name, base::Deadline deadline) {
  auto body = co_await get_object(kCoordination, "leases", std::move(ns), std::move(name), deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return decode_lease(*body);
}

async::Task<Lease> Client::put_lease(Lease lease, base::Deadline deadline) {
  auto path = object_path(kCoordination, "leases", lease.ns, lease.name);
  if (!path) co_return base::fail(std::move(path.error()));
  const bool create = lease.resource_version.empty();
  if (create) *path = collection_path(kCoordination, "leases", lease.ns);
  KubeRequest request =
      write_request(create ? net::Method::kPost : net::Method::kPut, std::move(*path), encode_lease(lease), kJson);
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return decode_lease(answer->body);
}

async::Task<void> Client::create_event(Event event, base::Deadline deadline) {
  KubeRequest request =
      write_request(net::Method::kPost, collection_path(kCore, "events", event.ns), encode_event(event), kJson);
  request.accept = kMetadataOnly;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return base::Result<void>();
}

async::Task<void> Client::patch_event(Event event, base::Deadline deadline) {
  auto path = object_path(kCore, "events", event.ns, event.name);
  if (!path) co_return base::fail(std::move(path.error()));
  KubeRequest request =
      write_request(net::Method::kPatch, std::move(*path), encode_event_patch(event), kStrategicMerge);
  request.accept = kMetadataOnly;
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return base::Result<void>();
}

}  // namespace spillway::kube
