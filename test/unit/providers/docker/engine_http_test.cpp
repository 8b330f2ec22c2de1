// In which version of its API an engine is spoken to.
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;

TEST_CASE("docker engine: the newest version that both speak is used, and asked for once") {
  DockerRig rig;
  const auto [oldest, newest, spoken] = GENERATE(table<int, int, std::string>({
      {12, 41, "/v1.41/"},  // Docker 20.10
      {24, 45, "/v1.45/"},  // 26
      {44, 52, "/v1.45/"},  // 29, which has forgotten 1.41
  }));
  rig.engine().oldest_api = oldest;
  rig.engine().newest_api = newest;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  CHECK(rig.state("spw-a") == model::InstanceState::kRunning);
  CHECK(rig.engine().count("GET /version") == 1);
  CHECK(rig.engine().count("POST " + spoken + "containers/create") == 2);
}

TEST_CASE("docker engine: one with which no version is shared is told, and nothing is done to it") {
  DockerRig rig;
  std::string said;
  SECTION("too old") {
    rig.engine().newest_api = 40;
    said = "the engine speaks API 1.12 to 1.40; this Spillway speaks 1.41 to 1.45";
  }
  SECTION("too new") {
    rig.engine().oldest_api = 46;
    rig.engine().newest_api = 60;
    said = "the engine speaks API 1.46 to 1.60; this Spillway speaks 1.41 to 1.45";
  }
  const auto list = rig.list();
  REQUIRE_FALSE(list);
  CHECK(list.error().kind == ErrorKind::kUnavailable);
  CHECK_THAT(list.error().message, Catch::Contains("box-0") && Catch::Contains(said));
  CHECK_FALSE(rig.create(DockerRig::placement("spw-a")));
  CHECK(rig.engine().size() == 0);
}

TEST_CASE("docker engine: after an error it is asked again, because it may be another one") {
  DockerRig rig;
  REQUIRE(rig.list());
  rig.engine().reachable = false;
  CHECK_FALSE(rig.list());
  rig.engine().reachable = true;
  rig.engine().newest_api = 45;
  rig.engine().oldest_api = 44;
  REQUIRE(rig.list());
  CHECK(rig.engine().count("GET /v1.45/containers/json") == 1);
}

TEST_CASE("docker engine: a version that it has forgotten since is given up at its word") {
  DockerRig rig;
  REQUIRE(rig.list());
  rig.engine().oldest_api = 44;
  rig.engine().newest_api = 45;
  CHECK_FALSE(rig.list());
  CHECK(rig.list());
}
