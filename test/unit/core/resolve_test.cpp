#include "vk-provider/core/resolve.hpp"

#include <catch2/catch.hpp>

#include "test/support/reference_builder.hpp"

using namespace spillway;
using namespace spillway::core;
using model::ContainerRole;

namespace {

model::ContainerSpec container(const char* name) {
  model::ContainerSpec out;
  out.name = name;
  return out;
}

model::ContainerSpec sidecar(const char* name) {
  model::ContainerSpec out = container(name);
  out.restart_policy = model::RestartPolicy::kAlways;
  return out;
}

std::expected<model::ResolvedPod, Hindrance> resolve(const model::PodSpec& pod, const Surroundings& read = {}) {
  std::vector<Note> notes;
  return resolve_pod(test::share(pod), read, {8080}, notes);
}

}  // namespace

TEST_CASE("without init containers all start at once, but for those with a postStart") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit().push_back(container("hooked"));
  pod.containers.edit()[1].post_start = model::Handler();
  const auto out = resolve(pod);
  REQUIRE(out);
  REQUIRE(out->containers.size() == 2);
  CHECK(out->containers[0].start_at_once);
  CHECK_FALSE(out->containers[1].start_at_once);
  CHECK(out->containers[1].role == ContainerRole::kMain);
  CHECK(out->public_ports == std::vector{8080});
}

TEST_CASE("with init containers only the first one starts at once") {
  model::PodSpec pod = test::a_pod();
  pod.extras = model::PodExtras();
  pod.extras->init_containers.edit() = {sidecar("proxy"), container("fetch")};
  auto out = resolve(pod);
  REQUIRE(out);
  REQUIRE(out->containers.size() == 3);
  CHECK(out->containers[0].name == "proxy");
  CHECK(out->containers[0].role == ContainerRole::kSidecar);
  CHECK(out->containers[0].start_at_once);
  CHECK(out->containers[1].role == ContainerRole::kInit);
  CHECK_FALSE(out->containers[1].start_at_once);
  CHECK(out->containers[2].role == ContainerRole::kMain);
  CHECK_FALSE(out->containers[2].start_at_once);

  pod.extras->init_containers.edit()[0].post_start = model::Handler();
  out = resolve(pod);
  REQUIRE(out);
  CHECK_FALSE(out->containers[0].start_at_once);
}

TEST_CASE("what concerns a container alone is carried over") {
  model::PodSpec pod = test::a_pod();
  model::ContainerSpec& main = pod.containers.edit()[0];
  main.security = model::Security();
  main.security->user = 1000;
  main.stop_signal = "SIGINT";
  main.termination_message_path = "/tmp/why";
  main.termination_message_from_logs = true;
  main.tty = main.stdin_open = main.stdin_once = true;
  main.working_dir = "/srv";
  main.pull_policy = model::PullPolicy::kNever;
  const auto out = resolve(pod);
  REQUIRE(out);
  const model::ResolvedContainer& resolved = out->containers[0];
  REQUIRE(resolved.security);
  CHECK(resolved.security->user == 1000);
  CHECK(resolved.stop_signal == "SIGINT");
  CHECK(resolved.termination_message_path == "/tmp/why");
  CHECK(resolved.termination_message_from_logs);
  CHECK((resolved.tty && resolved.stdin_open && resolved.stdin_once));
  CHECK(resolved.working_dir == "/srv");
  CHECK(resolved.pull_policy == model::PullPolicy::kNever);
}

TEST_CASE("a pod's hostname") {
  model::PodSpec pod = test::a_pod();
  CHECK(hostname_of(pod) == "web-0");
  pod.key.name = std::string(61, 'a') + "--.b";
  CHECK(hostname_of(pod) == std::string(61, 'a'));
  pod.extras = model::PodExtras();
  pod.extras->hostname = "rank-0";
  CHECK(hostname_of(pod) == "rank-0");
  pod.extras->subdomain = "ring";
  CHECK(hostname_of(pod) == "rank-0");
  pod.extras->hostname_as_fqdn = true;
  CHECK(hostname_of(pod) == "rank-0.ring.team-a.svc.cluster.local");
  pod.extras->subdomain = std::string(40, 's');
  CHECK(hostname_of(pod).error().message.find("is too long (64 characters is the max") != std::string::npos);
}

TEST_CASE("volumes come before environments, and each has its waiting reason") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit()[0].env = {test::from("V", test::config_ref(model::ConfigRef::Kind::kSecret, "keys", "k"))};
  auto out = resolve(pod);
  REQUIRE_FALSE(out);
  CHECK(out.error().why == model::WaitReason::kConfig);
  CHECK(out.error().message == "Error: secret \"keys\" not found");

  test::add_files(pod, "cfg").sources = {test::volume_source(model::VolumeSource::Kind::kConfigMap, "settings")};
  out = resolve(pod);
  REQUIRE_FALSE(out);
  CHECK(out.error().why == model::WaitReason::kMount);
  CHECK(out.error().message == "MountVolume.SetUp failed for volume \"cfg\" : configmap \"settings\" not found");
}
