// The whole daemon above its seams, in virtual time: nothing sleeps, nothing is a socket.
#include "vk-provider/daemon/daemon.hpp"

#include <chrono>
#include <ctime>

#include <catch2/catch.hpp>

#include "test/unit/daemon/daemon_world.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using nlohmann::json;
using test::World;
namespace fake = providers::fake;

TEST_CASE("a pod that comes before the first prices is bought for once they are known") {
  World world;
  fake::FaultRule down;
  down.call = fake::Call::kListOffers;
  down.times = 2;
  REQUIRE(world.cloud.add_fault(down, world.reactor.timers.now()));
  world.create_pod();
  world.start();
  REQUIRE(world.until("Running", 30s));
  CHECK(world.bought() == 1);
  // It was no lack of capacity: nobody was told so.
  world.reactor.run_for(1s);
  CHECK(world.api.requests().at("POST events") == 1);
}

TEST_CASE("a pod's life through two daemons, in virtual time and under 100 ms") {
  // Of this process alone: what else the machine does is nothing to it.
  const std::clock_t begun = std::clock();
  World world;
  world.start();
  REQUIRE(world.reactor.run_until([&] { return !world.api.get("/api/v1/nodes/burst").is_null(); }, 10s));

  world.create_pod();
  REQUIRE(world.until("Running", 1min));
  CHECK(world.alive() == 1);
  CHECK(world.api.requests().at("PATCH pods/status") == 2);
  world.reactor.run_for(1s);
  CHECK(world.api.requests().at("POST events") == 1);

  world.crash();
  world.api.forget_requests();
  world.start();
  // The second daemon waits out the lease of the first, adopts, and writes nothing about a pod that did not change.
  world.reactor.run_for(2min);
  CHECK(world.phase() == "Running");
  CHECK(world.alive() == 1);
  CHECK(world.api.requests().count("PATCH pods/status") == 0);

  world.api.delete_pod("team-a", "web", 30);
  REQUIRE(world.until("gone", 1min));
  CHECK(world.alive() == 0);
  REQUIRE(world.bought() == 1);
  world.stop();
  CHECK(world.exit_code == 0);
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
#if !defined(__has_feature) || !__has_feature(address_sanitizer)
  CHECK(seconds < 0.1);
#else
  (void)seconds;
#endif
}

TEST_CASE("crashed at any moment of a pod's start, the next daemon ends up with one instance") {
  for (int step = 0; step < 12; ++step) {
    CAPTURE(step);
    World world;
    world.start();
    REQUIRE(world.reactor.run_until([&] { return !world.api.get("/api/v1/nodes/burst").is_null(); }, 10s));
    world.create_pod();
    // One handler at a time: each await point of the start is a place to die.
    for (int i = 0; i < step * 4; ++i) {
      world.reactor.ctx.restart();
      world.reactor.ctx.poll_one();
    }
    world.crash();
    world.start();
    REQUIRE(world.until("Running", 5min));
    CHECK(world.alive() == 1);
    CHECK(world.bought() == 1);
  }
}

TEST_CASE("deleted while no daemon runs: the next one ends the instance and lets the pod go") {
  World world;
  world.start();
  world.reactor.run_for(5s);
  world.create_pod();
  REQUIRE(world.until("Running", 1min));
  world.crash();
  SECTION("gracefully") {
    world.api.delete_pod("team-a", "web", 30);
    world.start();
    REQUIRE(world.until("gone", 5min));
  }
  SECTION("by force") {
    world.api.delete_pod("team-a", "web", 0);
    world.start();
  }
  CHECK(world.reactor.run_until([&] { return world.alive() == 0; }, 5min));
}

TEST_CASE("a daemon that stops releases the lease, and the next one starts at once") {
  World world;
  world.start();
  world.reactor.run_for(5s);
  world.stop();
  CHECK(world.exit_code == 0);
  const base::TimePoint before = world.reactor.timers.now();
  world.start();
  world.create_pod();
  REQUIRE(world.until("Running", 1min));
  CHECK(world.reactor.timers.now() - before < 5s);
}

TEST_CASE("after a pod that failed the others of its owner are launched one by one") {
  World world;
  world.start();
  const auto create_replica = [&](const std::string& name, const std::function<void(json&)>& change) {
    world.create_pod([&](json& pod) {
      pod["metadata"]["name"] = name;
      pod["metadata"]["ownerReferences"] = {
          {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "rs-1"}, {"controller", true}}};
      change(pod);
    });
  };
  create_replica("web", [](json& pod) {
    pod["spec"]["restartPolicy"] = "Never";
    pod["metadata"]["annotations"] = {{"fake.spillway.dev/run-for", "3s"}, {"fake.spillway.dev/exit-code", "3"}};
  });
  REQUIRE(world.until("Failed", 10s));
  for (const char* name : {"web-1", "web-2", "web-3"}) create_replica(name, [](json&) {});
  world.reactor.run_for(9s);
  CHECK(world.bought() == 1);
  for (const size_t launched : {2U, 3U, 4U}) {
    world.reactor.run_for(2s);
    CHECK(world.bought() == launched);
    world.reactor.run_for(8s);
    CHECK(world.bought() == launched);
  }
}
