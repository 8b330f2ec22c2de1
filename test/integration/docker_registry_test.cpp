// Pulls from a real registry that wants credentials: the program that SPILLWAY_TEST_REGISTRY names (distribution),
// started by a case on loopback and ended with it. The images are pushed through the engine.
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/docker/pull_auth.hpp"
#include "test/integration/docker_fixture.hpp"
#include "vk-provider/net/digest.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace docker = spillway::providers::docker;
using model::InstanceState;
using nlohmann::json;

namespace {

constexpr const char* kUser = "puller";
constexpr const char* kPassword = "canary-open-sesame";
constexpr const char* kWrongPassword = "canary-that-is-wrong";
// bcrypt of kPassword, of the lowest cost.
constexpr const char* kHtpasswd = "puller:$2b$04$abcdefghijklmnopqrstuu8md2xZwAC0ISRXmRmM0yBUPLWaUs9F6\n";

int free_port(RealReactor& reactor) {
  boost::asio::ip::tcp::acceptor acceptor(reactor.ctx, {boost::asio::ip::address_v4::loopback(), 0});
  return acceptor.local_endpoint().port();
}

std::string registry_program() { return from_runner("SPILLWAY_TEST_REGISTRY", "the program of a registry"); }

/// Runs until the case ends.
class RealRegistry {
 public:
  explicit RealRegistry(RealReactor& reactor) : reactor_(reactor), port_(free_port(reactor)) {
    std::string folder = (std::filesystem::temp_directory_path() / "spw-registry-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for the registry");
    folder_ = folder;
    std::ofstream(folder_ / "htpasswd") << kHtpasswd;
    std::ofstream(folder_ / "config.yml") << "version: 0.1\n"
                                          << "log: {level: error, accesslog: {disabled: true}}\n"
                                          << "storage: {filesystem: {rootdirectory: " << folder_ / "data" << "}}\n"
                                          << "http: {addr: '" << host() << "', secret: test}\n"
                                          << "auth: {htpasswd: {realm: test, path: " << folder_ / "htpasswd" << "}}\n";
    start(registry_program(), (folder_ / "config.yml").string());
    wait_until_it_answers();
  }
  ~RealRegistry() {
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  RealRegistry(const RealRegistry&) = delete;
  RealRegistry& operator=(const RealRegistry&) = delete;

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

  net::HttpResponse ask(net::Method method, std::string target, std::string body = "", std::string type = "") {
    net::Endpoint endpoint;
    endpoint.scheme = net::Endpoint::Scheme::kHttp;
    endpoint.host = "127.0.0.1";
    endpoint.port = static_cast<std::uint16_t>(port_);
    net::BeastHttpClientFactory factory(reactor_.ctx.get_executor(), reactor_.timers);
    const auto client = std::move(*factory.make(endpoint));
    net::HttpRequest request;
    request.method = method;
    request.target = std::move(target);
    request.body = std::move(body);
    request.content_type = std::move(type);
    request.headers.emplace_back("Authorization", "Basic " + net::base64_encode(std::string(kUser) + ":" + kPassword));
    request.headers.emplace_back("Accept", "application/vnd.docker.distribution.manifest.v2+json");
    auto response = reactor_.run(client->send(std::move(request), reactor_.timers.now() + 5s));
    return response ? std::move(*response) : net::HttpResponse();
  }

 private:
  void start(std::string program, std::string config) {
    std::string serve = "serve";
    const std::array<char*, 4> arguments{program.data(), serve.data(), config.data(), nullptr};
    std::string quiet = "OTEL_TRACES_EXPORTER=none";
    const std::array<char*, 2> environment{quiet.data(), nullptr};
    const std::string log = (folder_ / "log").string();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
    const int failed = ::posix_spawn(&child_, program.c_str(), &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error(program + " cannot be started");
  }
  void wait_until_it_answers() {
    for (int i = 0; i < 200; ++i) {
      if (ask(net::Method::kGet, "/v2/").status == 200) return;
      reactor_.run(reactor_.timers.sleep_for(50ms));
    }
    throw std::runtime_error("the registry does not answer");
  }

  RealReactor& reactor_;
  int port_;
  std::filesystem::path folder_;
  pid_t child_ = 0;
};

class RegistryFixture : public DockerFixture {
 public:
  RegistryFixture() : registry(reactor) {}
  ~RegistryFixture() {
    for (const std::string& name : images) api(net::Method::kDelete, "/images/" + name + "?force=true");
  }

  static model::PullAuth account(std::string where, const char* password = kPassword) {
    model::PullAuth out;
    out.registry = std::move(where);
    out.username = kUser;
    out.password = base::Secret(password);
    return out;
  }

  /// The engine's test image under this name, in the registry alone. Returns its digest.
  std::string push(const std::string& repository) {
    const std::string name = registry.host() + "/" + repository;
    api(net::Method::kPost, "/images/" + engine_image() + "/tag?repo=" + name + "&tag=1");
    RealReactor own;
    net::BeastHttpClientFactory factory(own.ctx.get_executor(), own.timers);
    const auto client = std::move(*factory.make(host_config().endpoint));
    net::HttpRequest request;
    request.method = net::Method::kPost;
    request.target = "/v1.41/images/" + name + "/push?tag=1";
    request.headers.emplace_back("X-Registry-Auth",
                                 docker::encode_registry_auth(account(""), registry.host()).reveal());
    const auto response = own.run(client->send(std::move(request), own.timers.now() + 30s));
    if (!response || response->status != 200) throw std::runtime_error("the push failed");
    const size_t digest = response->body.find("sha256:", response->body.find("\"Digest\""));
    if (digest == std::string::npos) throw std::runtime_error("the push failed: " + response->body);
    api(net::Method::kDelete, "/images/" + name + ":1");
    images.push_back(name + ":1");
    return response->body.substr(digest, 71);
  }

  model::ResolvedPod pod_with(const std::string& image, std::vector<model::PullAuth> accounts,
                              model::PullPolicy policy = model::PullPolicy::kAlways) {
    model::ResolvedPod out = lasting_pod();
    out.containers[0].image = registry.host() + "/" + image;
    out.containers[0].pull_policy = policy;
    out.pull_auth = std::move(accounts);
    return out;
  }
  void runs(const std::string& tag, model::ResolvedPod pod) {
    const auto bought = create(placement(tag), std::move(pod));
    REQUIRE(bought);
    get_running(bought->ref);
    end(bought->ref);
  }
  /// The message of a pod that must not run; it holds no password.
  std::string fails(const std::string& tag, model::ResolvedPod pod) {
    const auto bought = create(placement(tag), std::move(pod));
    REQUIRE(bought);
    const model::Instance failed =
        get_until(bought->ref, [](const model::Instance& i) { return i.state == InstanceState::kFailed; });
    CHECK(failed.image_error);
    CHECK(failed.containers.at(0).reason == "ErrImagePull");
    const std::string message(failed.containers.at(0).message);
    CHECK_FALSE(says(message, "canary"));
    CHECK_FALSE(says(failed.message, "canary"));
    end(bought->ref);
    return message;
  }

  RealRegistry registry;
  std::vector<std::string> images;
};

}  // namespace

TEST_CASE_METHOD(RegistryFixture, "docker registry: credentials of the registry let an image be pulled", "[docker]") {
  const std::string digest = push("team/app");
  runs("spw-it-reg-1", pod_with("team/app:1", {account("http://" + registry.host() + "/v2/")}));

  // What is there needs no credentials, unless it is to be pulled again.
  runs("spw-it-reg-2", pod_with("team/app:1", {}, model::PullPolicy::kIfNotPresent));
  CHECK(says(fails("spw-it-reg-3", pod_with("team/app:1", {})), "wants credentials"));

  images.push_back(registry.host() + "/team/app@" + digest);
  runs("spw-it-reg-4", pod_with("team/app@" + digest, {account(registry.host())}));
  runs("spw-it-reg-5", pod_with("team/app:1@" + digest, {}, model::PullPolicy::kIfNotPresent));
}

TEST_CASE_METHOD(RegistryFixture, "docker registry: the best credentials first, then the others", "[docker]") {
  push("team/app");
  const model::PullAuth wrong_path = account(registry.host() + "/team", kWrongPassword);
  const model::PullAuth elsewhere = account("registry.example", kWrongPassword);
  runs("spw-it-reg-6", pod_with("team/app:1", {elsewhere, account(registry.host()), wrong_path}));
  const std::string message = fails("spw-it-reg-7", pod_with("team/app:1", {elsewhere, wrong_path}));
  CHECK(says(message, "failed to pull image \"" + registry.host() + "/team/app:1\": " + registry.host() +
                          " refuses the credentials in imagePullSecrets"));
  CHECK(says(fails("spw-it-reg-8", pod_with("team/app:1", {elsewhere})),
             registry.host() + " wants credentials; add a Secret for " + registry.host() + " in imagePullSecrets"));
}

TEST_CASE_METHOD(RegistryFixture, "docker registry: what is not there, and what is not for this platform", "[docker]") {
  push("team/app");
  CHECK(says(fails("spw-it-reg-9", pod_with("team/app:2", {account(registry.host())})), "has no such image"));
  CHECK(says(fails("spw-it-reg-10", pod_with("team/other:1", {account(registry.host())})), "has no such image"));

  const net::HttpResponse manifest = registry.ask(net::Method::kGet, "/v2/team/app/manifests/1");
  REQUIRE(manifest.status == 200);
  const json list = {{"schemaVersion", 2},
                     {"mediaType", "application/vnd.docker.distribution.manifest.list.v2+json"},
                     {"manifests",
                      {{{"mediaType", "application/vnd.docker.distribution.manifest.v2+json"},
                        {"size", manifest.body.size()},
                        {"digest", manifest.header("Docker-Content-Digest").value_or("")},
                        {"platform", {{"architecture", "arm64"}, {"os", "linux"}}}}}}};
  const net::HttpResponse put = registry.ask(net::Method::kPut, "/v2/team/app/manifests/arm", list.dump(),
                                             "application/vnd.docker.distribution.manifest.list.v2+json");
  REQUIRE(put.status == 201);
  CHECK(says(fails("spw-it-reg-11", pod_with("team/app:arm", {account(registry.host())})), "build it for linux/amd64"));
}
