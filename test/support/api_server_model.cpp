#include "test/support/api_server_model.hpp"

#include <stdexcept>
#include <utility>

#include "vk-provider/kube/http_kube_api.hpp"

namespace spillway::test {
namespace {

using api_model::Answer;
using api_model::ApiError;
using api_model::ObjectPtr;
using api_model::Target;
using nlohmann::json;

constexpr const char* kMerge = "application/merge-patch+json";

kube::KubeRequest make_request(net::Method method, std::string target, const json& body = nullptr) {
  kube::KubeRequest request;
  request.method = method;
  request.target = std::move(target);
  if (!body.is_null()) request.body = body.dump();
  request.content_type = method == net::Method::kPatch ? kMerge : "application/json";
  return request;
}

Target known_target(const std::string& path) {
  auto target = api_model::parse_target(path);
  if (!target) throw std::logic_error("the API server model does not serve " + path);
  return std::move(*target);
}

/// As kube::HttpKubeApi makes it of the same answer.
base::Error error_of(net::Method method, Answer answer) {
  net::HttpResponse response;
  response.status = answer.code;
  if (answer.retry_after) response.headers.emplace_back("Retry-After", std::to_string(*answer.retry_after));
  response.body = std::move(answer.body);
  return kube::error_of(method, response);
}

Answer not_served() { return {404, "404 page not found", {}}; }

}  // namespace

ApiServerModel::ApiServerModel(async::Timers& timers)
    : requests_(store_, timers),
      watches_(store_, timers, [this] { return watch_lag ? watch_lag() : base::Duration(0); }) {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease", "spillway-system"}) {
    create("/api/v1/namespaces", {{"metadata", {{"name", name}}}});
  }
}
ApiServerModel::~ApiServerModel() = default;

void ApiServerModel::count(const kube::KubeRequest& request, const Target& target, bool watch) {
  std::string what = watch ? "watch" : std::string(net::to_string(request.method));
  what.append(" ").append(target.resource->plural);
  if (!target.subresource.empty()) what.append("/").append(target.subresource);
  ++counts_[what];
}

Answer ApiServerModel::exchange(const kube::KubeRequest& request) {
  if (request.target == "/version") {
    return {200, R"({"major":"1","minor":"36","gitVersion":"v1.36.3"})", {}};
  }
  const auto target = api_model::parse_target(request.target);
  if (!target) return not_served();
  count(request, *target, false);
  return requests_.answer(request, *target);
}

async::Task<kube::KubeResponse> ApiServerModel::send(kube::KubeRequest request, base::Deadline) {
  Answer answer = exchange(request);
  if (answer.code >= 300) co_return base::fail(error_of(request.method, std::move(answer)));
  kube::KubeResponse response;
  response.status = answer.code;
  response.body = std::move(answer.body);
  co_return response;
}

std::expected<async::ByteStreamPtr, Answer> ApiServerModel::open_watch(const kube::KubeRequest& request) {
  const auto target = api_model::parse_target(request.target);
  if (!target) return std::unexpected(not_served());
  count(request, *target, true);
  auto stream = watches_.open(*target, api_model::wants_metadata_only(request));
  if (!stream) return std::unexpected(Answer::of(stream.error()));
  return std::move(*stream);
}

async::Task<async::ByteStreamPtr> ApiServerModel::watch(kube::KubeRequest request, base::Deadline) {
  auto stream = open_watch(request);
  if (!stream) co_return base::fail(error_of(request.method, std::move(stream.error())));
  co_return std::move(*stream);
}

json ApiServerModel::create(const std::string& collection, json object) {
  const Target target = known_target(collection);
  const api_model::Resource& namespaces = api_model::resource_named("namespaces");
  if (!target.ns.empty() && !store_.find(namespaces, target.ns)) {
    create("/api/v1/namespaces", {{"metadata", {{"name", target.ns}}}});
  }
  const Answer answer = requests_.answer(make_request(net::Method::kPost, collection, object), target);
  if (answer.code != 201) throw std::logic_error("POST " + collection + ": " + answer.body);
  return json::parse(answer.body);
}

void ApiServerModel::edit(const std::string& path, const json& patch) {
  const Answer answer = requests_.answer(make_request(net::Method::kPatch, path, patch), known_target(path));
  if (answer.code != 200) throw std::logic_error("PATCH " + path + ": " + answer.body);
}

void ApiServerModel::delete_pod(const std::string& ns, const std::string& name, int grace_seconds) {
  const std::string path = "/api/v1/namespaces/" + ns + "/pods/" + name;
  const json options{{"gracePeriodSeconds", grace_seconds}};
  const Answer answer = requests_.answer(make_request(net::Method::kDelete, path, options), known_target(path));
  if (answer.code != 200 && answer.code != 404) throw std::logic_error("DELETE " + path + ": " + answer.body);
}

ObjectPtr ApiServerModel::find(const std::string& path) const {
  const Target target = known_target(path);
  return store_.find(*target.resource, target.key());
}

json ApiServerModel::get(const std::string& path) const {
  const ObjectPtr object = find(path);
  return object ? object->whole() : json();
}

const std::map<std::string, ObjectPtr>& ApiServerModel::all(std::string_view plural) const {
  return store_.all(api_model::resource_named(plural));
}

std::vector<json> ApiServerModel::list(const std::string& collection) const {
  const Target target = known_target(collection);
  std::vector<json> found;
  for (const auto& [key, object] : store_.all(*target.resource)) {
    if (target.ns.empty() || object->ns() == target.ns) found.push_back(object->whole());
  }
  return found;
}

}  // namespace spillway::test
