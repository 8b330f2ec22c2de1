// Use of containers: what an engine is asked, and what becomes of its answers.
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;        // NOLINT(google-build-using-namespace)
using namespace spillway::test;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;

TEST_CASE("docker samples: running containers of all hosts, in one call") {
  DockerRig rig(2);
  REQUIRE(rig.create(DockerRig::placement("spw-a-1"), DockerRig::pod_with_init()));
  REQUIRE(rig.create(DockerRig::placement("spw-a-2", 0, "box-1")));
  rig.settle();
  rig.pass(8s);
  auto samples = rig.reactor.run(rig.provider().samples(rig.soon()));
  REQUIRE(samples);
  REQUIRE(samples->size() == 2);  // what only was made is not measured
  CHECK(samples->at(0).instance == DockerRig::ref("spw-a-1"));
  CHECK(samples->at(0).container == "setup");
  CHECK(samples->at(0).cpu_ns == 2'005'000'000);
  CHECK(samples->at(0).working_set == 20'000'000);
  CHECK(samples->at(0).at == rig.reactor.timers.wall());
  CHECK(samples->at(1).instance == DockerRig::ref("spw-a-2", "box-1"));
  CHECK(samples->at(1).container == "main");

  rig.engine(1).exit("spw-a-2-main", 0);
  samples = rig.reactor.run(rig.provider().samples(rig.soon()));
  REQUIRE(samples);
  CHECK(samples->size() == 1);

  rig.engine(1).reachable = false;
  samples = rig.reactor.run(rig.provider().samples(rig.soon()));
  REQUIRE(samples);
  CHECK(samples->size() == 1);
  rig.engine(0).reachable = false;
  CHECK(rig.reactor.run(rig.provider().samples(rig.soon())).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE("docker samples: what ends while it is measured is left out, and one that fails spoils nothing") {
  DockerRig rig;
  for (const char* const tag : {"spw-a-1", "spw-a-2", "spw-a-3", "spw-a-4"}) {
    REQUIRE(rig.create(DockerRig::placement(tag)));
  }
  rig.settle();
  rig.engine().before = [&rig](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
    const auto is_about = [&](const char* name) {
      return request.target.contains(rig.engine().container(name).id + "/stats");
    };
    if (is_about("spw-a-1-main")) return DockerEngineModel::refuse(404, "No such container");
    if (is_about("spw-a-2-main")) return DockerEngineModel::refuse(500, "cgroup is gone");
    if (is_about("spw-a-3-main")) return DockerEngineModel::answer(200, {{"read", "0001-01-01T00:00:00Z"}});
    return std::nullopt;
  };
  const auto samples = rig.reactor.run(rig.provider().samples(rig.soon()));
  REQUIRE(samples);
  CHECK(rig.engine().count("/stats?stream=false&one-shot=true") == 4);
  REQUIRE(samples->size() == 1);
  CHECK(samples->at(0).instance == DockerRig::ref("spw-a-4"));
}

TEST_CASE("docker samples: an engine is asked for eight containers at a time") {
  DockerRig rig;
  rig.config.hosts[0].max_instances = 20;
  for (int i = 0; i < 20; ++i) REQUIRE(rig.create(DockerRig::placement("spw-a-" + std::to_string(i))));
  rig.settle();
  rig.engine().latency = 1s;
  const base::TimePoint begun = rig.reactor.timers.now();
  const auto samples = rig.reactor.run(rig.provider().samples(begun + 20s));
  REQUIRE(samples);
  CHECK(samples->size() == 20);
  CHECK(rig.reactor.timers.now() - begun == 4s);  // the listing, and three times eight
}
