#include "test/support/docker_engine_model.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "test/support/canned_stream.hpp"

namespace spillway::test {
namespace {

using base::ErrorKind;
using nlohmann::json;

constexpr std::string_view kContainers = "/v1.41/containers/";

std::string decode(std::string_view text) {
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

std::string time_or_never(const std::optional<base::WallTime>& t) {
  return t ? base::to_rfc3339_micro(*t) : "0001-01-01T00:00:00Z";
}

DockerEngineModel::Response no_content(int status) {
  net::HttpResponse response;
  response.status = status;
  return response;
}

/// Cut where nothing ends.
std::deque<std::string> in_pieces(const std::string& bytes) {
  constexpr size_t kPiece = 13;
  std::deque<std::string> pieces;
  for (size_t at = 0; at < bytes.size(); at += kPiece) pieces.push_back(bytes.substr(at, kPiece));
  return pieces;
}

base::Error unreachable() { return base::Error(ErrorKind::kUnavailable, "connection refused"); }

/// `/containers/<id>/<verb>?query`: id and verb.
std::pair<std::string, std::string> split_path(const std::string& target, std::string_view prefix) {
  std::string path = target.substr(prefix.size(), target.find('?') - prefix.size());
  const size_t slash = path.find('/');
  if (slash == std::string::npos) return {decode(path), ""};
  return {decode(path.substr(0, slash)), path.substr(slash + 1)};
}

}  // namespace

class DockerModelPull final : public async::ByteStream {
 public:
  DockerModelPull(DockerEngineModel& engine, async::Timers& timers, DockerEngineModel::Pull pull, std::string image)
      : engine_(engine), timers_(timers), pull_(std::move(pull)), image_(std::move(image)) {
    ++engine_.running_pulls;
  }
  ~DockerModelPull() override { --engine_.running_pulls; }

  async::Task<std::string> read(base::Deadline deadline) override {
    if (next_ == pull_.lines.size() && pull_.breaks) co_return base::fail(ErrorKind::kUnavailable, "connection reset");
    if (next_ == pull_.lines.size() && pull_.ends) {
      if (!failed_) engine_.images.insert(image_);
      co_return std::string();
    }
    const base::TimePoint when =
        next_ < pull_.lines.size() ? timers_.now() + pull_.lines[next_].first : base::TimePoint::max();
    co_await timers_.sleep_until(std::min(when, deadline));
    if (when > deadline) co_return base::fail(ErrorKind::kDeadline, "nothing came");
    std::string line = pull_.lines[next_++].second;
    failed_ = failed_ || line.contains("err");
    co_return line;
  }
  async::Task<void> write(std::string, base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, ""); }
  async::Task<void> close_write(base::Deadline) override { co_return base::Result<void>(); }

 private:
  DockerEngineModel& engine_;
  async::Timers& timers_;
  DockerEngineModel::Pull pull_;
  std::string image_;
  size_t next_ = 0;
  bool failed_ = false;
};

class DockerModelClient final : public net::HttpClient {
 public:
  explicit DockerModelClient(DockerEngineModel& engine) : engine_(engine) {}

  async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline deadline) override {
    take(request);
    co_return co_await carry_out(std::move(request), deadline);
  }

  async::Task<net::HttpStream> open(net::HttpRequest request, base::Deadline deadline) override {
    take(request);
    if (engine_.streams) {
      if (auto instead = engine_.streams(request)) co_return std::move(*instead);
    }
    net::HttpStream stream;
    if (request.target.contains("/images/create?fromImage=")) {
      if (!engine_.reachable) co_return base::fail(unreachable());
      const std::string image = DockerEngineModel::query_value(request.target, "fromImage") + ":" +
                                DockerEngineModel::query_value(request.target, "tag");
      const auto pull = engine_.pulls.find(image);
      if (pull == engine_.pulls.end()) {
        stream.head =
            *DockerEngineModel::refuse(404, "manifest for " + image + " not found: manifest unknown: manifest unknown");
      } else if (pull->second.status >= 400) {
        stream.head = *DockerEngineModel::refuse(pull->second.status, pull->second.lines.front().second);
      } else {
        stream.head.status = 200;
        stream.body = std::make_unique<DockerModelPull>(engine_, engine_.timers_, pull->second, image);
      }
      co_return stream;
    }
    if (request.target.contains("/stop")) co_await wait_for_stop(request.target);
    const bool is_log = request.target.contains("/logs?");
    auto response = co_await carry_out(std::move(request), deadline);
    if (!response) co_return base::fail(std::move(response.error()));
    stream.head = std::move(*response);
    if (is_log && stream.head.status == 200) {
      stream.body = std::make_unique<CannedStream>(engine_.timers_, in_pieces(std::exchange(stream.head.body, "")));
    }
    co_return stream;
  }

 private:
  /// Notes it, and makes it one of the version that the rest of the model knows; or of one that nobody knows.
  void take(net::HttpRequest& request) {
    engine_.requests.push_back(std::string(net::to_string(request.method)) + " " + request.target);
    if (!request.target.starts_with("/v1.")) return;
    for (int api = engine_.oldest_api; api <= engine_.newest_api; ++api) {
      const std::string prefix = "/v1." + std::to_string(api) + "/";
      if (!request.target.starts_with(prefix)) continue;
      request.target.replace(0, prefix.size(), "/v1.41/");
      return;
    }
    request.target.insert(0, "/forgotten");
  }

  async::Task<net::HttpResponse> carry_out(net::HttpRequest request, base::Deadline deadline) {
    if (deadline <= engine_.timers_.now()) co_return base::fail(ErrorKind::kDeadline, "the deadline has passed");
    if (!engine_.reachable) co_return base::fail(unreachable());
    if (!request.body.empty() && request.content_type.empty()) {
      co_return DockerEngineModel::answer(400, {{"message", "Content-Type specified () must be 'application/json'"}});
    }
    if (engine_.before) {
      if (auto instead = engine_.before(request)) co_return std::move(*instead);
    }
    if (engine_.latency > base::Duration::zero()) {
      const base::TimePoint when = engine_.timers_.now() + engine_.latency;
      co_await engine_.timers_.sleep_until(std::min(when, deadline));
      const bool read = request.method == net::Method::kGet;
      if (when > deadline) {
        co_return base::fail(read ? ErrorKind::kDeadline : ErrorKind::kUnknownOutcome, "no answer in time");
      }
    }
    auto response = engine_.handle(request);
    if (request.target.contains("/containers/json")) co_await engine_.timers_.sleep_for(engine_.listing_delay);
    if (engine_.after) {
      if (auto instead = engine_.after(request, response)) co_return std::move(*instead);
    }
    co_return response;
  }

  boost::asio::awaitable<void> wait_for_stop(std::string target) {
    const auto [id, verb] = split_path(target, "/v1.41/containers/");
    const auto* const container = engine_.find(id);
    if (container == nullptr || container->state != "running" || !container->ignores_sigterm) co_return;
    co_await engine_.timers_.sleep_for(std::chrono::seconds(std::stoi(DockerEngineModel::query_value(target, "t"))));
  }

  DockerEngineModel& engine_;
};

std::string DockerEngineModel::Container::label(const std::string& key) const {
  return body.value("Labels", json::object()).value(key, "");
}

std::unique_ptr<net::HttpClient> DockerEngineModel::client() { return std::make_unique<DockerModelClient>(*this); }

DockerEngineModel::Response DockerEngineModel::answer(int status, const json& body) {
  net::HttpResponse response;
  response.status = status;
  response.body = body.dump();
  return response;
}

DockerEngineModel::Response DockerEngineModel::refuse(int status, const std::string& message) {
  return answer(status, json{{"message", message}});
}

std::string DockerEngineModel::query_value(const std::string& target, const std::string& key) {
  const size_t question = target.find('?');
  if (question == std::string::npos) return "";
  std::string query = "&" + target.substr(question + 1);
  const size_t begin = query.find("&" + key + "=");
  if (begin == std::string::npos) return "";
  const size_t value = begin + key.size() + 2;
  return decode(query.substr(value, query.find('&', value) - value));
}

DockerEngineModel::Container* DockerEngineModel::find(const std::string& id_or_name) {
  for (auto& [id, container] : containers_) {
    if (id == id_or_name || container.name == id_or_name) return &container;
  }
  return nullptr;
}

DockerEngineModel::Container& DockerEngineModel::container(const std::string& name) {
  Container* const found = find(name);
  if (found == nullptr) throw std::logic_error("the engine has no container " + name);
  return *found;
}

bool DockerEngineModel::has(const std::string& name) const {
  return std::any_of(containers_.begin(), containers_.end(), [&](const auto& c) { return c.second.name == name; });
}

std::vector<const DockerEngineModel::Container*> DockerEngineModel::all() const {
  std::vector<const Container*> out;
  for (const auto& [id, container] : containers_) out.push_back(&container);
  return out;
}

void DockerEngineModel::end(Container& container, int code) {
  container.state = "exited";
  container.exit_code = code;
  container.finished = timers_.wall();
}

void DockerEngineModel::add(const std::string& name, const json& body) { static_cast<void>(create(name, body)); }

void DockerEngineModel::start_by_hand(const std::string& name) { static_cast<void>(start(container(name))); }

void DockerEngineModel::exit(const std::string& name, int code) { end(container(name), code); }

void DockerEngineModel::remove(const std::string& name) { containers_.erase(container(name).id); }

size_t DockerEngineModel::count(const std::string& text) const {
  return static_cast<size_t>(
      std::count_if(requests.begin(), requests.end(), [&](const std::string& r) { return r.contains(text); }));
}

DockerEngineModel::Response DockerEngineModel::handle(const net::HttpRequest& request) {
  constexpr std::string_view kImages = "/v1.41/images/";
  const std::string& target = request.target;
  if (target.ends_with("/version")) {
    return answer(200, {{"Arch", architecture},
                        {"ApiVersion", "1." + std::to_string(newest_api)},
                        {"MinAPIVersion", "1." + std::to_string(oldest_api)}});
  }
  if (!target.starts_with("/v1.41/")) {
    return refuse(400, "client version is too new. Maximum supported API version is 1." + std::to_string(newest_api));
  }
  if (target.starts_with("/v1.41/containers/json")) return list(target);
  if (target.starts_with("/v1.41/containers/create")) {
    return create(query_value(target, "name"), json::parse(request.body, nullptr, false));
  }
  if (target.starts_with("/v1.41/images/create?fromSrc")) {
    images.insert(query_value(target, "repo") + ":" + query_value(target, "tag"));
    return answer(200, {{"status", "sha256:0"}});
  }
  if (target.starts_with(kImages)) {
    const auto [name, verb] = split_path(target, kImages);
    const auto user = image_users.find(name);
    const json config = {{"User", user == image_users.end() ? "" : user->second}};
    if (images.contains(name)) return answer(200, {{"Id", "sha256:1"}, {"Config", config}});
    return refuse(404, "no such image: " + name);
  }
  if (target.starts_with(kContainers)) return handle_container(request);
  if (target.starts_with("/v1.41/system/df")) return answer(disk_usage.is_null() ? 500 : 200, disk_usage);
  if (target.starts_with("/v1.41/volumes")) return handle_volumes(request.method, target);
  return refuse(404, "page not found");
}

DockerEngineModel::Response DockerEngineModel::handle_container(const net::HttpRequest& request) {
  const auto [id, verb] = split_path(request.target, kContainers);
  Container* const found = find(id);
  if (found == nullptr) return refuse(404, "No such container: " + id);
  Container& container = *found;
  if (request.method == net::Method::kDelete) {
    if (request.target.contains("v=true")) remove_volumes(container.id);
    containers_.erase(std::string(container.id));
    return no_content(204);
  }
  if (verb == "start") return start(container);
  if (verb == "stop") {
    if (container.state != "running") return no_content(304);
    end(container, container.ignores_sigterm ? 137 : 143);
    return no_content(204);
  }
  if (verb == "restart") return start(container);
  if (verb == "logs") return log(container, request.target);
  if (verb == "stats") return use(container);
  if (verb == "archive" && request.method == net::Method::kPut) return upload(container, request.body);
  if (verb == "archive" && request.method == net::Method::kHead) {
    return no_content(has_path(container, query_value(request.target, "path")) ? 200 : 404);
  }
  if (verb == "archive") return download(container, query_value(request.target, "path"));
  json state = {{"Status", container.state},
                {"ExitCode", container.exit_code},
                {"OOMKilled", container.oom_killed},
                {"Error", container.error},
                {"StartedAt", time_or_never(container.started)},
                {"FinishedAt", time_or_never(container.finished)}};
  return answer(
      200,
      {{"Id", container.id},
       {"Created", base::to_rfc3339_micro(container.created)},
       {"Image", "sha256:1"},
       {"State", state},
       {"Mounts", container.mounts},
       {"HostConfig", {{"Mounts", container.body.value("HostConfig", json::object())["Mounts"]}}},
       {"Config",
        {{"Labels", container.body.value("Labels", json::object())}, {"Tty", container.body.value("Tty", false)}}}});
}

DockerEngineModel::Response DockerEngineModel::create(const std::string& name, const json& body) {
  if (find(name) != nullptr) return refuse(409, "Conflict. The container name \"/" + name + "\" is already in use");
  const std::string image = body.value("Image", "");
  if (!images.contains(image)) return refuse(404, "No such image: " + image);
  Container container;
  char id[65];
  std::snprintf(id, sizeof(id), "%064d", next_id_++);
  container.id = id;
  container.name = name;
  container.body = body;
  container.created = timers_.wall();
  make_volumes(container);
  containers_.emplace(container.id, container);
  return answer(201, {{"Id", container.id}, {"Warnings", json::array()}});
}

bool DockerEngineModel::can_run(const Container& container, std::string& error, int& code) {
  const std::string mode = container.body.value("HostConfig", json::object()).value("NetworkMode", "");
  if (mode.starts_with("container:")) {
    const Container* const sandbox = find(mode.substr(10));
    if (sandbox == nullptr || sandbox->state != "running") {
      code = 409;
      error = "cannot join network of a non running container: " + mode.substr(10);
      return false;
    }
  }
  if (!has_parts(container, error)) {
    code = 500;
    return false;
  }
  const json command =
      container.body.contains("Entrypoint") ? container.body["Entrypoint"] : container.body.value("Cmd", json::array());
  if (!command.empty() && bad_commands.contains(command[0].get<std::string>())) {
    code = 400;
    error = "exec: \"" + command[0].get<std::string>() + "\": executable file not found in $PATH: unknown";
    return false;
  }
  return true;
}

DockerEngineModel::Response DockerEngineModel::start(Container& container) {
  if (container.state == "running") return no_content(304);
  std::string error;
  int code = 0;
  if (!can_run(container, error, code)) {
    if (code == 400) {
      container.error = error;
      container.exit_code = 127;
    }
    return refuse(code, error);
  }
  container.state = "running";
  container.error.clear();
  container.exit_code = 0;
  container.started = timers_.wall();
  if (!exit_codes_at_start.empty() && container.label("spillway.dev/role") == "container") {
    end(container, exit_codes_at_start.front());
    exit_codes_at_start.pop_front();
  }
  return no_content(204);
}

}  // namespace spillway::test
