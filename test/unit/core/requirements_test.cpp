#include "vk-provider/core/requirements.hpp"

#include <catch2/catch.hpp>

#include "test/support/pod_builder.hpp"
#include "vk-provider/core/refusal.hpp"

namespace spillway::core {
namespace {

using model::Capability;

std::vector<ProviderAbility> one_provider() {
  ProviderAbility ability;
  ability.name = "cloud";
  ability.capabilities = {Capability::kExitCode, Capability::kRestartContainer, Capability::kPortsTcp,
                          Capability::kEntrypoint};
  return {ability};
}

std::optional<Refusal> judge_by(const model::PodSpec& pod, const std::vector<ProviderAbility>& providers) {
  return refusal(pod, compute_requirements(pod, {}), providers);
}

model::FieldUse use(const std::string& path, std::optional<Capability> needs, const std::string& why = "why") {
  model::FieldUse out;
  out.path = path;
  out.needs = needs;
  out.why = why;
  return out;
}

model::ContainerSpec container_with(std::int64_t cpu_request, std::int64_t cpu_limit, std::int64_t memory) {
  model::ContainerSpec out;
  out.name = "c";
  out.image = "app:1";
  out.resources.cpu_request_milli = cpu_request;
  out.resources.cpu_limit_milli = cpu_limit;
  out.resources.memory_limit = memory;
  return out;
}

TEST_CASE("a pod that every provider can honour is not refused") {
  CHECK_FALSE(judge_by(test::a_pod(), one_provider()));
}

TEST_CASE("a refusal names every field by path, what each provider lacks, and what to do") {
  model::PodSpec pod = test::a_pod();
  pod.uses = {use("spec.containers[0].livenessProbe", Capability::kFiles), use("spec.hostPID", std::nullopt, "no host"),
              use("spec.volumes[0].configMap", Capability::kFiles), use("spec.containers[0].tty", Capability::kTty)};
  pod.annotations["spillway.dev/public-port"] = "80";
  auto providers = one_provider();
  ProviderAbility other;
  other.name = "other";
  other.capabilities = {Capability::kExitCode, Capability::kFiles, Capability::kTty};
  providers.push_back(other);
  const auto refused = judge_by(pod, providers);
  REQUIRE(refused);
  CHECK(refused->why == model::WaitReason::kRefused);
  CHECK(refused->message ==
        "Pod was rejected: metadata.annotations[spillway.dev/public-port]: unknown key; did you mean "
        "spillway.dev/public-ports?; spec.hostPID: no host"
        "; provider cloud lacks files (spec.containers[0].livenessProbe, spec.volumes[0].configMap), tty "
        "(spec.containers[0].tty)"
        "; provider other lacks restart_container (spec.restartPolicy)"
        "; to have it run, change or remove these fields; what providers lack, another one may have");
}

TEST_CASE("the remedy fits what is wrong") {
  model::PodSpec pod = test::a_pod();
  pod.uses = {use("spec.hostPID", std::nullopt)};
  CHECK_THAT(judge_by(pod, one_provider())->message, Catch::EndsWith("to have it run, change or remove these fields"));
  pod.uses = {use("spec.volumes[0].secret", Capability::kFiles)};
  CHECK_THAT(judge_by(pod, one_provider())->message,
             Catch::EndsWith("change or remove these fields, or configure a provider that has what is lacking"));
  CHECK_THAT(judge_by(test::a_pod(), {})->message, Catch::EndsWith("configure a provider"));
}

TEST_CASE("a feature that one provider lacks sends the pod to one that has it") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit()[0].working_dir = "/srv";
  auto providers = one_provider();
  CHECK_THAT(judge_by(pod, providers)->message, Catch::Contains("working_dir (spec.containers[0].workingDir)"));
  ProviderAbility able = providers[0];
  able.name = "able";
  able.capabilities.add(Capability::kWorkingDir);
  providers.push_back(able);
  CHECK_FALSE(judge_by(pod, providers));
}

TEST_CASE("the name of an image that nobody can ask for is told as such") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit()[0].image = "docker://app:1";
  const auto refused = judge_by(pod, one_provider());
  REQUIRE(refused);
  CHECK(refused->why == model::WaitReason::kInvalidImage);
  CHECK(refused->message ==
        "Pod was rejected: spec.containers[0].image: 'docker://app:1' is no name of an image: leave out what stands "
        "before and with ://; to have it run, correct the name");
  pod.uses = {use("spec.hostPID", std::nullopt)};
  CHECK(judge_by(pod, one_provider())->why == model::WaitReason::kRefused);
}

TEST_CASE("a message has an end, whatever the pod holds") {
  model::PodSpec pod = test::a_pod();
  for (int i = 0; i < 2000; ++i) {
    pod.uses.push_back(use("spec.volumes[" + std::to_string(i) + "].hostPath", std::nullopt, "not ours to give"));
  }
  const std::string message = judge_by(pod, one_provider())->message;
  CHECK(message.size() <= kMaxRefusal);
  CHECK_THAT(message, Catch::Contains(" more; to have it run"));
  pod.uses = {use("spec.x", std::nullopt, std::string(20000, 'x'))};
  CHECK(judge_by(pod, one_provider())->message.size() <= kMaxRefusal);
}

TEST_CASE("an event's text is cut between characters") {
  CHECK(event_text_of("short") == "short");
  for (size_t lead = 0; lead < 4; ++lead) {
    std::string text(lead, 'x');
    while (text.size() < 3000) text += "\xF0\x9F\x98\x80";
    const std::string cut = event_text_of(text);
    CHECK(cut.size() <= 1024);
    const size_t dots = cut.rfind("...");
    CHECK((dots - lead) % 4 == 0);
  }
}

TEST_CASE("public ports come from the annotation by number or name, and from the profile where the pod has them") {
  model::PodSpec pod = test::a_pod();
  model::ContainerPort http;
  http.name = "http";
  http.port = 8080;
  model::ContainerPort debug;
  debug.port = 9000;
  pod.containers.edit()[0].ports = {http, debug};
  pod.annotations["spillway.dev/public-ports"] = "http, 7000";
  CHECK(compute_requirements(pod, {9000, 9001}).public_ports == std::vector{7000, 8080, 9000});
  pod.annotations["spillway.dev/public-ports"] = "https,70000";
  CHECK(compute_requirements(pod, {}).faults.size() == 2);
}

TEST_CASE("a sidecar's port can be published, an init container's cannot") {
  model::PodSpec pod = test::a_pod();
  model::ContainerSpec init = container_with(0, 0, 0);
  model::ContainerPort proxy;
  proxy.name = "proxy";
  proxy.port = 3128;
  init.ports = {proxy};
  pod.extras = model::PodExtras();
  pod.extras->init_containers.edit().push_back(init);
  pod.annotations["spillway.dev/public-ports"] = "proxy";
  CHECK(compute_requirements(pod, {}).faults.size() == 1);
  pod.extras->init_containers.edit()[0].restart_policy = model::RestartPolicy::kAlways;
  CHECK(compute_requirements(pod, {}).public_ports == std::vector{3128});
}

TEST_CASE("the order to send the token is yes or no") {
  model::PodSpec pod = test::a_pod();
  const auto faults = [&](const std::string& value) {
    pod.annotations["spillway.dev/send-service-account-token"] = value;
    return compute_requirements(pod, {}).faults;
  };
  CHECK(faults("true").empty());
  CHECK(faults("false").empty());
  REQUIRE(faults("yes").size() == 1);
  CHECK(faults("yes")[0].why == "found 'yes'; allowed: \"true\" or \"false\"");
  CHECK(faults("yes")[0].path == "metadata.annotations[spillway.dev/send-service-account-token]");
}

TEST_CASE("CPU and memory are what the scheduler counts") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit() = {container_with(500, 1000, 1 << 30), container_with(0, 2000, 1 << 30)};
  CHECK(compute_requirements(pod, {}).cpu_milli == 2500);
  CHECK(compute_requirements(pod, {}).memory == 2LL << 30);

  pod.extras = model::PodExtras();
  auto& init = pod.extras->init_containers;
  init.edit() = {container_with(4000, 0, 1 << 20)};
  CHECK(compute_requirements(pod, {}).cpu_milli == 4000);
  CHECK(compute_requirements(pod, {}).memory == 2LL << 30);
  init.edit()[0].restart_policy = model::RestartPolicy::kAlways;
  CHECK(compute_requirements(pod, {}).cpu_milli == 6500);
  CHECK(compute_requirements(pod, {}).memory == (2LL << 30) + (1 << 20));
}

TEST_CASE("resources of the whole pod win over the sum of its containers'") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit() = {container_with(0, 8000, 32LL << 30)};  // the pod's limits, which hold for it, too
  pod.extras = model::PodExtras();
  model::Resources own;
  own.cpu_limit_milli = 8000;
  own.memory_request = 16LL << 30;
  own.memory_limit = 32LL << 30;
  pod.extras->resources = own;
  CHECK(compute_requirements(pod, {}).cpu_milli == 8000);
  CHECK(compute_requirements(pod, {}).memory == 16LL << 30);
  pod.containers.edit().push_back(container_with(1000, 0, 0));
  CHECK(compute_requirements(pod, {}).cpu_milli == 1000);
}

}  // namespace
}  // namespace spillway::core
