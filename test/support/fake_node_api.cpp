#include "test/support/fake_node_api.hpp"

#include <algorithm>
#include <utility>

namespace spillway::test {

using base::ErrorKind;
using nlohmann::json;

namespace {

constexpr std::string_view kNodes = "/api/v1/nodes";
constexpr std::string_view kLeases = "/leases";

std::string path_of(const std::string& target) { return target.substr(0, target.find('?')); }

std::string parameter(const std::string& target, const std::string& key) {
  for (const std::string& before : {"?" + key + "=", "&" + key + "="}) {
    const size_t start = target.find(before);
    if (start == std::string::npos) continue;
    const size_t from = start + before.size();
    return target.substr(from, target.find('&', from) - from);
  }
  return {};
}

/// The name in `fieldSelector=metadata.name=<name>`, however it is escaped.
std::string selected_name(const std::string& target) {
  std::string selector = parameter(target, "fieldSelector");
  const size_t cut = selector.find("metadata.name");
  if (cut == std::string::npos) return {};
  selector = selector.substr(cut + std::string_view("metadata.name").size());
  if (selector.starts_with("%3D")) return selector.substr(3);
  return selector.substr(1);
}

void own_metadata(json& node, const json& written, const char* operation) {
  json fields;
  for (const char* kind : {"labels", "annotations"}) {
    if (!written.contains(kind)) continue;
    for (const auto& [key, unused] : written[kind].items()) {
      fields["f:metadata"][std::string("f:") + kind]["f:" + key] = json::object();
    }
  }
  json& managed = node["metadata"]["managedFields"];
  managed.push_back({{"manager", "spillway"}, {"operation", operation}, {"fieldsV1", fields}});
}

void apply_status(json& node, const json& wanted) {
  json& status = node["status"];
  for (const auto& [key, value] : wanted.items()) {
    if (value.is_object()) status[key].update(value);    // an apply leaves the entries of others
    if (key == "declaredFeatures") status[key] = value;  // an atomic list
    if (key != "conditions") continue;
    for (const json& condition : value) {
      json& list = status["conditions"];
      const auto same =
          std::find_if(list.begin(), list.end(), [&](const json& other) { return other["type"] == condition["type"]; });
      if (same == list.end()) {
        list.push_back(condition);
      } else {
        *same = condition;
      }
    }
  }
}

}  // namespace

class FakeWatch final : public async::ByteStream {
 public:
  FakeWatch(FakeNodeApi& api, std::string name, std::uint64_t version, std::string initial)
      : api_(api),
        name_(std::move(name)),
        version_(version),
        initial_(std::move(initial)),
        waiter_(api.timers_.make_waiter()) {
    api_.watchers_.push_back(waiter_.get());
  }
  ~FakeWatch() override { std::erase(api_.watchers_, waiter_.get()); }

  async::Task<std::string> read(base::Deadline deadline) override {
    for (;;) {
      std::string lines = std::exchange(initial_, {});
      for (const FakeNodeApi::Event& event : api_.events_) {
        if (event.version <= version_) continue;
        version_ = event.version;
        if (name_.empty() || event.name == name_) lines += event.line + "\n";
      }
      if (!lines.empty()) co_return lines;
      if (co_await waiter_->wait_until(deadline)) co_return base::fail(ErrorKind::kDeadline, "nothing came");
    }
  }
  async::Task<void> write(std::string, base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, ""); }
  async::Task<void> close_write(base::Deadline) override { co_return base::Result<void>(); }

 private:
  FakeNodeApi& api_;
  std::string name_;
  std::uint64_t version_;
  std::string initial_;
  std::unique_ptr<async::Waiter> waiter_;
};

async::Task<kube::KubeResponse> FakeNodeApi::send(kube::KubeRequest request, base::Deadline deadline) {
  const bool list = request.method == net::Method::kGet && path_of(request.target) == kNodes;
  const std::string verb = list ? "LIST" : std::string(net::to_string(request.method));
  log_.push_back({timers_.now(), verb, request.target, request.body});
  if (delay > base::Duration{}) co_await timers_.sleep_until(std::min(deadline, timers_.now() + delay));
  auto fault = fault_for(verb, request.target);
  if (fault && !fault->performed) co_return base::fail(std::move(fault->error));
  auto answer = perform(request);
  if (fault) co_return base::fail(std::move(fault->error));
  if (!answer) co_return base::fail(std::move(answer.error()));
  kube::KubeResponse response;
  response.status = 200;
  response.body = answer->dump();
  co_return response;
}

async::Task<async::ByteStreamPtr> FakeNodeApi::watch(kube::KubeRequest request, base::Deadline) {
  log_.push_back({timers_.now(), "WATCH", request.target, {}});
  if (auto fault = fault_for("WATCH", request.target)) co_return base::fail(std::move(fault->error));
  const std::string name = selected_name(request.target);
  const std::string from = parameter(request.target, "resourceVersion");
  std::uint64_t version = from.empty() ? version_ : std::stoull(from);
  std::string initial;
  if (parameter(request.target, "sendInitialEvents") == "true") {
    version = version_;
    for (const auto& [key, node] : nodes_) {
      if (name.empty() || name == key) initial += json{{"type", "ADDED"}, {"object", node}}.dump() + "\n";
    }
    const json metadata = {{"resourceVersion", std::to_string(version_)},
                           {"annotations", {{"k8s.io/initial-events-end", "true"}}}};
    initial += json{{"type", "BOOKMARK"}, {"object", {{"kind", "Node"}, {"metadata", metadata}}}}.dump() + "\n";
  }
  async::ByteStreamPtr stream = std::make_unique<FakeWatch>(*this, name, version, std::move(initial));
  co_return stream;
}

std::optional<FakeNodeApi::Fault> FakeNodeApi::fault_for(const std::string& verb, const std::string& target) {
  for (Fault& fault : faults) {
    if (fault.times <= 0 || fault.verb != verb || !target.starts_with(fault.path)) continue;
    --fault.times;
    return fault;
  }
  return std::nullopt;
}

base::Result<json> FakeNodeApi::perform(const kube::KubeRequest& request) {
  std::string path = path_of(request.target);
  if (path == "/version") return json{{"gitVersion", "v1.36.3"}};
  const size_t leases = path.find(kLeases);
  if (leases != std::string::npos) {
    const std::string name = path.substr(leases + kLeases.size());
    return on_lease(request, name.empty() ? name : name.substr(1));
  }
  if (!path.starts_with(kNodes)) return base::fail(ErrorKind::kNotFound, path);
  if (path == kNodes) {
    if (request.method == net::Method::kGet) return list_nodes(selected_name(request.target));
    json node = json::parse(request.body);
    own_metadata(node, node["metadata"], "Update");
    node["spec"]["taints"].push_back({{"key", "node.kubernetes.io/not-ready"}, {"effect", "NoSchedule"}});
    auto created = create(nodes_, std::move(node));
    if (created) publish("ADDED", *created);
    return created;
  }
  path = path.substr(kNodes.size() + 1);
  const size_t slash = path.find('/');
  return on_node(request, path.substr(0, slash), slash != std::string::npos);
}

base::Result<json> FakeNodeApi::create(Objects& objects, json object) {
  const std::string name = object["metadata"]["name"];
  if (objects.contains(name)) return base::fail(ErrorKind::kConflict, name + " already exists");
  object["metadata"]["uid"] = "uid-" + std::to_string(++uids_);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  objects[name] = object;
  return object;
}

json FakeNodeApi::list_nodes(const std::string& name) const {
  json items = json::array();
  for (const auto& [key, node] : nodes_) {
    if (name.empty() || name == key) items.push_back(node);
  }
  return {{"kind", "NodeList"},
          {"apiVersion", "v1"},
          {"metadata", {{"resourceVersion", std::to_string(version_)}}},
          {"items", items}};
}

base::Result<json> FakeNodeApi::on_node(const kube::KubeRequest& request, const std::string& name, bool status) {
  const bool apply = request.content_type == "application/apply-patch+yaml";
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) {
    // As the real one: an apply with a UID does not create.
    return base::fail(apply && !status ? ErrorKind::kConflict : ErrorKind::kNotFound, name + " not found");
  }
  if (request.method == net::Method::kGet) return it->second;
  json node = it->second;
  json patch = json::parse(request.body);
  json& metadata = patch["metadata"];
  if (metadata.contains("uid") && metadata["uid"] != node["metadata"]["uid"]) {
    return base::fail(ErrorKind::kInvalid, "metadata.uid: Invalid value: field is immutable");
  }
  if (metadata.contains("resourceVersion") && metadata["resourceVersion"] != node["metadata"]["resourceVersion"]) {
    return base::fail(ErrorKind::kConflict, "the object has been modified");
  }
  if (status && apply) {
    apply_status(node, patch["status"]);
  } else if (status) {
    json addresses = patch["status"]["addresses"];
    addresses.erase(addresses.size() - 1);  // {"$patch":"replace"}
    node["status"]["addresses"] = addresses;
  } else {
    for (const char* key : {"name", "uid", "resourceVersion"}) metadata.erase(key);
    if (apply) own_metadata(node, metadata, "Apply");
    node.merge_patch(patch);
    for (json& managed : node["metadata"]["managedFields"]) {
      for (const char* kind : {"labels", "annotations"}) {
        json& fields = managed["fieldsV1"]["f:metadata"][std::string("f:") + kind];
        if (!fields.is_object()) continue;
        for (const auto& [key, value] : metadata.value(kind, json::object()).items()) {
          if (value.is_null()) fields.erase("f:" + key);
        }
      }
    }
  }
  store_node(name, std::move(node));
  return nodes_[name];
}

void FakeNodeApi::store_node(const std::string& name, json node) {
  if (nodes_[name] == node) return;  // a write that changes nothing makes no event
  node["metadata"]["resourceVersion"] = std::to_string(++version_);
  nodes_[name] = node;
  publish("MODIFIED", node);
}

void FakeNodeApi::publish(const char* type, const json& node) {
  Event event;
  event.version = version_;
  event.name = node["metadata"]["name"];
  event.line = json{{"type", type}, {"object", node}}.dump();
  events_.push_back(std::move(event));
  for (async::Waiter* const watcher : watchers_) watcher->wake();
}

base::Result<json> FakeNodeApi::on_lease(const kube::KubeRequest& request, const std::string& name) {
  if (request.method == net::Method::kPost) return create(leases_, json::parse(request.body));
  const auto it = leases_.find(name);
  if (it == leases_.end()) return base::fail(ErrorKind::kNotFound, name + " not found");
  if (request.method == net::Method::kGet) return it->second;
  json lease = json::parse(request.body);
  if (lease["metadata"]["resourceVersion"] != it->second["metadata"]["resourceVersion"]) {
    return base::fail(ErrorKind::kConflict, "the object has been modified");
  }
  lease["metadata"]["uid"] = it->second["metadata"]["uid"];
  lease["metadata"]["resourceVersion"] = std::to_string(++version_);
  it->second = lease;
  return lease;
}

void FakeNodeApi::put_node(json node) {
  auto created = create(nodes_, std::move(node));
  if (created) publish("ADDED", *created);
}

void FakeNodeApi::edit_node(const std::string& name, const std::function<void(json&)>& edit) {
  json node = nodes_.at(name);
  edit(node);
  store_node(name, std::move(node));
}

void FakeNodeApi::delete_node(const std::string& name) {
  json node = nodes_.at(name);
  nodes_.erase(name);
  node["metadata"]["resourceVersion"] = std::to_string(++version_);
  publish("DELETED", node);
}

void FakeNodeApi::edit_lease(const std::string& name, const std::function<void(json&)>& edit) {
  edit(leases_.at(name));
  leases_.at(name)["metadata"]["resourceVersion"] = std::to_string(++version_);
}

std::vector<FakeNodeApi::Request> FakeNodeApi::requests(const std::string& verb, const std::string& target) const {
  std::vector<Request> found;
  for (const Request& request : log_) {
    if (request.verb == verb && request.target.starts_with(target)) found.push_back(request);
  }
  return found;
}

}  // namespace spillway::test
