#include "vk-provider/kube/node_client.hpp"

#include <utility>

#include "vk-provider/model/labels.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kStrategicMerge = "application/strategic-merge-patch+json";

// A Node's name is a DNS-1123 subdomain: nothing in it needs to be escaped.
std::string path_of(const std::string& name) { return "/api/v1/nodes/" + name; }

std::string as_manager() { return "?fieldManager=" + std::string(model::kFieldManager); }

std::string by_force() { return as_manager() + "&force=true"; }

/// The API server (1.36) answers a UID that does not match with 409 to an apply of an object that is absent, but with
/// 422 "metadata.uid: ... field is immutable" otherwise. Both mean that our copy is of another Node.
base::Error with_uid_conflict(base::Error error) {
  if (error.kind == ErrorKind::kInvalid && error.message.find("metadata.uid") != std::string::npos) {
    error.kind = ErrorKind::kConflict;
  }
  return error;
}

}  // namespace

async::Task<std::string> NodeClient::get_server_version(base::Deadline deadline) {
  KubeRequest request;
  request.target = "/version";
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return decode_server_version(answer->body);
}

async::Task<ObservedNode> NodeClient::get(std::string name, base::Deadline deadline) {
  KubeRequest request;
  request.target = path_of(name);
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return decode_node(answer->body);
}

async::Task<ObservedNode> NodeClient::create(NodeMetadata metadata, std::vector<NodeTaint> taints,
                                             std::string provider_id, base::Deadline deadline) {
  KubeRequest request;
  request.method = net::Method::kPost;
  request.target = "/api/v1/nodes" + as_manager();
  request.content_type = "application/json";
  request.body = encode_node_create(metadata, taints, provider_id);
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return decode_node(answer->body);
}

async::Task<ObservedNode> NodeClient::patch(std::string target, std::string content_type, std::string body,
                                            base::Deadline deadline) {
  KubeRequest request;
  request.method = net::Method::kPatch;
  request.target = std::move(target);
  request.content_type = std::move(content_type);
  request.body = std::move(body);
  auto answer = co_await api_.send(std::move(request), deadline);
  if (!answer) co_return base::fail(with_uid_conflict(std::move(answer.error())));
  co_return decode_node(answer->body);
}

async::Task<ObservedNode> NodeClient::apply_metadata(NodeMetadata metadata, base::Deadline deadline) {
  return patch(path_of(metadata.name) + by_force(), kApply, encode_metadata_apply(metadata), deadline);
}

async::Task<ObservedNode> NodeClient::remove_metadata(std::string name, std::string uid, std::set<std::string> labels,
                                                      std::set<std::string> annotations, base::Deadline deadline) {
  return patch(path_of(name) + as_manager(), kMerge, encode_metadata_removal(uid, labels, annotations), deadline);
}

async::Task<ObservedNode> NodeClient::apply_status(std::string name, std::string uid, NodeStatus status,
                                                   base::WallTime now, base::Deadline deadline) {
  return patch(path_of(name) + "/status" + by_force(), kApply, encode_status_apply(name, uid, status, now), deadline);
}

async::Task<ObservedNode> NodeClient::replace_addresses(std::string name, std::string uid,
                                                        std::vector<NodeAddress> addresses, base::Deadline deadline) {
  return patch(path_of(name) + "/status" + as_manager(), kStrategicMerge, encode_addresses_patch(uid, addresses),
               deadline);
}

async::Task<ObservedNode> NodeClient::write_taints(std::string name, std::string resource_version,
                                                   std::vector<NodeTaint> taints, base::Deadline deadline) {
  return patch(path_of(name) + as_manager(), kMerge, encode_taints_patch(resource_version, taints), deadline);
}

async::Task<ObservedNode> NodeClient::set_provider_id(std::string name, std::string uid, std::string provider_id,
                                                      base::Deadline deadline) {
  return patch(path_of(name) + as_manager(), kMerge, encode_provider_id_patch(uid, provider_id), deadline);
}

}  // namespace spillway::kube
