// Pods of several containers and pods that are only shown, through the whole daemon in virtual time.
#include <chrono>

#include <catch2/catch.hpp>

#include "test/unit/daemon/daemon_world.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using nlohmann::json;
using test::World;

namespace {

json annotations(std::initializer_list<std::pair<const char*, const char*>> orders) {
  json out = json::object();
  for (const auto& [key, value] : orders) out[std::string("fake.spillway.dev/") + key] = value;
  return out;
}

json a_container(const std::string& name) { return {{"name", name}, {"image", name + ":1"}}; }

bool is_true(const json& pod, const std::string& type) {
  for (const json& condition : pod["status"]["conditions"]) {
    if (condition["type"] == type) return condition["status"] == "True";
  }
  return false;
}

}  // namespace

TEST_CASE("two containers: one succeeds, one is restarted until it does, and the pod succeeds with the last") {
  World world;
  world.start();
  world.create_pod([](json& pod) {
    pod["metadata"]["annotations"] =
        annotations({{"run-for.main", "60s"}, {"run-for.aside", "5s"}, {"exit-code.aside", "1,0"}});
    pod["spec"]["restartPolicy"] = "OnFailure";
    pod["spec"]["containers"].push_back(a_container("aside"));
  });
  REQUIRE(world.until("Running", 1min));
  json statuses = world.pod()["status"]["containerStatuses"];
  REQUIRE(statuses.size() == 2);
  CHECK(statuses[0]["name"] == "aside");
  CHECK(is_true(world.pod(), "Ready"));
  world.reactor.run_for(10s);
  CHECK_FALSE(is_true(world.pod(), "Ready"));
  CHECK(world.pod()["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff");
  REQUIRE(world.until("Succeeded", 2min));
  statuses = world.pod()["status"]["containerStatuses"];
  CHECK(statuses[0]["restartCount"] == 1);
  CHECK(statuses[0]["lastState"]["terminated"]["exitCode"] == 1);
  CHECK(world.bought() == 1);
}

TEST_CASE("a DaemonSet's pod that tolerates everything costs nothing, through two daemons") {
  World world;
  world.start();
  world.create_pod([](json& pod) {
    pod["metadata"]["ownerReferences"] = {
        {{"apiVersion", "apps/v1"}, {"kind", "DaemonSet"}, {"name", "agent"}, {"uid", "ds-1"}, {"controller", true}}};
    pod["spec"]["tolerations"] = {{{"operator", "Exists"}}};
    pod["spec"]["hostNetwork"] = true;
  });
  REQUIRE(world.until("Running", 10s));
  CHECK(is_true(world.pod(), "Ready"));
  const json before = world.pod();
  world.crash();
  world.start();
  world.reactor.run_for(2min);
  CHECK(world.pod()["status"] == before["status"]);
  world.api.delete_pod("team-a", "web", 30);
  REQUIRE(world.until("gone", 5s));
  CHECK(world.bought() == 0);
}

TEST_CASE("the mirror of a static pod is left alone") {
  World world;
  world.start();
  world.create_pod([](json& pod) { pod["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "abc"}}; });
  world.reactor.run_for(2min);
  CHECK(world.phase() == "Pending");
  CHECK(world.bought() == 0);
  CHECK_FALSE(world.pod()["status"].contains("conditions"));
}

TEST_CASE("activeDeadlineSeconds ends a pod that runs") {
  World world;
  world.start();
  world.create_pod([](json& pod) { pod["spec"]["activeDeadlineSeconds"] = 60; });
  REQUIRE(world.until("Running", 50s));
  REQUIRE(world.until("Failed", 2min));
  CHECK(world.pod()["status"]["reason"] == "DeadlineExceeded");
  CHECK(world.alive() == 0);
}
