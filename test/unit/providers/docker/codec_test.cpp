#include "providers/docker/codec.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>

using namespace spillway;
using namespace spillway::providers::docker;
using nlohmann::json;

namespace {

/// What a Docker 20.10 answered.
std::string recorded(const std::string& name) {
  std::ifstream file(SPILLWAY_SOURCE_DIR "/test/data/docker/" + name, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

InstancePlan a_plan() {
  InstancePlan plan;
  plan.tag = "spw-a-b-1";
  plan.hostname = "web-0";
  plan.pod = "team/web-0";
  plan.grace = std::chrono::seconds(45);
  plan.price_per_hour = base::Money::from_micros(2'390'000);
  model::ResolvedContainer& main = plan.containers.emplace_back();
  main.name = "main";
  main.image = "app:1";
  return plan;
}

json container_body(const InstancePlan& plan, const HostConfig& host = HostConfig()) {
  Surroundings around;
  around.sandbox_id = "5a";
  const auto body = encode_container(plan, 0, around, host);
  REQUIRE(body);
  return json::parse(*body);
}

}  // namespace

TEST_CASE("docker codec: a recorded listing") {
  const auto entries = decode_list(recorded("containers.json"));
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  const ContainerEntry& main = (*entries)[0];
  CHECK(main.id.size() == 64);
  CHECK(main.name == "spw-rec-1-main");
  CHECK(main.state == "running");
  CHECK(main.status.starts_with("Up "));
  CHECK(main.image_id.starts_with("sha256:"));
  CHECK(label(main.labels, kLabelRole) == kRoleContainer);
  CHECK(label(main.labels, kLabelContainer) == "main");
  CHECK(label(main.labels, "spillway.dev/nothing").empty());
  CHECK(main.ports.empty());
  const ContainerEntry& sandbox = (*entries)[1];
  CHECK(sandbox.name == "spw-rec-1");
  CHECK(label(sandbox.labels, kLabelTag) == "spw-rec-1");
  CHECK(label(sandbox.labels, kLabelRole) == kRoleSandbox);
  CHECK(label(sandbox.labels, kLabelContainers) == "main");
  CHECK(label(sandbox.labels, kLabelGpus) == "0,1");
  REQUIRE(sandbox.created);
  REQUIRE(sandbox.ports.size() == 1);
  CHECK(sandbox.ports[0].container_port == 8080);
  CHECK(sandbox.ports[0].host == "127.0.0.1");
  CHECK(sandbox.ports[0].public_port > 1024);
}

TEST_CASE("docker codec: recorded inspections") {
  const auto running = decode_container(recorded("running.json"));
  REQUIRE(running);
  CHECK(running->running());
  CHECK(running->started_at);
  CHECK_FALSE(running->finished_at);
  CHECK(label(running->labels, kLabelTag) == "spw-rec-1");

  const auto exited = decode_container(recorded("exited.json"));
  REQUIRE(exited);
  CHECK(exited->state == "exited");
  CHECK(exited->exit_code == 3);
  CHECK_FALSE(exited->running());
  CHECK_FALSE(exited->start_failed());
  REQUIRE(exited->finished_at);
  CHECK(exited->started_at < exited->finished_at);

  const auto refused = decode_container(recorded("start_failed.json"));
  REQUIRE(refused);
  CHECK(refused->state == "created");
  CHECK(refused->start_failed());
  CHECK_FALSE(refused->never_started());
  CHECK(refused->exit_code == 127);
  CHECK(refused->error.contains("executable file not found in $PATH"));
  CHECK_FALSE(refused->started_at);

  const auto killed = decode_container(recorded("oom_killed.json"));
  REQUIRE(killed);
  CHECK(killed->oom_killed);
}

TEST_CASE("docker codec: a container that ended at once did not end before it started") {
  const auto facts = [](const char* state) {
    return decode_container(R"({"Id": "x", "State": {"Status": ")" + std::string(state) +
                            R"(", "StartedAt": "2026-11-29T12:00:00.000002Z", "FinishedAt": "2026-11-29T12:00:00Z"}})");
  };
  CHECK(facts("exited")->started_at == facts("exited")->finished_at);
  // Running again: the end is that of an earlier run.
  CHECK(facts("running")->started_at > facts("running")->finished_at);
}

TEST_CASE("docker codec: fields that are absent, null or of another type are unknown, not fatal") {
  const auto facts = decode_container(R"({"Id": "x", "State": {"Status": null, "ExitCode": "3", "OOMKilled": 1,
    "StartedAt": 5, "FinishedAt": "0001-01-01T00:00:00Z"}, "Config": {"Labels": null}, "Created": "yesterday"})");
  REQUIRE(facts);
  CHECK(facts->state.empty());
  CHECK(facts->exit_code == 0);
  CHECK_FALSE(facts->oom_killed);
  CHECK_FALSE(facts->started_at);
  CHECK_FALSE(facts->finished_at);
  CHECK_FALSE(facts->created);
  const auto entries = decode_list(R"([{"Id": "x", "Names": null, "Labels": {"spillway.dev/tag": 7, "other": "y"},
    "Ports": [{"PrivatePort": 80}, null, {"PrivatePort": 81, "PublicPort": 4081, "IP": "::1"}], "Created": "now"}])");
  REQUIRE(entries);
  CHECK(entries->at(0).labels.empty());
  CHECK_FALSE(entries->at(0).created);
  REQUIRE(entries->at(0).ports.size() == 1);
  CHECK(entries->at(0).ports[0].host == "::1");
}

TEST_CASE("docker codec: what is no answer is an error") {
  for (const char* const bad : {"", "null", "{}", "[", "\"x\"", "[1]", "[{}]", "\xff"}) {
    INFO(bad);
    CHECK_FALSE(decode_list(bad));
    CHECK_FALSE(decode_container(bad));
    CHECK_FALSE(decode_created(bad));
    CHECK_FALSE(decode_version(bad));
  }
  CHECK(decode_list("[]")->empty());
}

TEST_CASE("docker codec: what an engine speaks") {
  const auto version = decode_version(R"({"Arch": "amd64", "ApiVersion": "1.47", "MinAPIVersion": "1.24"})");
  REQUIRE(version);
  CHECK(version->architecture == "amd64");
  CHECK(version->newest == 47);
  CHECK(version->oldest == 24);
  CHECK_FALSE(decode_version(R"({"Arch": "amd64", "ApiVersion": "2.0"})"));
  CHECK_FALSE(decode_version(R"({"Arch": "amd64", "ApiVersion": "1.4x"})"));
}

TEST_CASE("docker codec: messages") {
  CHECK(decode_message(R"({"message":"No such image: x"})") == "No such image: x");
  CHECK(decode_message("plain text\n") == "plain text");
  CHECK(decode_message("") == "it gave no reason");
  CHECK(decode_message(std::string(5000, 'x')).size() == 2003);
  CHECK_FALSE(decode_pull_error(R"({"status":"Pulling fs layer","id":"a"})"));
  CHECK_FALSE(decode_pull_error("not json"));
  CHECK(decode_pull_error(R"({"errorDetail":{"message":"full"},"error":"short"})") == "full");
  CHECK(decode_pull_error(R"({"error":"short"})") == "short");
}

TEST_CASE("docker codec: what is used of the disk") {
  const auto usage = decode_disk_usage(R"({"LayersSize": 5, "Images": null, "Containers": [
      {"Id": "1", "Labels": {"spillway.dev/tag": "a"}, "SizeRw": 12, "SizeRootFs": 99},
      {"Id": "2", "Labels": {"spillway.dev/tag": "b"}}, {"Id": "3", "Labels": {"other": "x"}, "SizeRw": 7}],
    "Volumes": [{"Name": "v", "Labels": {"spillway.dev/tag": "a"}, "UsageData": {"Size": 34, "RefCount": 1}},
      {"Name": "w", "Labels": {"spillway.dev/tag": "a"}, "UsageData": {"Size": -1, "RefCount": 1}},
      {"Name": "x", "Labels": {"spillway.dev/tag": "a"}}, {"Name": "y", "Labels": null, "UsageData": {"Size": 1}}]})");
  REQUIRE(usage);
  REQUIRE(usage->containers.size() == 2);
  CHECK(usage->containers[0].bytes == 12);
  CHECK(usage->containers[1].bytes == 0);
  REQUIRE(usage->volumes.size() == 1);
  CHECK(usage->volumes[0].bytes == 34);
  CHECK(decode_disk_usage(R"({"Containers": null, "Volumes": []})")->containers.empty());
  CHECK_FALSE(decode_disk_usage("{}"));
  CHECK_FALSE(decode_disk_usage("[]"));
}

TEST_CASE("docker codec: a sandbox publishes ports, shares its IPC, and may do nothing else") {
  InstancePlan plan = a_plan();
  plan.gpus = {0, 3};
  plan.public_ports = {80};
  plan.restart_policy = "OnFailure";
  const json body = json::parse(encode_sandbox(plan, HostConfig()));
  CHECK(body == json::parse(R"({
    "Image": "spillway.dev/sandbox:2", "Entrypoint": ["/pause"], "Hostname": "web-0", "StopTimeout": 1,
    "Labels": {"spillway.dev/tag": "spw-a-b-1", "spillway.dev/role": "sandbox", "spillway.dev/pod": "team/web-0",
      "spillway.dev/containers": "main", "spillway.dev/parts": "main", "spillway.dev/gpus": "0,3", "spillway.dev/restart-policy": "OnFailure",
      "spillway.dev/price-micros": "2390000"},
    "ExposedPorts": {"80/tcp": {}},
    "HostConfig": {"PortBindings": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]}, "IpcMode": "shareable",
      "RestartPolicy": {"Name": "no"}, "AutoRemove": false, "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"],
      "ReadonlyRootfs": true, "LogConfig": {"Type": "none"}, "CpuShares": 2}})"));
}

TEST_CASE("docker codec: the hostname is what a kubelet gives") {
  model::ResolvedPod pod;
  const auto hostname = [&](const std::string& name) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->key.name = name;
    pod.spec = spec;
    return json::parse(encode_sandbox(make_plan(model::Placement(), pod, {}, base::Money()), HostConfig()))["Hostname"];
  };
  CHECK(hostname(std::string(62, 'a') + "-bc") == std::string(62, 'a'));
  CHECK(hostname("web.team") == "web.team");
  pod.hostname = "other";
  CHECK(hostname("web.team") == "other");
}

TEST_CASE("docker codec: a plain container takes all from its image") {
  CHECK(container_body(a_plan()) == json::parse(R"({
    "Image": "app:1", "Env": [], "StopTimeout": 45, "OpenStdin": false, "Tty": false,
    "Labels": {"spillway.dev/tag": "spw-a-b-1", "spillway.dev/role": "container", "spillway.dev/container": "main",
      "spillway.dev/part": "main", "spillway.dev/order": "0", "spillway.dev/pod": "team/web-0"},
    "HostConfig": {"NetworkMode": "container:5a", "IpcMode": "container:5a", "RestartPolicy": {"Name": "no"},
      "AutoRemove": false, "CpuShares": 2,
      "LogConfig": {"Type": "local", "Config": {"max-size": "429496729", "max-file": "5"}}}})"));
}

TEST_CASE("docker codec: command, args, env and working directory") {
  InstancePlan plan = a_plan();
  model::ResolvedContainer& main = plan.containers[0];
  main.command = {"sh", "-c"};
  main.env = {{"B", "2"}, {"A", ""}, {"B", "ünï\n\"$=\""}};
  main.working_dir = "/srv";
  json body = container_body(plan);
  CHECK(body["Entrypoint"] == json({"sh", "-c"}));
  CHECK_FALSE(body.contains("Cmd"));  // the engine then clears the image's
  CHECK(body["Env"] == json({"B=2", "A=", "B=ünï\n\"$=\""}));
  CHECK(body["WorkingDir"] == "/srv");
  main.command.clear();
  main.args = {"x", ""};
  body = container_body(plan);
  CHECK_FALSE(body.contains("Entrypoint"));
  CHECK(body["Cmd"] == json({"x", ""}));
}

TEST_CASE("docker codec: resources as a kubelet sets them") {
  struct Row {
    std::int64_t request, limit, shares, quota;
  };
  for (const Row& row : {Row{0, 0, 2, 0}, Row{1000, 0, 1024, 0}, Row{500, 2000, 512, 200'000}, Row{1, 1, 2, 1000},
                         Row{64'000, 64'000, 65'536, 6'400'000}}) {
    INFO(row.request << " " << row.limit);
    InstancePlan plan = a_plan();
    plan.containers[0].resources.cpu_request_milli = row.request;
    plan.containers[0].resources.cpu_limit_milli = row.limit;
    plan.containers[0].resources.memory_limit = row.limit * 1024;
    const json host_config = container_body(plan)["HostConfig"];
    CHECK(host_config["CpuShares"] == row.shares);
    CHECK(host_config.value("CpuQuota", 0) == row.quota);
    CHECK(host_config.value("CpuPeriod", 0) == (row.quota == 0 ? 0 : 100'000));
    CHECK(host_config.value("Memory", 0) == row.limit * 1024);
    CHECK(host_config.value("MemorySwap", 0) == row.limit * 1024);
  }
}

TEST_CASE("docker codec: GPUs by device request") {
  HostConfig host;
  host.gpu_count = 4;
  InstancePlan plan = a_plan();
  plan.containers[0].env = {{"NVIDIA_VISIBLE_DEVICES", "all"}};
  plan.gpus = {1, 3};
  const json body = container_body(plan, host);
  CHECK(body["HostConfig"]["DeviceRequests"] ==
        json::parse(R"([{"Driver": "nvidia", "DeviceIDs": ["1", "3"], "Capabilities": [["gpu"]]}])"));
  CHECK(body["Env"] == json({"NVIDIA_VISIBLE_DEVICES=all"}));  // the engine adds its own after it
  plan.gpus.clear();
  CHECK_FALSE(container_body(plan, host)["HostConfig"].contains("DeviceRequests"));
  CHECK(container_body(plan, host)["Env"] == json({"NVIDIA_VISIBLE_DEVICES=void"}));  // the default runtime may read it
}

TEST_CASE("docker codec: GPUs by environment, and no more than were bought") {
  HostConfig host;
  host.gpu_count = 4;
  host.gpu_request = GpuRequest::kEnvironment;
  InstancePlan plan = a_plan();
  plan.containers[0].env = {{"A", "1"}, {"NVIDIA_VISIBLE_DEVICES", "all"}};
  plan.gpus = {1, 3};
  CHECK(container_body(plan, host)["Env"] == json({"A=1", "NVIDIA_VISIBLE_DEVICES=1,3"}));
  CHECK_FALSE(container_body(plan, host)["HostConfig"].contains("DeviceRequests"));
  plan.gpus.clear();
  CHECK(container_body(plan, host)["Env"] == json({"A=1", "NVIDIA_VISIBLE_DEVICES=void"}));
  host.gpu_environment_variable = "CUDA_VISIBLE_DEVICES";
  CHECK(container_body(plan, host)["Env"] == json({"A=1", "NVIDIA_VISIBLE_DEVICES=all", "CUDA_VISIBLE_DEVICES=-1"}));
  host.gpu_count = 0;
  CHECK(container_body(plan, host)["Env"] == json({"A=1", "NVIDIA_VISIBLE_DEVICES=all"}));
}

TEST_CASE("docker codec: a plan remembers what a later daemon must know") {
  model::Placement placement;
  placement.tag = base::InstanceTag("spw-a-b-1");
  model::ResolvedPod pod;
  auto spec = std::make_shared<model::PodSpec>();
  spec->key.ns = "team";
  spec->key.name = "web-0";
  spec->restart_policy = model::RestartPolicy::kNever;
  spec->grace = std::chrono::seconds(7);
  pod.spec = spec;
  pod.public_ports = {80};
  pod.containers.resize(1);
  const InstancePlan plan = make_plan(placement, pod, {2}, base::Money::from_micros(5));
  CHECK(plan.tag == "spw-a-b-1");
  CHECK(plan.pod == "team/web-0");
  CHECK(plan.restart_policy == "Never");
  CHECK(plan.grace == std::chrono::seconds(7));
  CHECK(plan.gpus == std::vector<int>{2});
  CHECK(plan.containers.size() == 1);
}

TEST_CASE("docker codec: a restart rule of one container leaves the pod's word uncertain, but a sidecar's does not") {
  model::ResolvedPod pod;
  auto spec = std::make_shared<model::PodSpec>();
  spec->restart_policy = model::RestartPolicy::kNever;
  model::ContainerSpec init;
  const auto policy = [&](const model::ContainerSpec& main) {
    model::PodExtras extras;
    extras.init_containers.edit() = {init};
    spec->extras = extras;
    spec->containers.edit() = {main};
    pod.spec = spec;
    return make_plan(model::Placement(), pod, {}, base::Money()).restart_policy;
  };
  CHECK(policy(model::ContainerSpec()) == "Never");
  init.restart_policy = model::RestartPolicy::kAlways;
  CHECK(policy(model::ContainerSpec()) == "Never");
  init.restart_policy = model::RestartPolicy::kOnFailure;
  CHECK(policy(model::ContainerSpec()) == "ByContainer");
  init.restart_policy.reset();
  model::ContainerSpec main;
  main.restart_rules.emplace_back();
  CHECK(policy(main) == "ByContainer");
}

TEST_CASE("docker codec: the filter of a listing") {
  CHECK(encode_label_filter("spillway.dev/tag=x") == "filters=%7B%22label%22%3A%5B%22spillway.dev%2Ftag%3Dx%22%5D%7D");
}
