// Pods of several containers: who is made, started and stopped, and when.
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using model::ContainerState;
using model::InstanceState;
using provider::ContainerAction;

TEST_CASE("docker pods: all containers are made, and only those that shall begin are started") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), DockerRig::pod_with_init()));
  rig.settle();
  CHECK(rig.engine().container("spw-a").label("spillway.dev/parts") == "init,sidecar,main");
  CHECK(rig.engine().container("spw-a-proxy").label("spillway.dev/part") == "sidecar");
  CHECK(rig.engine().container("spw-a-proxy").label("spillway.dev/order") == "1");
  const auto begun = rig.get("spw-a");
  REQUIRE(begun);
  CHECK(begun->state == InstanceState::kRunning);
  REQUIRE(begun->containers.size() == 3);
  CHECK(begun->containers[0].state == ContainerState::kRunning);
  for (const size_t i : {1UL, 2UL}) {
    CHECK(begun->containers[i].state == ContainerState::kWaiting);
    CHECK(begun->containers[i].created);
    CHECK(begun->containers[i].reason == "PodInitializing");
  }
  // The order comes from another process than the one that made them.
  rig.restart_daemon();
  CHECK(rig.get("spw-a")->containers[1].created);
  rig.engine().exit("spw-a-setup", 0);
  REQUIRE(rig.control("spw-a", ContainerAction::kStart, "proxy"));
  REQUIRE(rig.control("spw-a", ContainerAction::kStart, "main"));
  const auto running = rig.get("spw-a");
  REQUIRE(running);
  CHECK(running->containers[0].exit_code == 0);
  CHECK(running->containers[1].state == ContainerState::kRunning);
  CHECK(running->containers[2].state == ContainerState::kRunning);
  CHECK(running->containers[2].reason.empty());
}

TEST_CASE("docker pods: a pod that cannot be complete does not begin") {
  DockerRig rig;
  model::ResolvedPod pod = DockerRig::pod_with_init();
  pod.containers[2].image = "missing:1";
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  const auto failed = rig.get("spw-a");
  REQUIRE(failed);
  CHECK(failed->state == InstanceState::kFailed);
  CHECK(failed->image_error);
  CHECK(failed->containers.at(2).reason == "ErrImagePull");
  CHECK(rig.engine().size() == 1);
}

TEST_CASE("docker pods: a bring-up that was cut off is carried on with, at every step") {
  DockerRig rig;
  const std::string lost = GENERATE(as<std::string>(), "create?name=spw-a-setup", "create?name=spw-a-proxy",
                                    "create?name=spw-a-main", "/start");
  INFO("died before " << lost);
  REQUIRE(rig.create(DockerRig::placement("spw-b"), DockerRig::pod_with_init()));  // loads the image of the sandbox
  rig.settle();
  rig.engine().before = [&](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
    if (!request.target.contains(lost)) return std::nullopt;
    return base::fail(ErrorKind::kUnknownOutcome, "cut");
  };
  static_cast<void>(rig.create(DockerRig::placement("spw-a"), DockerRig::pod_with_init()));
  rig.settle();
  rig.engine().before = nullptr;
  rig.restart_daemon();
  REQUIRE(rig.create(DockerRig::placement("spw-a"), DockerRig::pod_with_init()));
  rig.settle();
  CHECK(rig.engine().container("spw-a-setup").state == "running");
  CHECK(rig.engine().container("spw-a-proxy").state == "created");
  CHECK(rig.engine().container("spw-a-main").state == "created");
}

TEST_CASE("docker pods: an init container that failed for good frees the GPUs") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a", 2), DockerRig::pod_with_init()));
  rig.settle();
  CHECK(rig.create(DockerRig::placement("spw-b", 1)).error().kind == ErrorKind::kNoCapacity);
  rig.engine().exit("spw-a-setup", 1);
  CHECK(rig.state("spw-a") == InstanceState::kExited);
  CHECK(rig.create(DockerRig::placement("spw-b", 1)));
}

TEST_CASE("docker pods: sidecars are stopped after the others, with what is left of the grace") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), DockerRig::pod_with_init()));
  rig.settle();
  REQUIRE(rig.control("spw-a", ContainerAction::kStart, "proxy"));
  REQUIRE(rig.control("spw-a", ContainerAction::kStart, "main"));
  const auto stops = [&](const std::string& name) {
    return rig.engine().count("/containers/" + rig.engine().container("spw-a-" + name).id + "/stop");
  };
  rig.engine().container("spw-a-main").ignores_sigterm = true;
  rig.engine().container("spw-a-proxy").ignores_sigterm = true;
  REQUIRE(rig.terminate("spw-a", 30s));
  rig.pass(20s);
  CHECK(stops("main") == 1);
  CHECK(stops("setup") == 1);
  CHECK(stops("proxy") == 0);
  SECTION("the main container ends early") {
    const std::string proxy = rig.engine().container("spw-a-proxy").id;
    REQUIRE(rig.terminate("spw-a", 20s));
    rig.pass(10s);
    CHECK(rig.engine().count("/containers/" + proxy + "/stop?t=1") == 1);  // it used all of the grace
    rig.pass(5s);
    CHECK(rig.engine().size() == 0);
  }
  SECTION("the caller wants the end now") {
    REQUIRE(rig.terminate("spw-a", 0s));
    rig.settle();
    CHECK(rig.engine().size() == 0);
  }
}
