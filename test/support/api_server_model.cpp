#include "test/support/api_server_model.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace spillway::test {
namespace {

using base::ErrorKind;
using nlohmann::json;

struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Target parse(const std::string& target) {
  Target parsed;
  const size_t question = target.find('?');
  parsed.path = decoded(target.substr(0, question));
  while (question != std::string::npos) {
    size_t at = question + 1;
    while (at < target.size()) {
      const size_t end = std::min(target.find('&', at), target.size());
      const std::string pair = target.substr(at, end - at);
      const size_t equals = pair.find('=');
      parsed.query[pair.substr(0, equals)] = equals == std::string::npos ? "" : decoded(pair.substr(equals + 1));
      at = end + 1;
    }
    break;
  }
  return parsed;
}

bool has_prefix(const std::string& path, const std::string& collection) { return path.starts_with(collection + "/"); }

/// /api/v1/pods lists the pods of all namespaces.
bool in_collection(const std::string& path, const std::string& collection) {
  if (has_prefix(path, collection)) return path.find('/', collection.size() + 1) == std::string::npos;
  if (collection != "/api/v1/pods") return false;
  return path.find("/pods/") != std::string::npos;
}

bool selected(const json& object, const std::string& selector) {
  if (selector.empty()) return true;
  const size_t equals = selector.find('=');
  const std::string key = selector.substr(0, equals);
  const std::string value = selector.substr(equals + 1);
  if (key == "metadata.name") return object["metadata"].value("name", "") == value;
  if (key == "spec.nodeName") return object.contains("spec") && object["spec"].value("nodeName", "") == value;
  return false;
}

std::string merge_key(const std::string& list) {
  if (list == "conditions" || list == "addresses") return "type";
  if (list == "podIPs" || list == "hostIPs") return "ip";
  return {};
}

void merge_list(json& into, const json& patch, const std::string& key);

void merge(json& into, const json& patch) {
  if (!into.is_object()) into = json::object();
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null()) {
      into.erase(key);
    } else if (value.is_object()) {
      merge(into[key], value);
    } else if (value.is_array() && !merge_key(key).empty()) {
      merge_list(into[key], value, merge_key(key));
    } else {
      into[key] = value;
    }
  }
}

void merge_list(json& into, const json& patch, const std::string& key) {
  if (!into.is_array()) into = json::array();
  for (const json& item : patch) {
    if (item.value("$patch", "") == "replace") {
      into = json::array();
      continue;
    }
    auto it = std::find_if(into.begin(), into.end(),
                           [&](const json& known) { return known.value(key, "") == item.value(key, ""); });
    if (item.value("$patch", "") == "delete") {
      if (it != into.end()) into.erase(it);
    } else if (it != into.end()) {
      merge(*it, item);
    } else {
      json fresh;
      merge(fresh, item);
      into.push_back(fresh);
    }
  }
}

std::string verb_of(const kube::KubeRequest& request, const Target& target) {
  if (target.query.contains("watch")) return "watch";
  return std::string(to_string(request.method));
}

std::string resource_of(const std::string& path) {
  for (const char* name : {"pods", "nodes", "leases", "events", "configmaps", "secrets", "namespaces"}) {
    const std::string part = std::string("/") + name;
    const size_t at = path.rfind(part);
    if (at == std::string::npos) continue;
    return path.ends_with("/status") ? std::string(name) + "/status" : std::string(name);
  }
  return path;
}

}  // namespace

class ApiServerModel::WatchStream final : public async::ByteStream {
 public:
  WatchStream(ApiServerModel& model, const Target& target)
      : model_(model), path_(target.path), waiter_(model.timers_.make_waiter()) {
    const auto find = [&](const char* key) {
      const auto it = target.query.find(key);
      return it == target.query.end() ? std::string() : it->second;
    };
    selector_ = find("fieldSelector");
    const std::string seconds = find("timeoutSeconds");
    ends_ = model.timers_.now() + std::chrono::seconds(seconds.empty() ? 1800 : std::stoi(seconds));
    if (find("sendInitialEvents") == "true") {
      for (const auto& [path, object] : model_.objects_) {
        if (matches(path, object)) push("ADDED", object);
      }
      json end{{"metadata",
                {{"resourceVersion", std::to_string(model_.version_)},
                 {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}};
      push("BOOKMARK", end);
    } else {
      const std::string version = find("resourceVersion");
      const std::uint64_t since = version.empty() ? 0 : std::stoull(version);
      for (const Change& change : model_.changes_) {
        if (change.version > since) take(change);
      }
    }
    model_.watchers_.push_back(this);
  }
  ~WatchStream() override { std::erase(model_.watchers_, this); }

  void take(const Change& change) {
    if (matches(change.path, change.object)) push(change.type, change.object);
  }

  async::Task<std::string> read(base::Deadline deadline) override {
    if (lines_.empty() && model_.timers_.now() < ends_) co_await waiter_->wait_until(std::min(deadline, ends_));
    if (!lines_.empty()) {
      std::string line = std::move(lines_.front());
      lines_.pop_front();
      co_return line;
    }
    if (model_.timers_.now() < ends_) co_return base::fail(ErrorKind::kDeadline, "silent");
    co_return std::string();
  }
  async::Task<void> write(std::string, base::Deadline) override {
    co_return base::fail(ErrorKind::kUnsupported, "a watch");
  }
  async::Task<void> close_write(base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, "a watch"); }

 private:
  bool matches(const std::string& path, const json& object) const {
    return in_collection(path, path_) && selected(object, selector_);
  }
  void push(const std::string& type, const json& object) {
    lines_.push_back(json{{"type", type}, {"object", object}}.dump() + "\n");
    waiter_->wake();
  }

  ApiServerModel& model_;
  std::string path_;
  std::string selector_;
  base::TimePoint ends_;
  std::unique_ptr<async::Waiter> waiter_;
  std::deque<std::string> lines_;
};

ApiServerModel::ApiServerModel(async::Timers& timers) : timers_(timers) {
  create("/api/v1/namespaces", {{"metadata", {{"name", "kube-system"}}}});
}
ApiServerModel::~ApiServerModel() = default;

async::Task<kube::KubeResponse> ApiServerModel::send(kube::KubeRequest request, base::Deadline) {
  co_return answer(request);
}

async::Task<async::ByteStreamPtr> ApiServerModel::watch(kube::KubeRequest request, base::Deadline) {
  const Target target = parse(request.target);
  ++requests_[verb_of(request, target) + " " + resource_of(target.path)];
  co_return std::make_unique<WatchStream>(*this, target);
}

json ApiServerModel::create(const std::string& collection, json object) {
  json& metadata = object["metadata"];
  metadata["uid"] = fmt::format("00000000-0000-4000-8000-{:012x}", ++uids_);
  metadata["creationTimestamp"] = base::to_rfc3339(timers_.wall());
  metadata["generation"] = 1;
  return store(collection + "/" + metadata["name"].get<std::string>(), std::move(object), "ADDED");
}

void ApiServerModel::delete_pod(const std::string& ns, const std::string& name, int grace_seconds) {
  const std::string path = "/api/v1/namespaces/" + ns + "/pods/" + name;
  (void)remove(path, {{"gracePeriodSeconds", grace_seconds}});
}

json ApiServerModel::get(const std::string& path) const {
  const auto it = objects_.find(path);
  return it == objects_.end() ? json() : it->second;
}

std::vector<json> ApiServerModel::list(const std::string& collection) const {
  std::vector<json> found;
  for (const auto& [path, object] : objects_) {
    if (in_collection(path, collection)) found.push_back(object);
  }
  return found;
}

json ApiServerModel::store(const std::string& path, json object, const std::string& type) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (type == "DELETED") {
    objects_.erase(path);
  } else {
    objects_[path] = object;
  }
  changes_.push_back({version_, type, path, object});
  for (WatchStream* watcher : watchers_) watcher->take(changes_.back());
  return object;
}

base::Result<kube::KubeResponse> ApiServerModel::answer(const kube::KubeRequest& request) {
  const Target target = parse(request.target);
  ++requests_[verb_of(request, target) + " " + resource_of(target.path)];
  const json body = request.body.empty() ? json::object() : json::parse(request.body);
  const std::string path =
      target.path.ends_with("/status") ? target.path.substr(0, target.path.size() - 7) : target.path;
  base::Result<json> result = json();
  switch (request.method) {
    case net::Method::kGet: {
      if (path == "/version") {
        result = json{{"major", "1"}, {"minor", "36"}, {"gitVersion", "v1.36.3"}};
      } else if (objects_.contains(path)) {
        result = objects_.at(path);
      } else if (path.ends_with("/pods")) {
        json items = json::array();
        const auto selector = target.query.find("fieldSelector");
        for (const json& object : list(path)) {
          if (selector == target.query.end() || selected(object, selector->second)) items.push_back(object);
        }
        result = json{{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}};
      } else {
        result = base::fail(ErrorKind::kNotFound, path + " not found");
      }
      break;
    }
    case net::Method::kPost: {
      const std::string name = body["metadata"].value("name", "");
      if (objects_.contains(path + "/" + name)) {
        result = base::fail(ErrorKind::kConflict, name + " already exists");
      } else {
        result = create(path, body);
      }
      break;
    }
    case net::Method::kPut: {
      if (!objects_.contains(path)) {
        result = base::fail(ErrorKind::kNotFound, path + " not found");
      } else if (objects_.at(path)["metadata"].value("resourceVersion", "") !=
                 body["metadata"].value("resourceVersion", "")) {
        result = base::fail(ErrorKind::kConflict, "the object has been modified");
      } else {
        json object = body;
        object["metadata"]["uid"] = objects_.at(path)["metadata"]["uid"];
        result = store(path, object, "MODIFIED");
      }
      break;
    }
    case net::Method::kPatch: result = patch(path, body); break;
    case net::Method::kDelete: result = remove(path, body); break;
    case net::Method::kHead: break;
  }
  if (!result) return base::fail(result.error());
  kube::KubeResponse response;
  response.status = 200;
  response.body = result->dump();
  return response;
}

base::Result<json> ApiServerModel::patch(const std::string& path, const json& body) {
  const auto it = objects_.find(path);
  if (it == objects_.end()) return base::fail(ErrorKind::kNotFound, path + " not found");
  const json& metadata = it->second["metadata"];
  const json wanted = body.value("metadata", json::object());
  if (wanted.contains("uid") && wanted["uid"] != metadata["uid"])
    return base::fail(ErrorKind::kConflict, "another UID");
  if (wanted.contains("resourceVersion") && wanted["resourceVersion"] != metadata["resourceVersion"]) {
    return base::fail(ErrorKind::kConflict, "the object has been modified");
  }
  json object = it->second;
  merge(object, body);
  object["metadata"]["resourceVersion"] = metadata["resourceVersion"];
  if (object == it->second) return object;
  return store(path, std::move(object), "MODIFIED");
}

base::Result<json> ApiServerModel::remove(const std::string& path, const json& options) {
  const auto it = objects_.find(path);
  if (it == objects_.end()) return base::fail(ErrorKind::kNotFound, path + " not found");
  const json wanted = options.value("preconditions", json::object());
  if (wanted.contains("uid") && wanted["uid"] != it->second["metadata"]["uid"]) {
    return base::fail(ErrorKind::kConflict, "another UID");
  }
  const int grace = options.value("gracePeriodSeconds", 30);
  json object = it->second;
  if (grace == 0) return store(path, std::move(object), "DELETED");
  object["metadata"]["deletionTimestamp"] = base::to_rfc3339(timers_.wall() + std::chrono::seconds(grace));
  object["metadata"]["deletionGracePeriodSeconds"] = grace;
  return store(path, std::move(object), "MODIFIED");
}

}  // namespace spillway::test
