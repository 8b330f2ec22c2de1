// What the simulator relies on in the model beyond what the honesty script shows: time, history, hooks.
#include "test/support/api_server_model.hpp"

#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using nlohmann::json;

namespace {

constexpr const char* kPods = "/api/v1/namespaces/team-a/pods";

json make_pod(const std::string& name, const std::string& node = "burst") {
  json spec{{"containers", {{{"name", "main"}, {"image", "app:1"}}}}};
  if (!node.empty()) spec["nodeName"] = node;
  return {{"metadata", {{"name", name}}}, {"spec", spec}};
}

kube::KubeRequest make_request(net::Method method, std::string target, const json& body = nullptr,
                               std::string content_type = "application/json") {
  kube::KubeRequest request;
  request.method = method;
  request.target = std::move(target);
  if (!body.is_null()) request.body = body.dump();
  request.content_type = std::move(content_type);
  return request;
}

class World {
 public:
  async::ByteStreamPtr open(const std::string& query) {
    auto stream = reactor.run(api.watch(make_request(net::Method::kGet, "/api/v1/pods?watch=true&" + query), kNever));
    REQUIRE(stream);
    return std::move(*stream);
  }
  /// The next event; null when there is none for now, a string for the end.
  json next(async::ByteStream& stream, base::Duration patience = 0s) {
    auto bytes = reactor.run(stream.read(reactor.timers.now() + patience));
    if (!bytes) return nullptr;
    return bytes->empty() ? json("end") : json::parse(*bytes);
  }
  json patch_status(const std::string& name, const json& body) {
    const auto answer = api.exchange(make_request(net::Method::kPatch, std::string(kPods) + "/" + name + "/status",
                                                  body, "application/strategic-merge-patch+json"));
    return json{{"code", answer.code}, {"body", json::parse(answer.body)}};
  }

  static constexpr base::TimePoint kNever = base::TimePoint::max();
  test::VirtualReactor reactor;
  test::ApiServerModel api{reactor.timers};
};

std::string label(const json& event) {
  if (!event.is_object()) return event.dump();
  return event["type"].get<std::string>() + " " + event["object"]["metadata"].value("name", "");
}

}  // namespace

TEST_CASE("a watch by node sees a pod come with its binding and go with its deletion") {
  World world;
  auto stream =
      world.open("resourceVersion=" + std::to_string(world.api.version()) + "&fieldSelector=spec.nodeName%3Dburst");
  world.api.create(kPods, make_pod("web", ""));
  CHECK(world.next(*stream).is_null());
  const auto bound =
      world.api.exchange(make_request(net::Method::kPost, std::string(kPods) + "/web/binding",
                                      {{"metadata", {{"name", "web"}}}, {"target", {{"name", "burst"}}}}));
  CHECK(bound.code == 201);
  CHECK(label(world.next(*stream)) == "ADDED web");
  world.api.delete_pod("team-a", "web", 0);
  const json going = world.next(*stream);
  CHECK(label(going) == "MODIFIED web");
  CHECK(going["object"]["metadata"]["deletionGracePeriodSeconds"] == 0);
  CHECK(label(world.next(*stream)) == "DELETED web");
  CHECK(world.next(*stream).is_null());
}

TEST_CASE("bookmarks come each minute and before the end, and never before what they cover") {
  World world;
  world.api.watch_lag = [] { return 90s; };
  auto stream =
      world.open("allowWatchBookmarks=true&timeoutSeconds=200&resourceVersion=" + std::to_string(world.api.version()));
  world.api.create(kPods, make_pod("web"));
  const base::TimePoint begun = world.reactor.timers.now();
  const auto elapsed = [&] { return world.reactor.timers.now() - begun; };
  CHECK(label(world.next(*stream, 100s)) == "ADDED web");
  CHECK(elapsed() == 90s);
  const json bookmark = world.next(*stream, 100s);
  CHECK(bookmark["type"] == "BOOKMARK");
  CHECK(bookmark["object"]["metadata"]["resourceVersion"] == std::to_string(world.api.version()));
  CHECK(elapsed() == 120s);
  CHECK(world.next(*stream, 100s)["type"] == "BOOKMARK");
  CHECK(elapsed() == 180s);
  CHECK(world.next(*stream, 100s)["type"] == "BOOKMARK");
  CHECK(elapsed() == 198s);
  CHECK(world.next(*stream, 100s) == "end");
  CHECK(elapsed() == 200s);
}

TEST_CASE("what is older than a compaction is answered 410, open watches go on") {
  World world;
  const std::string before = std::to_string(world.api.version());
  auto open = world.open("resourceVersion=" + before);
  for (const char* name : {"a", "b", "c"}) world.api.create(kPods, make_pod(name));
  const auto page = json::parse(world.api.exchange(make_request(net::Method::kGet, "/api/v1/pods?limit=1")).body);
  CHECK(page["metadata"]["remainingItemCount"] == 2);
  const std::string more = "/api/v1/pods?limit=1&continue=" + page["metadata"]["continue"].get<std::string>();
  world.api.delete_pod("team-a", "b", 0);

  // A page shows the state of the first one, in which b still stood.
  const auto second = json::parse(world.api.exchange(make_request(net::Method::kGet, more)).body);
  CHECK(second["items"][0]["metadata"]["name"] == "b");
  CHECK(second["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]);

  world.api.compact();
  CHECK(label(world.next(*open)) == "ADDED a");
  auto late = world.open("resourceVersion=" + before);
  const json error = world.next(*late);
  CHECK(error["type"] == "ERROR");
  CHECK(error["object"]["code"] == 410);
  CHECK(world.next(*late) == "end");
  const auto expired = world.api.exchange(make_request(net::Method::kGet, more));
  CHECK(expired.code == 410);
  const std::string on = json::parse(expired.body)["metadata"]["continue"];
  const auto rest =
      json::parse(world.api.exchange(make_request(net::Method::kGet, "/api/v1/pods?continue=" + on)).body);
  REQUIRE(rest["items"].size() == 1);
  CHECK(rest["items"][0]["metadata"]["name"] == "c");
}

TEST_CASE("a history that is full answers 410 by itself") {
  World world;
  const std::string before = std::to_string(world.api.version());
  world.api.create(kPods, make_pod("web"));
  const auto count = [](size_t n) { return json{{"status", {{"message", std::to_string(n)}}}}; };
  for (size_t i = 0; i < test::api_model::Store::kHistory; ++i)
    REQUIRE(world.patch_status("web", count(i))["code"] == 200);
  auto late = world.open("resourceVersion=" + before);
  CHECK(world.next(*late)["type"] == "ERROR");
}

TEST_CASE("an observer sees what was and what is, and a write that changes nothing is none") {
  World world;
  std::vector<std::string> seen;
  world.api.observe([&](const test::api_model::Change& change) {
    if (change.resource->plural != "pods") return;
    const auto phase = [](const test::api_model::ObjectPtr& o) { return o ? o->status().value("phase", "") : "none"; };
    seen.push_back(phase(change.before) + ">" + phase(change.after));
  });
  world.api.create(kPods, make_pod("web"));
  const json running{{"status", {{"phase", "Running"}}}};
  const json first = world.patch_status("web", running);
  const json again = world.patch_status("web", running);
  CHECK(first["body"]["metadata"]["resourceVersion"] == again["body"]["metadata"]["resourceVersion"]);
  world.patch_status("web", {{"status", {{"phase", "Succeeded"}}}});
  // Terminal: nobody needs to be waited for.
  world.api.delete_pod("team-a", "web", 30);
  CHECK(seen == std::vector<std::string>{"none>Pending", "Pending>Running", "Running>Succeeded", "Succeeded>Succeeded",
                                         "Succeeded>none"});
}

TEST_CASE("finalizers hold an object until the last one is taken off") {
  World world;
  json pod = make_pod("web");
  pod["metadata"]["finalizers"] = {"example.com/hold"};
  world.api.create(kPods, pod);
  world.api.delete_pod("team-a", "web", 0);
  REQUIRE_FALSE(world.api.get(std::string(kPods) + "/web").is_null());
  CHECK(world.api.find(std::string(kPods) + "/web")->deleting());
  world.api.edit(std::string(kPods) + "/web", {{"metadata", {{"finalizers", nullptr}}}});
  CHECK(world.api.get(std::string(kPods) + "/web").is_null());
}

TEST_CASE("events are forgotten after an hour") {
  World world;
  const json event{{"metadata", {{"name", "e"}}}, {"involvedObject", {{"namespace", "team-a"}}}};
  world.api.create("/api/v1/namespaces/team-a/events", event);
  world.reactor.timers.advance_to(world.reactor.timers.now() + 1h);
  json next = event;
  next["metadata"]["name"] = "f";
  world.api.create("/api/v1/namespaces/team-a/events", next);
  CHECK(world.api.all("events").size() == 1);
}

TEST_CASE("the server ends all watches when it restarts") {
  World world;
  auto stream = world.open("resourceVersion=" + std::to_string(world.api.version()));
  CHECK(world.api.open_watches() == 1);
  world.api.end_watches();
  CHECK(world.next(*stream) == "end");
  stream.reset();
  CHECK(world.api.open_watches() == 0);
}
