// The whole daemon, and what its pods refer to: what is missing is waited for, and no secret gets out.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <catch2/catch.hpp>

#include "test/unit/daemon/daemon_world.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/net/digest.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using nlohmann::json;
using test::World;
namespace fake = providers::fake;

namespace {

constexpr const char* kCanary = "canary-4f0c1a52";
constexpr const char* kSecrets = "/api/v1/namespaces/team-a/secrets";
constexpr const char* kConfigMaps = "/api/v1/namespaces/team-a/configmaps";

json waiting(const World& world) {
  const json pod = world.pod();
  return pod["status"]["containerStatuses"][0]["state"].value("waiting", json::object());
}

std::vector<std::string> reasons(World& world) {
  std::vector<std::string> out;
  for (const json& event : world.api.list("/api/v1/namespaces/team-a/events")) out.push_back(event["reason"]);
  std::ranges::sort(out);
  return out;
}

/// What the process writes to stderr while this lives.
class CapturedErrors {
 public:
  CapturedErrors() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
    base::log::configure(base::log::Level::kDebug, base::log::Format::kJson);
  }
  ~CapturedErrors() {
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
    base::log::configure(base::log::Level::kInfo, base::log::Format::kText);
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;

  std::string text() {
    std::fflush(stderr);
    std::string out;
    REQUIRE(std::fseek(file_, 0, SEEK_SET) == 0);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) out += static_cast<char>(c);
    return out;
  }

 private:
  std::FILE* file_;
  int before_;
};

/// Keeps all that is sent to the API server.
class Recorder final : public kube::KubeApi {
 public:
  explicit Recorder(kube::KubeApi& api) : api_(api) {}
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    sent += request.target + "\n" + request.body + "\n";
    return api_.send(std::move(request), deadline);
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    return api_.watch(std::move(request), deadline);
  }
  std::string sent;

 private:
  kube::KubeApi& api_;
};

}  // namespace

TEST_CASE("a pod waits for what its environment refers to, and starts by itself") {
  World world;
  world.start();
  world.reactor.run_for(5s);
  world.create_pod([](json& pod) {
    pod["spec"]["containers"][0]["envFrom"] = {{{"configMapRef", {{"name", "settings"}}}}};
    pod["spec"]["containers"][0]["env"] = {
        {{"name", "K"}, {"valueFrom", {{"secretKeyRef", {{"name", "keys"}, {"key", "k"}, {"optional", true}}}}}}};
  });
  world.reactor.run_for(3s);
  CHECK(waiting(world) ==
        json{{"reason", "CreateContainerConfigError"}, {"message", "Error: configmap \"settings\" not found"}});
  CHECK(reasons(world) == std::vector<std::string>{"Failed", "MandatoryConfigMapNotFound"});
  world.reactor.run_for(1min);
  CHECK(world.bought() == 0);

  world.api.create(kConfigMaps, {{"metadata", {{"name", "settings"}}}, {"data", {{"A", "1"}}}});
  REQUIRE(world.until("Running", 15s));
  CHECK(world.bought() == 1);
  world.reactor.run_for(6s);
  CHECK(reasons(world) ==
        std::vector<std::string>{"Failed", "MandatoryConfigMapNotFound", "OptionalSecretNotFound", "Placed"});
}

TEST_CASE("nothing is read for a pod that nobody sells a machine for") {
  World world;
  world.start();
  world.reactor.run_for(5s);
  world.api.forget_requests();  // of its own ConfigMaps
  world.create_pod([](json& pod) {
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "64";
    pod["spec"]["containers"][0]["envFrom"] = {{{"configMapRef", {{"name", "settings"}}}}};
  });
  world.reactor.run_for(1min);
  CHECK(waiting(world)["reason"] == "NoCapacity");
  CHECK(world.api.requests().count("GET configmaps") == 0);
}

TEST_CASE("no secret is seen in a log, an event, a status, a metric or an error") {
  CapturedErrors errors;
  World world;
  Recorder recorder(world.api);
  world.way = &recorder;
  const std::string encoded = net::base64_encode(kCanary);
  const auto add_secret = [&](const char* name, const char* type, const json& data) {
    world.api.create(kSecrets, {{"metadata", {{"name", name}}}, {"type", type}, {"data", data}});
  };
  add_secret("keys", "Opaque", {{"token", encoded}});
  add_secret("torn", "Opaque", {{"token", std::string("!") + kCanary}});
  world.start();
  world.reactor.run_for(5s);
  const auto create = [&](const char* name, const json& env) {
    world.create_pod([&](json& pod) {
      pod["metadata"]["name"] = name;
      json& container = pod["spec"]["containers"][0];
      container["env"] = env;
      container["args"] = {"--token=$(T)"};
    });
  };
  const auto from = [](const char* secret, const char* key) {
    return json{{"name", "T"}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", key}}}}}};
  };
  create("web", json::array({from("keys", "token")}));
  create("torn", json::array({from("torn", "token")}));
  create("keyless", json::array({from("keys", "none")}));
  create("large", json::array({from("keys", "token"), {{"name", "L"}, {"value", std::string(9 << 20, 'x')}}}));
  fake::FaultRule fault;
  fault.call = fake::Call::kCreate;
  fault.times = 2;
  REQUIRE(world.cloud.add_fault(fault, world.reactor.timers.now()));
  const bool runs = world.until("Running", 5min);
  CAPTURE(world.pod().dump());
  REQUIRE(runs);
  world.reactor.run_for(1min);
  const json torn = world.api.get(std::string(test::kPods) + "/torn");
  CHECK(torn["status"]["containerStatuses"][0]["state"]["waiting"]["message"] ==
        "Error: failed to read secret \"torn\": data of the object cannot be read at key token");
  world.stop();

  CHECK(errors.text().find("create failed") != std::string::npos);
  for (const std::string& secret : {std::string(kCanary), encoded}) {
    CHECK(errors.text().find(secret) == std::string::npos);
    CHECK(recorder.sent.find(secret) == std::string::npos);
    CHECK(world.metrics.to_text().find(secret) == std::string::npos);
  }
}
