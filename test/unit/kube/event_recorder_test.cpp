#include "vk-provider/kube/event_recorder.hpp"

#include <tuple>

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

namespace spillway::kube {
namespace {

using base::Error;
using base::ErrorKind;
using std::chrono::minutes;
using std::chrono::seconds;
using Json = nlohmann::json;

struct World {
  World() {
    api.handler = [this](const KubeRequest&) -> std::optional<base::Result<KubeResponse>> {
      if (!obedient) return std::nullopt;
      return KubeResponse();
    };
    tasks.spawn(recorder.run());
    reactor.settle();
  }
  ~World() { reactor.run(tasks.stop()); }

  Json body(size_t i) const { return Json::parse(api.requests.at(i).body); }
  bool shows(const std::string& line) const { return metrics.to_text().find(line) != std::string::npos; }

  test::VirtualReactor reactor;
  base::Metrics metrics;
  test::ScriptedKubeApi api{reactor.timers};
  Client client{api};
  EventRecorder recorder{client, reactor.timers, metrics, "host-1"};
  async::TaskGroup tasks{reactor.ctx.get_executor()};
  bool obedient = true;
};

EventTarget a_pod(const std::string& name = "trainer") {
  EventTarget target;
  target.ns = "team-a";
  target.name = name;
  target.uid = "uid-of-" + name;
  return target;
}

TEST_CASE("an event is written as the API server wants it") {
  World w;
  w.recorder.warning(a_pod(), "FailedScheduling", "no offer: \"sold out\"");
  CHECK(w.recorder.pending() == 1);
  w.reactor.settle();
  CHECK(w.recorder.pending() == 0);
  REQUIRE(w.api.requests.size() == 1);
  CHECK(w.api.requests[0].method == net::Method::kPost);
  CHECK(w.api.requests[0].target == "/api/v1/namespaces/team-a/events");
  Json body = w.body(0);
  CHECK(body["metadata"]["name"].get<std::string>().starts_with("trainer."));
  body["metadata"].erase("name");
  CHECK(body == Json::parse(R"({"kind":"Event","apiVersion":"v1","metadata":{"namespace":"team-a"},
    "involvedObject":{"kind":"Pod","namespace":"team-a","name":"trainer","uid":"uid-of-trainer","apiVersion":"v1"},
    "type":"Warning","reason":"FailedScheduling","message":"no offer: \"sold out\"",
    "source":{"component":"spillway","host":"host-1"},"reportingComponent":"spillway","reportingInstance":"host-1",
    "firstTimestamp":"2026-11-29T00:00:00Z","lastTimestamp":"2026-11-29T00:00:00Z","count":1})"));
}

TEST_CASE("events of a node stand in the namespace default") {
  World w;
  EventTarget node;
  node.kind = "Node";
  node.name = node.uid = "burst";
  w.recorder.normal(node, "NodeReady", "up");
  w.reactor.settle();
  CHECK(w.api.requests.at(0).target == "/api/v1/namespaces/default/events");
  CHECK_FALSE(w.body(0)["involvedObject"].contains("namespace"));
  CHECK(w.body(0)["type"] == "Normal");
}

TEST_CASE("the same event within ten minutes raises a count, later it is a new one") {
  World w;
  w.recorder.normal(a_pod(), "Pulling", "image");
  w.reactor.run_for(minutes(9));
  w.recorder.normal(a_pod(), "Pulling", "image");
  w.reactor.run_for(minutes(9));
  w.recorder.normal(a_pod(), "Pulling", "image");
  w.recorder.normal(a_pod("other"), "Pulling", "image");
  w.recorder.normal(a_pod(), "Pulling", "another image");
  w.reactor.settle();
  REQUIRE(w.api.requests.size() == 5);
  const std::string name = w.body(0)["metadata"]["name"];
  CHECK(w.api.requests[1].method == net::Method::kPatch);
  CHECK(w.api.requests[1].target == "/api/v1/namespaces/team-a/events/" + name);
  CHECK(w.api.requests[1].content_type == "application/strategic-merge-patch+json");
  CHECK(w.body(1) == Json::parse(R"({"count":2,"lastTimestamp":"2026-11-29T00:09:00Z","message":"image"})"));
  CHECK(w.body(2)["count"] == 3);
  CHECK(w.api.requests[3].method == net::Method::kPost);
  CHECK(w.api.requests[4].method == net::Method::kPost);
  w.reactor.run_for(minutes(10));
  w.recorder.normal(a_pod(), "Pulling", "image");
  w.reactor.settle();
  REQUIRE(w.api.requests.size() == 6);
  CHECK(w.api.requests[5].method == net::Method::kPost);
  CHECK(w.body(5)["count"] == 1);
  CHECK(w.body(5)["metadata"]["name"] != name);
}

TEST_CASE("what happens again before it was sent is one request") {
  World w;
  for (int i = 0; i < 5; ++i) w.recorder.normal(a_pod(), "Pulling", "image");
  CHECK(w.recorder.pending() == 1);
  w.reactor.settle();
  REQUIRE(w.api.requests.size() == 1);
  CHECK(w.body(0)["count"] == 5);
}

TEST_CASE("one object may say 25 new things at a burst, then one per five minutes") {
  World w;
  for (int i = 0; i < 40; ++i) w.recorder.normal(a_pod(), "Thing", std::to_string(i));
  w.recorder.normal(a_pod("other"), "Thing", "0");
  w.reactor.settle();
  CHECK(w.api.requests.size() == 26);
  CHECK(w.shows("spillway_events_total{outcome=\"dropped\"} 15"));
  CHECK(w.shows("spillway_events_total{outcome=\"sent\"} 26"));
}

TEST_CASE("an API server that is away does not lose events, one that refuses does") {
  World w;
  w.obedient = false;
  for (int i = 0; i < 4; ++i) w.api.fail(Error(ErrorKind::kUnavailable, "away"));
  w.api.answer("{}");
  w.api.fail(Error(ErrorKind::kPermission, "namespace is being terminated"));
  w.api.answer("{}");
  w.recorder.normal(a_pod(), "A", "1");
  w.recorder.normal(a_pod(), "B", "2");
  w.recorder.normal(a_pod(), "C", "3");
  w.reactor.settle();
  CHECK(w.recorder.pending() == 3);
  w.reactor.run_for(seconds(20));
  CHECK(w.recorder.pending() == 0);
  REQUIRE(w.api.requests.size() == 7);
  for (size_t i = 0; i < 5; ++i) CHECK(w.body(i)["reason"] == "A");
  CHECK(w.body(5)["reason"] == "B");
  CHECK(w.body(6)["reason"] == "C");
  CHECK(w.shows("spillway_events_total{outcome=\"dropped\"} 1"));
}

TEST_CASE("an answer that was lost makes no second event") {
  World w;
  w.obedient = false;
  w.api.fail(Error(ErrorKind::kUnknownOutcome, "no answer"));
  w.api.fail(Error(ErrorKind::kConflict, "already exists"));
  w.api.answer("{}");
  w.recorder.normal(a_pod(), "A", "1");
  w.reactor.run_for(seconds(5));
  w.recorder.normal(a_pod(), "A", "1");
  w.reactor.run_for(seconds(5));
  REQUIRE(w.api.requests.size() == 3);
  CHECK(w.body(0)["metadata"]["name"] == w.body(1)["metadata"]["name"]);
  CHECK(w.api.requests[2].method == net::Method::kPatch);
}

TEST_CASE("an event that the server has forgotten is made anew") {
  World w;
  w.obedient = false;
  w.api.answer("{}");
  w.api.fail(Error(ErrorKind::kNotFound, "gone"));
  w.api.answer("{}");
  w.recorder.normal(a_pod(), "A", "1");
  w.reactor.settle();
  w.recorder.normal(a_pod(), "A", "1");
  w.reactor.run_for(seconds(5));
  REQUIRE(w.api.requests.size() == 3);
  CHECK(w.api.requests[2].method == net::Method::kPost);
  CHECK(w.body(2)["count"] == 2);
}

TEST_CASE("the server's wish to be left alone is obeyed") {
  World w;
  w.obedient = false;
  Error slow_down(ErrorKind::kRateLimited, "slow down");
  slow_down.retry_after = seconds(40);
  w.api.fail(slow_down);
  w.api.answer("{}");
  w.recorder.normal(a_pod(), "A", "1");
  w.reactor.run_for(seconds(39));
  CHECK(w.api.requests.size() == 1);
  w.reactor.run_for(seconds(2));
  CHECK(w.api.requests.size() == 2);
}

TEST_CASE("an event gives way while statuses are being written, for five seconds at most") {
  World w;
  const auto write_status = [&] {
    PodStatusPatch patch;
    patch.key.ns = "team-a";
    patch.key.name = "trainer";
    std::ignore = w.reactor.run(w.client.patch_pod_status(std::move(patch), base::Deadline::max()));
  };
  write_status();
  w.recorder.normal(a_pod(), "A", "1");
  for (int i = 0; i < 49; ++i) {
    write_status();
    w.reactor.run_for(std::chrono::milliseconds(99));
  }
  CHECK(w.recorder.pending() == 1);
  write_status();
  w.reactor.run_for(std::chrono::milliseconds(250));
  CHECK(w.recorder.pending() == 0);

  // When they pause, all that waits goes.
  w.recorder.normal(a_pod(), "B", "1");
  w.recorder.normal(a_pod(), "C", "1");
  w.reactor.settle();
  CHECK(w.recorder.pending() == 0);
  write_status();
  w.recorder.normal(a_pod(), "D", "1");
  w.recorder.normal(a_pod(), "E", "1");
  w.reactor.run_for(std::chrono::milliseconds(250));
  CHECK(w.recorder.pending() == 0);
}

TEST_CASE("names and messages of any length fit") {
  World w;
  std::string name = std::string(219, 'a') + "-" + std::string(33, 'b');
  std::string message = "x";
  for (int i = 0; i < 600; ++i) message += "\xC3\xA4";
  w.recorder.normal(a_pod(name), "A", message);
  w.reactor.settle();
  const std::string event_name = w.body(0)["metadata"]["name"];
  CHECK(event_name.starts_with(std::string(219, 'a') + "."));
  CHECK(event_name.size() <= 253);
  const std::string text = w.body(0)["message"];
  CHECK(text.size() <= 1024);
  CHECK(text.ends_with("\xC3\xA4..."));
}

}  // namespace
}  // namespace spillway::kube
