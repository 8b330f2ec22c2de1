// providers/docker on a real engine. What only its answers can show; the rest is in test/unit/providers/docker.
#include <set>

#include <nlohmann/json.hpp>

#include "test/integration/docker_fixture.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace async = spillway::async;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace provider = spillway::provider;
namespace providers = spillway::providers;
using base::ErrorKind;
using model::ContainerState;
using model::InstanceState;
using nlohmann::json;

namespace {

class DockerHarness final : public ProviderHarness {
 public:
  provider::Provider& provider() override { return *fixture_.daemon; }
  async::Timers& timers() override { return fixture_.reactor.timers; }
  void run(boost::asio::awaitable<void> task) override { fixture_.reactor.run(std::move(task)); }
  model::ResolvedPod lasting_pod() override { return DockerFixture::lasting_pod(); }
  model::ResolvedPod ending_pod(int exit_code) override {
    return DockerFixture::pod("exit " + std::to_string(exit_code));
  }
  std::optional<TalkingPod> talking_pod() override {
    TalkingPod out;
    // Two outputs are two pipes: only time tells their order.
    out.pod = DockerFixture::pod("echo first line; sleep 0.3; echo second line >&2");
    out.log = "first line\nsecond line\n";
    return out;
  }
  std::optional<EchoingPod> echoing_pod() override {
    EchoingPod out;
    out.pod = DockerFixture::pod("exec nc -ll -p 8082 -e cat");
    out.port = 8082;
    return out;
  }
  std::optional<std::string> add_foreign(const std::string& tag) override {
    const json body = {{"Image", engine_image()}, {"Cmd", {"sh"}}, {"Labels", {{"spillway.dev/tag", tag}}}};
    const auto response = fixture_.api(net::Method::kPost, "/containers/create?name=" + tag, body.dump());
    foreign_.push_back(json::parse(response.body).at("Id"));
    return tag;
  }
  ~DockerHarness() override {
    for (const std::string& id : foreign_) fixture_.api(net::Method::kDelete, "/containers/" + id + "?force=true");
  }

 private:
  DockerFixture fixture_;
  std::vector<std::string> foreign_;
};

json inspect(DockerFixture& f, const std::string& name) {
  return json::parse(f.api(net::Method::kGet, "/containers/" + name + "/json").body);
}

boost::asio::awaitable<void> buy_one(DockerFixture& f, int number, std::map<std::string, model::InstanceRef>& won,
                                     int& answered) {
  const std::string tag = "spw-it-gpu-" + std::to_string(number);
  const auto bought =
      co_await f.daemon->create(DockerFixture::placement(tag, 1), DockerFixture::lasting_pod(), f.soon());
  ++answered;
  if (bought) {
    won.emplace(tag, bought->ref);
  } else {
    CHECK(bought.error().kind == ErrorKind::kNoCapacity);
  }
}

/// The output without the engine's frames: a type, three zeros, and the length in four bytes.
std::string logs(DockerFixture& f, const std::string& name) {
  const net::HttpResponse response = f.api(net::Method::kGet, "/containers/" + name + "/logs?stdout=true");
  if (response.status != 200) return "";  // it is not made yet
  const std::string& framed = response.body;
  std::string out;
  for (size_t at = 0; at + 8 <= framed.size();) {
    size_t size = 0;
    for (size_t i = 4; i < 8; ++i) size = size * 256 + static_cast<unsigned char>(framed[at + i]);
    out += framed.substr(at + 8, size);
    at += 8 + size;
  }
  return out;
}

}  // namespace

TEST_CASE("docker engine: conformance", "[docker]") {
  for (const ConformanceCase& c : conformance_cases()) {
    DYNAMIC_SECTION(c.name) {
      DockerHarness harness;
      c.run(harness);
    }
  }
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a published port answers on its address", "[docker]") {
  model::ResolvedPod web = pod("echo hello > /tmp/index.html; exec httpd -f -p 8080 -h /tmp");
  web.public_ports = {8080};
  const auto bought = create(placement("spw-it-port-1"), std::move(web));
  REQUIRE(bought);
  const model::Instance running = get_running(bought->ref);
  REQUIRE(running.ports.size() == 1);
  CHECK(running.ports[0].container_port == 8080);
  CHECK(running.ports[0].host == "127.0.0.1");

  net::Endpoint endpoint;
  endpoint.scheme = net::Endpoint::Scheme::kHttp;
  endpoint.host = running.ports[0].host;
  endpoint.port = static_cast<std::uint16_t>(running.ports[0].public_port);
  const auto client = std::move(*http.make(endpoint));
  std::string body;
  for (int i = 0; i < 50 && body.empty(); ++i) {
    net::HttpRequest request;
    request.target = "/index.html";
    const auto answer = reactor.run(client->send(std::move(request), soon()));
    if (answer && answer->status == 200) body = answer->body;
    if (body.empty()) reactor.run(reactor.timers.sleep_for(50ms));
  }
  CHECK(body == "hello\n");
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: environment, arguments and hostname arrive byte for byte", "[docker]") {
  model::ResolvedPod printing = pod("");
  model::ResolvedContainer& main = printing.containers[0];
  main.command = {"sh", "-c", "printf '%s|' \"$A\" \"$B\" \"${C-unset}\" \"$@\" \"$(pwd)\" \"$(hostname)\"", "sh"};
  main.args = {"two  words", "", "$HOME \"q\" \\ 'x'"};
  main.env = {{"A", "ünï\ncode \"$\""}, {"B", "a=b"}, {"C", ""}};
  main.working_dir = "/tmp";
  const auto bought = create(placement("spw-it-env-1"), std::move(printing));
  REQUIRE(bought);
  const model::Instance ended = get_exited(bought->ref);
  CHECK(ended.containers[0].exit_code == 0);
  const std::string output = logs(*this, "spw-it-env-1-main");
  INFO(output);
  CHECK(output == "ünï\ncode \"$\"|a=b||two  words||$HOME \"q\" \\ 'x'|/tmp|conformance|");
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a command that is not there is an exit with its code", "[docker]") {
  model::ResolvedPod bad = pod("");
  bad.containers[0].command = {"/no/such/program"};
  const auto bought = create(placement("spw-it-bad-1"), std::move(bad));
  REQUIRE(bought);
  const model::Instance ended = get_exited(bought->ref);
  const model::InstanceContainer& main = ended.containers.at(0);
  CHECK(main.state == ContainerState::kExited);
  CHECK(main.exit_code == 127);
  CHECK(main.reason == "ContainerCannotRun");
  CHECK(says(main.message, "/no/such/program"));
  REQUIRE(main.finished_at);

  // Core starts it again; the second failure has a time of its own.
  const auto again = reactor.run(daemon->control_container(bought->ref, "main", provider::ContainerAction::kStart,
                                                           std::chrono::seconds(10), soon()));
  REQUIRE(again);
  const auto second = get(bought->ref);
  REQUIRE(second);
  CHECK(second->containers.at(0).exit_code == 127);
  CHECK(second->containers.at(0).finished_at > main.finished_at);
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: an image that cannot be pulled fails the instance", "[docker]") {
  model::ResolvedPod missing = pod("exit 0");
  missing.containers[0].image = "127.0.0.1:9/no/such:image";
  const auto bought = create(placement("spw-it-image-1"), std::move(missing));
  REQUIRE(bought);
  CHECK(bought->state == InstanceState::kPending);
  const model::Instance failed =
      get_until(bought->ref, [](const model::Instance& i) { return i.state == InstanceState::kFailed; });
  CHECK(failed.image_error);
  CHECK(failed.containers.at(0).reason == "ErrImagePull");
  CHECK(says(failed.message, "127.0.0.1:9/no/such:image"));
  CHECK(says(failed.message, "the registry cannot be reached"));
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: an image that must not be pulled fails the instance", "[docker]") {
  model::ResolvedPod missing = pod("exit 0");
  missing.containers[0].image = "nosuch:1";
  missing.containers[0].pull_policy = model::PullPolicy::kNever;
  const auto bought = create(placement("spw-it-image-2"), std::move(missing));
  REQUIRE(bought);
  const model::Instance failed =
      get_until(bought->ref, [](const model::Instance& i) { return i.state == InstanceState::kFailed; });
  CHECK(failed.containers.at(0).reason == "ErrImageNeverPull");
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a container over its memory limit was killed for it", "[docker]") {
  model::ResolvedPod hungry = pod("head -c 100000000 /dev/zero | tail");
  hungry.containers[0].resources.memory_limit = 16 * 1024 * 1024;
  hungry.containers[0].resources.cpu_limit_milli = 64'000;  // more than the machine has: a kubelet accepts that
  const auto bought = create(placement("spw-it-oom-1"), std::move(hungry));
  REQUIRE(bought);
  const model::Instance ended = get_exited(bought->ref);
  CHECK(ended.containers.at(0).oom_killed);
  CHECK(inspect(*this, "spw-it-oom-1-main")["HostConfig"]["MemorySwap"] == 16 * 1024 * 1024);
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a dead sandbox is a lost instance", "[docker]") {
  const auto bought = create(placement("spw-it-lost-1"), lasting_pod());
  REQUIRE(bought);
  get_running(bought->ref);
  api(net::Method::kPost, "/containers/spw-it-lost-1/kill");
  const model::Instance lost =
      get_until(bought->ref, [](const model::Instance& i) { return i.state == InstanceState::kFailed; });
  CHECK(says(lost.message, "sandbox"));
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: the grace is honoured, and a shorter one later", "[docker]") {
  SECTION("a container that ends by itself is not killed") {
    const auto bought =
        create(placement("spw-it-grace-1"), pod("trap 'exit 5' TERM; echo ready; while :; do sleep 1 & wait; done"));
    REQUIRE(bought);
    get_until(bought->ref, [&](const model::Instance&) { return logs(*this, "spw-it-grace-1-main") == "ready\n"; });
    REQUIRE(reactor.run(daemon->control_container(bought->ref, "main", provider::ContainerAction::kStop,
                                                  std::chrono::seconds(10), soon())));
    CHECK(get_exited(bought->ref).containers.at(0).exit_code == 5);
    end(bought->ref, 20s);
  }
  SECTION("a stubborn one goes with the shorter grace") {
    const auto bought = create(placement("spw-it-grace-2"), pod("trap '' TERM; while :; do sleep 1; done"));
    REQUIRE(bought);
    get_running(bought->ref);
    REQUIRE(reactor.run(daemon->terminate(bought->ref, 600s, soon())));
    const auto ending = get(bought->ref);
    REQUIRE(ending);
    CHECK(ending->state == InstanceState::kTerminating);
    end(bought->ref, 0s);
  }
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a container started behind our back shows its new times", "[docker]") {
  const auto bought = create(placement("spw-it-behind-1"), pod("exit 3", model::RestartPolicy::kAlways));
  REQUIRE(bought);
  const model::Instance first = get_exited(bought->ref);
  reactor.run(reactor.timers.sleep_for(4s));  // the engine's words have whole seconds
  api(net::Method::kPost, "/containers/spw-it-behind-1-main/start");
  const model::Instance second = get_until(bought->ref, [&](const model::Instance& i) {
    return i.containers.at(0).state == ContainerState::kExited &&
           i.containers.at(0).finished_at > first.containers.at(0).finished_at;
  });
  CHECK(second.containers.at(0).exit_code == 3);
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: parallel creates and restarts never share a GPU", "[docker]") {
  constexpr int kCreates = 12;
  std::map<std::string, model::InstanceRef> won;
  int answered = 0;
  async::TaskGroup group(reactor.ctx.get_executor());
  for (int round = 0; round < 2; ++round) {
    answered = 0;
    for (int i = 0; i < kCreates; ++i) group.spawn(buy_one(*this, round * kCreates + i, won, answered));
    reactor.run_until([&] { return answered == kCreates; });
    restart_daemon();
  }
  CHECK(won.size() == 4);
  std::set<std::string> indices;
  for (const auto& [tag, ref] : won) {
    indices.insert(inspect(*this, tag)["Config"]["Labels"]["spillway.dev/gpus"]);
    // The restart may have come before the container was made: a create carries it on.
    REQUIRE(create(placement(tag, 1), lasting_pod()));
    get_running(ref);
    CHECK(inspect(*this, tag + "-main")["Config"]["Env"].dump().contains("NVIDIA_VISIBLE_DEVICES="));
  }
  CHECK(indices == std::set<std::string>{"0", "1", "2", "3"});
  for (const auto& [tag, ref] : won) end(ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: device requests name the GPUs", "[docker]") {
  // There is no GPU driver here: the engine takes the request and refuses the start.
  providers::docker::Config config;
  config.hosts.push_back(host_config());
  config.hosts[0].gpu_request = providers::docker::GpuRequest::kDeviceRequests;
  std::vector<std::unique_ptr<net::HttpClient>> clients;
  clients.push_back(std::move(*http.make(config.hosts[0].endpoint)));
  provider::ProviderDeps deps;
  deps.executor = reactor.ctx.get_executor();
  deps.timers = &reactor.timers;
  stop_daemon();
  daemon = std::make_unique<providers::docker::DockerProvider>(base::ProviderName("docker"), config, std::move(clients),
                                                               deps);
  const auto bought = create(placement("spw-it-device-1", 2), lasting_pod());
  REQUIRE(bought);
  CHECK(bought->price_per_hour == base::Money::from_micros(2'000'000));
  const model::Instance ended = get_exited(bought->ref);
  CHECK(says(ended.containers.at(0).message, "could not select device driver"));
  const json request = inspect(*this, "spw-it-device-1-main")["HostConfig"]["DeviceRequests"][0];
  CHECK(request["DeviceIDs"] == json::array({"0", "1"}));
  CHECK(request["Capabilities"] == json::array({json::array({"gpu"})}));
  end(bought->ref);
}
