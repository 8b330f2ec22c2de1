#include "providers/docker/instance_view.hpp"

#include <catch2/catch.hpp>

#include "test/support/says.hpp"

using namespace spillway;
using namespace spillway::providers::docker;
using model::ContainerState;
using model::InstanceState;

namespace {

const base::WallTime kStart = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29);

/// One tag as a listing and inspections show it.
struct Scene {
  explicit Scene(const std::string& policy = "Always", const std::string& names = "main",
                 const std::string& parts = "") {
    ContainerEntry& sandbox = entries.emplace_back();
    sandbox.id = "s";
    sandbox.state = "running";
    sandbox.status = "Up 5 seconds";
    sandbox.created = kStart;
    sandbox.labels = {{"spillway.dev/tag", "t"},
                      {"spillway.dev/role", "sandbox"},
                      {"spillway.dev/containers", names},
                      {"spillway.dev/parts", parts},
                      {"spillway.dev/restart-policy", policy},
                      {"spillway.dev/price-micros", "2390000"}};
  }

  ContainerFacts& add(const std::string& name, const std::string& state) {
    ContainerEntry& entry = entries.emplace_back();
    entry.id = "id-" + name;
    entry.state = state;
    entry.image_id = "sha256:1";
    entry.labels = {{"spillway.dev/tag", "t"}, {"spillway.dev/role", "container"}, {"spillway.dev/container", name}};
    ContainerFacts& known = facts["id-" + name];
    known.id = entry.id;
    known.state = state;
    if (state != "created") known.started_at = kStart;
    if (state == "exited") known.finished_at = kStart + std::chrono::seconds(1);
    return known;
  }

  model::Instance view() const {
    const InstanceGroups groups = group_by_tag(entries);
    const auto group = groups.find("t");
    ViewContext context;
    context.provider = base::ProviderName("p");
    context.host = "box";
    context.container_scheme = "docker";
    context.listed_at = listed_at;
    return to_instance(context, "t", group == groups.end() ? InstanceGroup() : group->second, facts, &progress);
  }
  bool ended() const {
    const InstanceGroups groups = group_by_tag(entries);
    return has_ended_for_good(groups.at("t"), facts);
  }

  std::vector<ContainerEntry> entries;
  FactsMap facts;
  Progress progress;
  base::TimePoint listed_at{std::chrono::hours(1)};
};

}  // namespace

TEST_CASE("instance view: a sandbox without containers is pending, whoever is at work") {
  Scene scene;
  scene.progress.active = true;
  scene.progress.activity = "pulling image x";
  model::Instance instance = scene.view();
  CHECK(instance.state == InstanceState::kPending);
  CHECK(instance.message == "pulling image x");
  REQUIRE(instance.containers.size() == 1);
  CHECK(instance.containers[0].name == "main");
  CHECK(instance.containers[0].state == ContainerState::kWaiting);
  CHECK(instance.containers[0].reason == "ContainerCreating");
  scene.progress.active = false;
  CHECK(scene.view().state == InstanceState::kPending);
}

TEST_CASE("instance view: identity, price and billing come from the sandbox") {
  Scene scene;
  scene.add("main", "running");
  model::InstancePort port;
  port.container_port = 80;
  port.public_port = 40080;
  port.host = "127.0.0.1";
  scene.entries[0].ports.push_back(port);
  const model::Instance instance = scene.view();
  CHECK(instance.ref.provider.str() == "p");
  CHECK(instance.ref.id.str() == "box/t");
  CHECK(instance.tag.str() == "t");
  CHECK(instance.state == InstanceState::kRunning);
  CHECK(instance.price_per_hour == base::Money::from_micros(2'390'000));
  CHECK(instance.billing.from == kStart);
  CHECK(instance.created_at == kStart);
  CHECK(instance.address.empty());
  REQUIRE(instance.ports.size() == 1);
  CHECK(instance.ports[0].public_port == 40080);
  CHECK(instance.containers[0].container_id == "docker://id-main");
  CHECK(instance.containers[0].image_id == "sha256:1");
  CHECK(instance.containers[0].started_at == kStart);
  CHECK_FALSE(instance.containers[0].exit_code);
  CHECK_FALSE(instance.containers[0].finished_at);
}

TEST_CASE("instance view: exits have code, times and cause") {
  Scene scene;
  ContainerFacts& facts = scene.add("main", "exited");
  facts.exit_code = 137;
  facts.oom_killed = true;
  model::Instance instance = scene.view();
  CHECK(instance.state == InstanceState::kExited);
  CHECK(instance.containers[0].state == ContainerState::kExited);
  CHECK(instance.containers[0].exit_code == 137);
  CHECK(instance.containers[0].oom_killed);
  CHECK(instance.containers[0].reason.empty());  // core knows the words
  CHECK(instance.containers[0].finished_at == kStart + std::chrono::seconds(1));
}

TEST_CASE("instance view: a start in vain is an exit with the engine's code and words") {
  Scene scene;
  ContainerFacts& facts = scene.add("main", "created");
  CHECK(scene.view().state == InstanceState::kPending);  // created, not started yet
  facts.error = "exec: \"x\": executable file not found in $PATH";
  facts.exit_code = 127;
  const model::Instance instance = scene.view();
  CHECK(instance.state == InstanceState::kExited);
  CHECK(instance.containers[0].exit_code == 127);
  CHECK(instance.containers[0].reason == "ContainerCannotRun");
  CHECK(instance.containers[0].message == facts.error);
}

TEST_CASE("instance view: a failure before any start fails the instance") {
  Scene scene;
  StartFailure failure;
  failure.reason = "ErrImagePull";
  failure.message = "failed to pull image \"x\": no";
  failure.image_error = true;
  scene.progress.failures["main"] = failure;
  model::Instance instance = scene.view();
  CHECK(instance.state == InstanceState::kFailed);
  CHECK(instance.image_error);
  CHECK(instance.message == "failed to pull image \"x\": no");
  CHECK(instance.containers[0].reason == "ErrImagePull");
  CHECK(instance.containers[0].message == "failed to pull image \"x\": no");

  failure.reason = "CreateContainerError";
  failure.message = "Minimum memory limit allowed is 6MB";
  failure.image_error = false;
  scene.progress.failures["main"] = failure;
  instance = scene.view();
  CHECK(instance.state == InstanceState::kFailed);
  CHECK_FALSE(instance.image_error);
  CHECK(instance.message == "CreateContainerError: Minimum memory limit allowed is 6MB");
}

TEST_CASE("instance view: without its sandbox an instance is lost, unless it had ended for good") {
  Scene scene("Never");
  scene.add("main", "running");
  SECTION("the sandbox ended") {
    scene.entries[0].state = "exited";
    scene.entries[0].status = "Exited (137) 2 seconds ago";
    CHECK(scene.view().state == InstanceState::kFailed);
    CHECK(test::says(scene.view().message, "Exited (137)"));
  }
  SECTION("the sandbox is gone") {
    scene.entries.erase(scene.entries.begin());
    CHECK(scene.view().state == InstanceState::kFailed);
    CHECK(scene.view().containers.at(0).name == "main");
  }
  SECTION("the pod had ended before the machine was restarted") {
    scene.entries[0].state = "exited";
    scene.entries[1].state = "exited";
    scene.facts.at("id-main").state = "exited";
    CHECK(scene.view().state == InstanceState::kExited);
  }
}

TEST_CASE("instance view: a container that was there and is gone was removed by somebody") {
  Scene scene;
  scene.progress.seen["main"] = scene.listed_at - std::chrono::seconds(1);
  CHECK(scene.view().state == InstanceState::kFailed);
  CHECK(scene.view().message == "container main was removed from the engine");
  scene.progress.ending = true;
  CHECK(scene.view().state == InstanceState::kTerminating);
}

TEST_CASE("instance view: a container that came into being after the listing was asked for is not gone") {
  Scene scene;
  scene.progress.active = true;
  scene.progress.seen["main"] = scene.listed_at + std::chrono::milliseconds(1);
  CHECK(scene.view().state == InstanceState::kPending);
}

TEST_CASE("instance view: several containers") {
  Scene scene("Always", "main,side");
  scene.add("main", "exited");
  CHECK(scene.view().state == InstanceState::kRunning);  // one has ended, the other is still to come
  scene.add("side", "running");
  CHECK(scene.view().state == InstanceState::kRunning);
  scene.entries[2].state = "exited";
  scene.facts.at("id-side").state = "exited";
  CHECK(scene.view().state == InstanceState::kExited);
}

TEST_CASE("instance view: what has ended for good holds nothing") {
  struct Row {
    const char* policy;
    int exit_code;
    bool ended;
  };
  for (const Row& row : {Row{"Always", 0, false}, Row{"Never", 0, true}, Row{"Never", 3, true},
                         Row{"OnFailure", 0, true}, Row{"OnFailure", 3, false}, Row{"", 0, false}}) {
    INFO(row.policy << " " << row.exit_code);
    Scene scene(row.policy);
    CHECK_FALSE(scene.ended());
    scene.add("main", "exited").exit_code = row.exit_code;
    CHECK(scene.ended() == row.ended);
    // Listed as started again before it was inspected.
    for (const char* const state : {"running", "paused", "restarting"}) {
      scene.entries[1].state = state;
      CHECK_FALSE(scene.ended());
    }
  }
  Scene unknown("Never");
  unknown.add("main", "exited");
  unknown.facts.clear();
  CHECK_FALSE(unknown.ended());
  Scene half("Never", "main,side");
  half.add("main", "exited");
  CHECK_FALSE(half.ended());
}

TEST_CASE("instance view: the parts of a pod decide whether it has ended for good") {
  Scene scene("Never", "setup,proxy,main", "init,sidecar,main");
  ContainerFacts& setup = scene.add("setup", "exited");
  CHECK_FALSE(scene.ended());  // the others are still to come
  scene.add("proxy", "created");
  ContainerFacts& main = scene.add("main", "created");
  CHECK_FALSE(scene.ended());
  CHECK(scene.view().state == InstanceState::kRunning);
  SECTION("an init container that failed is the end") {
    setup.exit_code = 3;
    CHECK(scene.ended());
    CHECK(scene.view().state == InstanceState::kExited);
    scene.entries[0].labels["spillway.dev/restart-policy"] = "OnFailure";
    CHECK_FALSE(scene.ended());
  }
  SECTION("a sidecar's exit does not matter, but that it runs does") {
    main.state = scene.entries[3].state = "exited";
    CHECK(scene.ended());
    scene.facts.at("id-proxy").state = scene.entries[2].state = "running";
    CHECK_FALSE(scene.ended());
    CHECK(scene.view().state == InstanceState::kRunning);
    scene.facts.at("id-proxy").state = scene.entries[2].state = "exited";
    scene.facts.at("id-proxy").exit_code = 137;
    CHECK(scene.ended());
  }
}

TEST_CASE("instance view: what waits for an order says that it exists") {
  Scene scene("Never", "setup,main", "init,main");
  scene.add("setup", "running");
  model::Instance instance = scene.view();
  CHECK_FALSE(instance.containers.at(1).created);
  CHECK(instance.containers[1].reason == "PodInitializing");
  scene.add("main", "created");
  scene.progress.active = true;  // the bring-up may start it
  CHECK_FALSE(scene.view().containers.at(1).created);
  scene.progress.active = false;
  instance = scene.view();
  CHECK(instance.containers[1].created);
  CHECK(instance.containers[1].state == ContainerState::kWaiting);
  CHECK(instance.containers[1].container_id == "docker://id-main");
  CHECK_FALSE(instance.containers[0].created);
}

TEST_CASE("instance view: sidecars are stopped last, in reverse order") {
  Scene scene("Always", "a,setup,b,main,side", "sidecar,init,sidecar,main,main");
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"a", "sidecar"}, {"setup", "init"}, {"b", "sidecar"}, {"main", "main"}, {"side", "main"}};
  for (size_t i = 0; i < parts.size(); ++i) {
    scene.add(parts[i].first, parts[i].first == "side" ? "exited" : "running");
    scene.entries.back().labels["spillway.dev/part"] = parts[i].second;
    scene.entries.back().labels["spillway.dev/order"] = std::to_string(i);
  }
  std::vector<std::vector<std::string>> order;
  const InstanceGroups groups = group_by_tag(scene.entries);
  for (const auto& batch : stop_order(groups.at("t"))) {
    order.emplace_back();
    for (const ContainerEntry* const entry : batch) order.back().push_back(entry->id);
  }
  CHECK(order == std::vector<std::vector<std::string>>{{"id-setup", "id-main"}, {"id-b"}, {"id-a"}});
}

TEST_CASE("instance view: ids") {
  CHECK(to_instance_id("box", "spw-a-b-1").str() == "box/spw-a-b-1");
  const auto parsed = from_instance_id(base::InstanceId("box/spw-a-b-1"));
  REQUIRE(parsed);
  CHECK(parsed->host == "box");
  CHECK(parsed->tag == "spw-a-b-1");
  for (const char* const bad : {"", "box", "/tag", "box/"}) CHECK_FALSE(from_instance_id(base::InstanceId(bad)));
}
