// The life of instances on healthy engines.
#include <set>

#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using model::ContainerState;
using model::InstanceState;
using provider::ContainerAction;

namespace {

class DockerModelHarness final : public ProviderHarness {
 public:
  provider::Provider& provider() override { return rig_.provider(); }
  async::Timers& timers() override { return rig_.reactor.timers; }
  void run(boost::asio::awaitable<void> task) override { rig_.reactor.run(std::move(task)); }
  model::ResolvedPod lasting_pod() override { return DockerRig::pod(model::RestartPolicy::kNever); }
  model::ResolvedPod ending_pod(int exit_code) override {
    rig_.engine().exit_codes_at_start.push_back(exit_code);
    return lasting_pod();
  }
  std::optional<TalkingPod> talking_pod() override {
    TalkingPod out;
    out.pod = ending_pod(0);
    out.log = "first line\nsecond line\n";
    out.write = [this] {
      DockerEngineModel::LogRecord record;
      record.at = rig_.reactor.timers.wall();
      record.bytes = "first line\n";
      std::vector<DockerEngineModel::LogRecord>& log = rig_.engine().records["spw-conf-1-main"];
      log.push_back(record);
      record.errors = true;
      record.bytes = "second line\n";
      log.push_back(record);
    };
    return out;
  }
  bool runs_processes() override { return false; }
  bool stall() override {
    // The looks before a purchase are answered, the purchase is not.
    rig_.engine().before = [this](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
      if (request.target.contains("/containers/create")) rig_.engine().latency = 1h;
      return std::nullopt;
    };
    return true;
  }
  std::optional<std::string> add_foreign(const std::string& tag) override {
    nlohmann::json labels = {{"spillway.dev/tag", tag}, {"spillway.dev/role", "sandbox"}};
    rig_.engine().add(tag, {{"Image", "busybox:test"}, {"Labels", std::move(labels)}});
    return tag;
  }

 private:
  DockerRig rig_;
};

const model::Offer& find_offer(const std::vector<model::Offer>& offers, const std::string& id) {
  const auto it = std::find_if(offers.begin(), offers.end(), [&](const model::Offer& o) { return o.id.str() == id; });
  REQUIRE(it != offers.end());
  return *it;
}

}  // namespace

TEST_CASE("docker provider: conformance") {
  for (const ConformanceCase& c : conformance_cases()) {
    DYNAMIC_SECTION(c.name) {
      DockerModelHarness harness;
      c.run(harness);
    }
  }
}

TEST_CASE("docker provider: a host offers its CPUs, and each number of its GPUs") {
  DockerRig rig;
  const auto offers = rig.offers();
  REQUIRE(offers);
  REQUIRE(offers->size() == 3);
  const model::Offer& cpu = find_offer(*offers, "box-0/cpu");
  CHECK(cpu.gpu_count == 0);
  CHECK(cpu.gpu_model.empty());
  CHECK(cpu.price_per_hour == base::Money::from_micros(50'000));
  CHECK(cpu.region == "lab");
  CHECK(cpu.cpu_milli == 16'000);
  CHECK(cpu.memory == 64LL << 30);
  CHECK(cpu.available);
  const model::Offer& two = find_offer(*offers, "box-0/gpu-2");
  CHECK(two.gpu_count == 2);
  CHECK(two.gpu_model == "H100");
  CHECK(two.gpu_memory == 80LL << 30);
  CHECK(two.price_per_hour == base::Money::from_micros(2'000'000));
  CHECK(two.available);

  REQUIRE(rig.create(DockerRig::placement("spw-a", 1)));
  const auto later = rig.offers();
  REQUIRE(later);
  CHECK(find_offer(*later, "box-0/cpu").available);
  CHECK(find_offer(*later, "box-0/gpu-1").available);
  CHECK_FALSE(find_offer(*later, "box-0/gpu-2").available);
}

TEST_CASE("docker provider: a full host sells nothing") {
  DockerRig rig;
  rig.config.hosts[0].max_instances = 1;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  for (const model::Offer& offer : *rig.offers()) CHECK_FALSE(offer.available);
  const auto refused = rig.create(DockerRig::placement("spw-b"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kNoCapacity);
  CHECK(refused.error().message.contains("maxInstances is 1"));
}

TEST_CASE("docker provider: an instance is a sandbox and its containers, found by their labels") {
  DockerRig rig;
  const auto bought = rig.create(DockerRig::placement("spw-a"));
  REQUIRE(bought);
  CHECK(bought->state == InstanceState::kPending);
  CHECK(bought->containers.at(0).reason == "ContainerCreating");
  CHECK(bought->price_per_hour == base::Money::from_micros(50'000));
  rig.settle();
  const auto& sandbox = rig.engine().container("spw-a");
  CHECK(sandbox.state == "running");
  CHECK(sandbox.label("spillway.dev/role") == "sandbox");
  CHECK(sandbox.label("spillway.dev/pod") == "default/conformance");
  const auto& main = rig.engine().container("spw-a-main");
  CHECK(main.state == "running");
  CHECK(main.label("spillway.dev/tag") == "spw-a");
  CHECK(main.label("spillway.dev/container") == "main");
  CHECK(main.body["HostConfig"]["NetworkMode"] == "container:" + sandbox.id);
  const auto owned = rig.list();
  REQUIRE(owned);
  REQUIRE(owned->instances.size() == 1);
  CHECK(owned->instances[0].ref.id.str() == "box-0/spw-a");
  CHECK(owned->instances[0].state == InstanceState::kRunning);
}

TEST_CASE("docker provider: a quiet listing is two requests, and an exit is seen at once") {
  DockerRig rig;
  for (const char* const tag : {"spw-a", "spw-b", "spw-c"}) REQUIRE(rig.create(DockerRig::placement(tag)));
  rig.pass(1min);
  REQUIRE(rig.list());
  rig.pass(1h);
  rig.engine().requests.clear();
  REQUIRE(rig.list());
  CHECK(rig.engine().requests.size() == 2);  // of volumes, and of containers

  rig.engine().exit("spw-b-main", 3);
  rig.engine().requests.clear();
  const auto owned = rig.list();
  REQUIRE(owned);
  CHECK(rig.engine().requests.size() == 3);
  for (const model::Instance& instance : owned->instances) {
    const bool ended = instance.tag.str() == "spw-b";
    CHECK(instance.state == (ended ? InstanceState::kExited : InstanceState::kRunning));
    if (ended) CHECK(instance.containers[0].exit_code == 3);
  }
}

TEST_CASE("docker provider: exit and restart between two listings are noticed") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.pass(1min);
  const auto before = rig.get("spw-a");
  REQUIRE(before);
  rig.pass(10s);
  rig.engine().exit("spw-a-main", 1);
  REQUIRE(rig.control("spw-a", ContainerAction::kStart));
  const auto after = rig.get("spw-a");
  REQUIRE(after);
  CHECK(*after->containers[0].started_at == *before->containers[0].started_at + 70s);
  // The same by somebody else's hand.
  rig.pass(10s);
  rig.engine().exit("spw-a-main", 1);
  rig.engine().start_by_hand("spw-a-main");
  CHECK(*rig.get("spw-a")->containers[0].started_at == *before->containers[0].started_at + 80s);
  // Exited, and exited again with the same code.
  rig.engine().exit("spw-a-main", 1);
  const auto first = rig.get("spw-a");
  rig.pass(10s);
  rig.engine().start_by_hand("spw-a-main");
  rig.engine().exit("spw-a-main", 1);
  CHECK(*rig.get("spw-a")->containers[0].finished_at == *first->containers[0].finished_at + 10s);
}

TEST_CASE("docker provider: create is idempotent by tag") {
  DockerRig rig;
  const auto first = rig.create(DockerRig::placement("spw-a", 1));
  REQUIRE(first);
  rig.settle();
  const auto second = rig.create(DockerRig::placement("spw-a", 1));
  REQUIRE(second);
  CHECK(second->ref == first->ref);
  CHECK(second->state == InstanceState::kRunning);
  rig.settle();
  CHECK(rig.engine().size() == 2);
  rig.restart_daemon();
  const auto third = rig.create(DockerRig::placement("spw-a", 1));
  REQUIRE(third);
  rig.settle();
  CHECK(third->ref == first->ref);
  CHECK(rig.engine().size() == 2);
}

TEST_CASE("docker provider: what an earlier daemon left half done is carried on with") {
  DockerRig rig;
  const std::string lost = GENERATE(as<std::string>(), "/start", "/containers/create?name=spw-a-main");
  INFO("died before " << lost);
  // The daemon dies at this request: the engine never sees it.
  rig.engine().before = [&](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
    if (!request.target.contains(lost)) return std::nullopt;
    return base::fail(ErrorKind::kUnknownOutcome, "cut");
  };
  static_cast<void>(rig.create(DockerRig::placement("spw-a", 2)));
  rig.settle();
  rig.engine().before = nullptr;
  rig.restart_daemon();
  REQUIRE(rig.list());
  CHECK(rig.list()->instances.at(0).state == InstanceState::kPending);
  REQUIRE(rig.create(DockerRig::placement("spw-a", 2)));
  rig.settle();
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
  CHECK(rig.engine().container("spw-a").label("spillway.dev/gpus") == "0,1");
  CHECK(rig.engine().container("spw-a-main").body["HostConfig"]["DeviceRequests"][0]["DeviceIDs"] ==
        nlohmann::json({"0", "1"}));
}

TEST_CASE("docker provider: a stopped Job keeps its logs, not its GPUs") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-job", 2), DockerRig::pod(model::RestartPolicy::kNever)));
  rig.settle();
  CHECK(rig.create(DockerRig::placement("spw-next", 1)).error().kind == ErrorKind::kNoCapacity);
  rig.engine().exit("spw-job-main", 0);
  CHECK(rig.state("spw-job") == InstanceState::kExited);
  REQUIRE(rig.create(DockerRig::placement("spw-next", 1)));
  CHECK(rig.engine().has("spw-job-main"));
}

TEST_CASE("docker provider: a container that core will restart keeps its GPUs") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a", 2), DockerRig::pod(model::RestartPolicy::kAlways)));
  rig.settle();
  rig.engine().exit("spw-a-main", 1);
  CHECK(rig.state("spw-a") == InstanceState::kExited);
  CHECK(rig.create(DockerRig::placement("spw-b", 1)).error().kind == ErrorKind::kNoCapacity);
}

TEST_CASE("docker provider: a command that is not there is an exit, each time with a time of its own") {
  DockerRig rig;
  rig.engine().bad_commands.insert("/nope");
  model::ResolvedPod bad = DockerRig::pod();
  bad.containers[0].command = {"/nope"};
  REQUIRE(rig.create(DockerRig::placement("spw-a"), bad));
  rig.settle();
  const auto first = rig.get("spw-a");
  REQUIRE(first);
  CHECK(first->state == InstanceState::kExited);
  CHECK(first->containers[0].exit_code == 127);
  CHECK(first->containers[0].reason == "ContainerCannotRun");
  CHECK(says(first->containers[0].message, "\"/nope\": executable file not found"));
  rig.pass(10s);
  REQUIRE(rig.control("spw-a", ContainerAction::kStart));
  const auto second = rig.get("spw-a");
  REQUIRE(second);
  CHECK(*second->containers[0].finished_at == *first->containers[0].finished_at + 10s);
}

TEST_CASE("docker provider: containers are started, stopped and restarted by order") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  REQUIRE(rig.control("spw-a", ContainerAction::kStop));
  rig.settle();
  CHECK(rig.get("spw-a")->containers[0].state == ContainerState::kExited);
  REQUIRE(rig.control("spw-a", ContainerAction::kStop));  // already
  REQUIRE(rig.control("spw-a", ContainerAction::kRestart));
  CHECK(rig.get("spw-a")->containers[0].state == ContainerState::kRunning);
  REQUIRE(rig.control("spw-a", ContainerAction::kStart));  // already
  REQUIRE(rig.control("spw-a", ContainerAction::kRestart));
  rig.settle();
  CHECK(rig.engine().count("/restart") == 1);
  CHECK(rig.control("spw-nobody", ContainerAction::kStart).error().kind == ErrorKind::kNotFound);
}

TEST_CASE("docker provider: terminate removes everything, volumes too, the sandbox last") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a", 2)));
  rig.settle();
  const std::string main = rig.engine().container("spw-a-main").id;
  rig.engine().requests.clear();
  REQUIRE(rig.terminate("spw-a", 30s));
  rig.settle();
  CHECK(rig.engine().size() == 0);
  CHECK(rig.get("spw-a").error().kind == ErrorKind::kNotFound);
  CHECK(rig.list()->instances.empty());
  CHECK(rig.engine().count("POST /v1.41/containers/" + main + "/stop?t=30") == 1);
  CHECK(rig.engine().count("DELETE /v1.41/containers/" + main + "?force=true&v=true") == 1);
  CHECK(rig.terminate("spw-a").error().kind == ErrorKind::kNotFound);
  REQUIRE(rig.create(DockerRig::placement("spw-b", 2)));
}

TEST_CASE("docker provider: a stubborn container has its grace, and a shorter one when asked again") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  rig.engine().container("spw-a-main").ignores_sigterm = true;
  REQUIRE(rig.terminate("spw-a", 600s));
  rig.pass(60s);
  CHECK(rig.state("spw-a") == InstanceState::kTerminating);
  REQUIRE(rig.terminate("spw-a", 540s));
  SECTION("to the end") {
    rig.pass(530s);
    CHECK(rig.state("spw-a") == InstanceState::kTerminating);
    rig.pass(20s);
  }
  SECTION("shorter") {
    REQUIRE(rig.terminate("spw-a", 5s));
    rig.pass(4s);
    CHECK(rig.state("spw-a") == InstanceState::kTerminating);
    rig.pass(4s);
  }
  SECTION("none") {
    REQUIRE(rig.terminate("spw-a", 0s));
    rig.settle();
  }
  CHECK(rig.engine().size() == 0);
  CHECK(rig.engine().count("/stop") == 1);
}

TEST_CASE("docker provider: parallel creates and restarts never share a GPU") {
  DockerRig rig;
  rig.config.hosts[0].gpu_count = 4;
  rig.engine().latency = 20ms;
  std::set<std::string> won;
  int refused = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::optional<base::Result<model::Instance>>> results(50);
    for (int i = 0; i < 50; ++i) {
      const std::string tag = "spw-" + std::to_string(round) + "-" + std::to_string(i);
      boost::asio::co_spawn(rig.reactor.ctx,
                            rig.provider().create(DockerRig::placement(tag, 1), DockerRig::pod(), rig.soon()),
                            [&results, i](const std::exception_ptr&, base::Result<model::Instance> result) {
                              results[static_cast<size_t>(i)] = std::move(result);
                            });
    }
    rig.pass(20s);
    for (const auto& result : results) {
      REQUIRE(result);
      if (*result) {
        won.insert((*result)->tag.str());
      } else {
        CHECK(result->error().kind == ErrorKind::kNoCapacity);
        ++refused;
      }
    }
    rig.restart_daemon();
  }
  CHECK(won.size() == 4);
  CHECK(refused == 146);
  std::set<std::string> indices;
  for (const std::string& tag : won) indices.insert(rig.engine().container(tag).label("spillway.dev/gpus"));
  CHECK(indices == std::set<std::string>{"0", "1", "2", "3"});
}

TEST_CASE("docker provider: only the ports that are asked for are published") {
  DockerRig rig;
  rig.config.hosts[0].publish_address = "10.0.0.5";
  model::ResolvedPod web = DockerRig::pod();
  web.containers[0].ports.resize(2);
  web.containers[0].ports[0].port = 80;
  web.containers[0].ports[1].port = 9090;
  web.public_ports = {80};
  REQUIRE(rig.create(DockerRig::placement("spw-a"), web));
  rig.settle();
  const auto& sandbox = rig.engine().container("spw-a").body;
  CHECK(sandbox["ExposedPorts"].size() == 1);
  CHECK(sandbox["HostConfig"]["PortBindings"] ==
        nlohmann::json::parse(R"({"80/tcp": [{"HostIp": "10.0.0.5", "HostPort": ""}]})"));
  CHECK_FALSE(rig.engine().container("spw-a-main").body.contains("ExposedPorts"));
  const auto instance = rig.get("spw-a");
  REQUIRE(instance->ports.size() == 1);
  CHECK(instance->ports[0].container_port == 80);
  CHECK(instance->ports[0].public_port == 40080);
}

TEST_CASE("docker provider: the price of an instance is the one it was bought at") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a", 2)));
  rig.settle();
  rig.config.hosts[0].price_per_gpu_hour = base::Money::from_micros(9'000'000);
  rig.restart_daemon();
  CHECK(rig.get("spw-a")->price_per_hour == base::Money::from_micros(2'000'000));
}

TEST_CASE("docker provider: orders that make no sense are refused before anything is made") {
  DockerRig rig;
  CHECK(rig.create(DockerRig::placement("spw-a", 0, "elsewhere")).error().kind == ErrorKind::kInvalid);
  CHECK(rig.create(DockerRig::placement("spw-a", 3)).error().kind == ErrorKind::kInvalid);
  model::Placement twisted = DockerRig::placement("spw-a", 1);
  twisted.gpu_count = 2;
  CHECK(rig.create(twisted).error().kind == ErrorKind::kInvalid);
  CHECK(rig.engine().requests.empty());
  // A host that was taken out of the configuration is not a proof that its instances are gone.
  CHECK(rig.get("spw-a", "elsewhere").error().kind == ErrorKind::kUnavailable);
  CHECK(rig.get("spw-a", "elsewhere").error().message.contains("put it back"));
}
