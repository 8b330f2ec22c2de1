// What a daemon does about writes that fail, are slow, or are cut off by its death.
#include <chrono>
#include <map>

#include <catch2/catch.hpp>

#include "test/support/faulty_kube_api.hpp"
#include "test/unit/daemon/daemon_world.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using test::World;
namespace fake = providers::fake;

namespace {

bool is_status_patch(const kube::KubeRequest& request) {
  return request.method == net::Method::kPatch && request.target.ends_with("/pods/web/status");
}

/// Names what is to be bought, and no instance yet.
bool is_intent(const std::string& body) {
  return body.find("state.spillway.dev/placement") != std::string::npos &&
         body.find(R"(\"instance\")") == std::string::npos;
}

class Faults final : public test::ApiFaults {
 public:
  test::RequestFault on_request(const kube::KubeRequest& request) override {
    return is_status_patch(request) && !is_intent(request.body) ? on_status : test::RequestFault();
  }
  test::WatchFault on_watch_bytes(const kube::KubeRequest& opened, std::string_view) override {
    test::WatchFault fault;
    if (pods_are_silent && opened.target.starts_with("/api/v1/pods")) fault.kind = test::WatchFault::Kind::kSilence;
    return fault;
  }
  test::RequestFault on_status;  // but for intents
  bool pods_are_silent = false;
};

/// Looks at the status patches that pass.
class Watcher final : public kube::KubeApi {
 public:
  explicit Watcher(kube::KubeApi& inner) : inner_(inner) {}

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    if (!is_status_patch(request)) co_return co_await inner_.send(std::move(request), deadline);
    bodies.push_back(request.body);
    most_at_once = std::max(most_at_once, ++under_way);
    auto answer = co_await inner_.send(std::move(request), deadline);
    --under_way;
    co_return answer;
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    return inner_.watch(std::move(request), deadline);
  }

  int under_way = 0;
  int most_at_once = 0;
  std::vector<std::string> bodies;

 private:
  kube::KubeApi& inner_;
};

void order(nlohmann::json& pod, const char* key, const char* value) {
  pod["metadata"]["annotations"][std::string("fake.spillway.dev/") + key] = value;
}

/// A world with a way to its API server on which things go wrong.
struct FaultyWorld : World {
  FaultyWorld() { way = &watcher; }
  ~FaultyWorld() { crash(); }
  Faults faults;
  test::FaultyKubeApi faulty{api, faults, reactor.timers};
  Watcher watcher{faulty};
};

}  // namespace

TEST_CASE("a status that was rejected for a while is written in the end, whatever wakes the pod before") {
  FaultyWorld world;
  world.start();
  world.create_pod([](nlohmann::json& pod) {
    order(pod, "run-for", "1s");
    order(pod, "exit-code", "1");
  });
  REQUIRE(world.until("Running", 30s));
  // It is tried again after a minute; the container's restart wakes the pod after ten seconds.
  world.faults.on_status.refusal = test::RequestFault::Refusal(422, "Invalid");
  world.reactor.run_for(15s);
  world.faults.on_status.refusal.reset();
  world.api.delete_pod("team-a", "web", 5);
  CHECK(world.until("gone", 2min));
}

TEST_CASE("of one pod one write is under way at a time, and an intent waits its turn") {
  FaultyWorld world;
  // Longer than the pause after which an image is tried again.
  world.faults.on_status.before = 20s;
  world.start();
  world.create_pod([](nlohmann::json& pod) { order(pod, "image-error", "not found"); });
  const auto intents = [&] { return std::ranges::count_if(world.watcher.bodies, is_intent); };
  REQUIRE(world.reactor.run_until([&] { return intents() >= 3; }, 10min));
  CHECK(world.watcher.most_at_once == 1);
}

TEST_CASE("an intent that waits its turn is not written for a pod that is deleted meanwhile") {
  FaultyWorld world;
  world.faults.on_status.before = 20s;
  world.start();
  world.create_pod([](nlohmann::json& pod) { order(pod, "image-error", "not found"); });
  // The status ImagePullBackOff is under way; ten seconds later the next intent waits for it.
  REQUIRE(world.reactor.run_until([&] { return world.watcher.bodies.size() == 2; }, 30s));
  world.reactor.run_for(15s);
  world.api.delete_pod("team-a", "web", 30);
  REQUIRE(world.until("gone", 2min));
  CHECK(std::ranges::count_if(world.watcher.bodies, is_intent) == 1);
}

TEST_CASE("what only a list shows is not taken for an echo of our own write") {
  FaultyWorld world;
  world.start();
  world.create_pod([](nlohmann::json& pod) {
    pod["spec"]["readinessGates"] = nlohmann::json::array({{{"conditionType", "example.com/open"}}});
    order(pod, "run-for", "5s");
    order(pod, "exit-code", "1");
  });
  REQUIRE(world.until("Running", 30s));
  world.faults.pods_are_silent = true;
  kube::KubeRequest open;
  open.method = net::Method::kPatch;
  open.target = std::string(test::kPods) + "/web/status";
  open.content_type = "application/strategic-merge-patch+json";
  open.body = R"({"status":{"conditions":[{"type":"example.com/open","status":"True"}]}})";
  REQUIRE(world.api.exchange(open).code == 200);
  // The container ends meanwhile, and the daemon writes it down: the newest version of the pod is its own.
  const size_t written = world.watcher.bodies.size();
  REQUIRE(world.reactor.run_until([&] { return world.watcher.bodies.size() > written; }, 10s));
  world.api.compact();
  world.faults.pods_are_silent = false;
  const auto ready = [&] {
    for (const auto& condition : world.pod()["status"]["conditions"]) {
      if (condition["type"] == "Ready") return condition["status"] == "True";
    }
    return false;
  };
  CHECK(world.reactor.run_until(ready, 2min));
}

TEST_CASE("what somebody wrote is not overwritten by who has not seen it yet: a pod that was ended stays so") {
  FaultyWorld world;
  world.start();
  world.create_pod([](nlohmann::json& pod) { order(pod, "boot-time", "3s"); });
  REQUIRE(world.reactor.run_until([&] { return world.alive() == 1; }, 30s));
  world.faults.pods_are_silent = true;
  kube::KubeRequest evict;
  evict.method = net::Method::kPatch;
  evict.target = std::string(test::kPods) + "/web/status";
  evict.content_type = "application/strategic-merge-patch+json";
  evict.body = R"({"status":{"phase":"Failed","reason":"Evicted"}})";
  REQUIRE(world.api.exchange(evict).code == 200);
  // It boots, and Running would be written now. The conflict tells of the end, and what was bought is given back.
  CHECK(world.reactor.run_until([&] { return world.alive() == 0; }, 1min));
  CHECK(world.pod()["status"]["phase"] == "Failed");
  CHECK(world.pod()["status"]["reason"] == "Evicted");
}

TEST_CASE("a conflict that nobody caused delays a status and loses nothing") {
  FaultyWorld world;
  world.start();
  world.create_pod([](nlohmann::json& pod) { order(pod, "boot-time", "1s"); });
  world.faults.on_status.refusal = test::RequestFault::Refusal(409, "Conflict");
  world.reactor.run_for(10s);
  CHECK(world.watcher.bodies.size() < 10);
  world.faults.on_status.refusal.reset();
  CHECK(world.until("Running", 30s));
}

TEST_CASE("a deletion that the conflict of a write shows is known before the watch tells of it") {
  FaultyWorld world;
  world.start();
  world.create_pod([](nlohmann::json& pod) {
    order(pod, "boot-time", "3s");
    order(pod, "image-error", "not found");
  });
  REQUIRE(world.reactor.run_until([&] { return world.alive() == 1; }, 30s));
  world.faults.pods_are_silent = true;
  world.api.delete_pod("team-a", "web", 30);
  // The next status, ImagePullBackOff, is written at a version that contains the deletion: nothing is bought again.
  REQUIRE(world.until("gone", 1min));
  CHECK(world.bought() == 1);
}

TEST_CASE("a late answer about an earlier attempt does not end the current one") {
  World world;
  world.price_cap = base::Money::from_dollars("1");
  fake::FaultRule rule;
  rule.effect = fake::Effect::kOvercharge;
  rule.percent = 1000;
  REQUIRE(world.cloud.add_fault(rule, world.reactor.timers.now()));
  rule.effect = fake::Effect::kStuckTermination;
  rule.duration = 10s;
  REQUIRE(world.cloud.add_fault(rule, world.reactor.timers.now()));
  // Several of them are under way when the first one says "not found".
  rule.effect = fake::Effect::kDelay;
  rule.call = fake::Call::kGet;
  rule.duration = 4s;
  REQUIRE(world.cloud.add_fault(rule, world.reactor.timers.now()));
  world.start();
  world.create_pod([](nlohmann::json& pod) { order(pod, "boot-time", "1m"); });
  size_t most = 0;
  REQUIRE(world.reactor.run_until(
      [&] {
        most = std::max(most, world.alive());
        return world.bought() >= 3;
      },
      5min));
  CHECK(most == 1);
}

TEST_CASE("the price cap holds also for what a former daemon bought") {
  World world;
  world.price_cap = base::Money::from_dollars("1");
  fake::FaultRule overcharge;
  overcharge.effect = fake::Effect::kOvercharge;
  overcharge.percent = 1000;
  overcharge.times = 1;
  REQUIRE(world.cloud.add_fault(overcharge, world.reactor.timers.now()));
  fake::FaultRule slow;
  slow.effect = fake::Effect::kDelay;
  slow.call = fake::Call::kCreate;
  slow.duration = 5s;
  slow.times = 1;
  REQUIRE(world.cloud.add_fault(slow, world.reactor.timers.now()));
  world.start();
  world.create_pod();
  // Dead before the answer.
  REQUIRE(world.reactor.run_until([&] { return world.alive() == 1; }, 30s));
  world.crash();
  world.start();
  REQUIRE(world.until("Running", 5min));
  CHECK(world.alive() == 1);
  const fake::Audit audit = world.cloud.audit(world.reactor.timers.now());
  REQUIRE(audit.instances.size() == 2);
  CHECK(audit.instances[0].ended_by == "terminate");
  CHECK(audit.instances[1].ended_by.empty());
}
