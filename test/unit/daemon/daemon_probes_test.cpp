// Probes and hooks through the whole daemon in virtual time, over a toy cloud that can run processes.
#include <chrono>
#include <map>

#include <catch2/catch.hpp>

#include "test/simulation/passing_provider.hpp"
#include "test/support/answering_provider.hpp"
#include "test/unit/daemon/daemon_world.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using nlohmann::json;
using test::World;
namespace fake = providers::fake;

namespace {

/// What the one-word commands of the pod come to, and how often each was run.
struct Commands {
  std::map<std::string, int> exit_codes;
  std::map<std::string, int> runs;
  std::string hangs;
};

class ExecutingProvider final : public simulation::PassingProvider {
 public:
  ExecutingProvider(std::unique_ptr<provider::Provider> inner, async::Timers& timers, Commands& commands)
      : PassingProvider(std::move(inner)), timers_(timers), commands_(commands), info_(PassingProvider::info()) {
    info_.capabilities.add(model::Capability::kExec);
  }
  const provider::ProviderInfo& info() const override { return info_; }
  async::Task<provider::ExecSessionPtr> open_exec(model::InstanceRef, provider::ExecOptions options,
                                                  base::Deadline) override {
    const std::string command = options.command.front();
    ++commands_.runs[command];
    co_return std::make_unique<test::ScriptedExec>(timers_, "", "", commands_.exit_codes[command],
                                                   command == commands_.hangs);
  }

 private:
  async::Timers& timers_;
  Commands& commands_;
  provider::ProviderInfo info_;
};

class ProbedWorld : public World {
 public:
  ProbedWorld() {
    provider::ProviderType type = fake::provider_type_over(cloud);
    type.make = [this](base::ProviderName name, const json&, const provider::ProviderDeps&) {
      return base::Result<std::unique_ptr<provider::Provider>>(std::make_unique<ExecutingProvider>(
          fake::make_provider(std::move(name), cloud, reactor.timers), reactor.timers, commands));
    };
    registry["fake"] = type;
  }
  ~ProbedWorld() { crash(); }

  void create(const std::function<void(json&)>& change) {
    create_pod([&](json& pod) { change(pod["spec"]["containers"][0]); });
  }
  json status() const { return pod()["status"]["containerStatuses"][0]; }

  Commands commands;
};

json exec(const std::string& command) { return {{"exec", {{"command", {command}}}}}; }

json probe(const std::string& command) {
  json out = exec(command);
  out["periodSeconds"] = 10;
  out["failureThreshold"] = 2;
  return out;
}

}  // namespace

TEST_CASE("a pod is Ready when its readiness probe says so, and a change costs one write") {
  ProbedWorld world;
  world.commands.exit_codes["ready"] = 1;
  world.start();
  world.create([](json& container) { container["readinessProbe"] = probe("ready"); });
  REQUIRE(world.until("Running", 1min));
  world.reactor.run_for(30s);
  CHECK(world.status()["ready"] == false);
  CHECK(world.status()["started"] == true);
  world.commands.exit_codes["ready"] = 0;
  world.reactor.run_for(11s);
  CHECK(world.status()["ready"] == true);
  world.api.forget_requests();
  world.reactor.run_for(5min);
  CHECK(world.api.requests().count("PATCH pods/status") == 0);
  CHECK(world.commands.runs["ready"] > 30);
}

TEST_CASE("a failed liveness probe restarts the container and is counted; preStop comes first") {
  ProbedWorld world;
  world.start();
  world.create([](json& container) {
    container["livenessProbe"] = probe("alive");
    container["lifecycle"]["preStop"] = exec("farewell");
  });
  REQUIRE(world.until("Running", 1min));
  world.commands.exit_codes["alive"] = 1;
  world.reactor.run_for(25s);
  CHECK(world.commands.runs["farewell"] == 1);
  world.commands.exit_codes["alive"] = 0;
  world.reactor.run_for(30s);
  CHECK(world.status()["restartCount"] == 1);
  CHECK(world.status()["ready"] == true);
  CHECK(world.phase() == "Running");
  CHECK(world.bought() == 1);
}

TEST_CASE("a preStop that never ends is cut off by the grace period, and the pod goes") {
  ProbedWorld world;
  world.commands.hangs = "farewell";
  world.start();
  world.create([](json& container) { container["lifecycle"]["preStop"] = exec("farewell"); });
  REQUIRE(world.until("Running", 1min));
  world.api.delete_pod("team-a", "web", 30);
  world.reactor.run_for(25s);
  CHECK(world.alive() == 1);
  REQUIRE(world.until("gone", 15s));
  CHECK(world.alive() == 0);
  CHECK(world.commands.runs["farewell"] == 1);
}

TEST_CASE("a probe that hangs in one pod holds up no other") {
  ProbedWorld world;
  world.commands.hangs = "never";
  world.start();
  world.create_pod([](json& pod) {
    pod["metadata"]["name"] = "stuck";
    pod["spec"]["containers"][0]["readinessProbe"] = probe("never");
    pod["spec"]["containers"][0]["readinessProbe"]["timeoutSeconds"] = 60;
  });
  world.create([](json& container) { container["readinessProbe"] = probe("ready"); });
  REQUIRE(world.until("Running", 1min));
  world.reactor.run_for(5s);
  CHECK(world.status()["ready"] == true);
}
