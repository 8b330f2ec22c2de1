#include "vk-provider/kube/reflector.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>

#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/watch_event.hpp"

namespace spillway::kube {
namespace {

using base::Error;
using base::ErrorKind;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Words = std::vector<std::string>;

std::string object(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name + R"(","resourceVersion":")" + std::to_string(version) + R"("},"x":"}]"})";
}

std::string bookmark(int version, bool ends_list = false) {
  return R"({"kind":"Pod","metadata":{"resourceVersion":")" + std::to_string(version) + "\"" +
         (ends_list ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}";
}

class NotingSink final : public ReflectorSink {
 public:
  void on_list_begin() override { said.emplace_back("begin"); }
  void on_list_end() override { said.emplace_back("end"); }
  void on_object(std::string_view json) override { said.push_back(name(json)); }
  void on_deleted(std::string_view json) override { said.push_back("-" + name(json)); }

  Words said;

 private:
  static std::string name(std::string_view json) {
    return json_string_or_empty(json_member(json_member(json, "metadata"), "name"));
  }
};

struct World {
  explicit World(base::Duration watch_time = base::Duration(0)) {
    ReflectorConfig config;
    config.name = "pods";
    config.path = "/api/v1/pods";
    config.field_selector = "spec.nodeName=burst";
    config.watch_time = watch_time;
    reflector = std::make_unique<Reflector>(config, api, sink, reactor.timers, random, metrics);
  }
  ~World() { reactor.run(tasks.stop()); }

  void start() {
    tasks.spawn(reflector->run());
    reactor.settle();
  }
  const std::string& target(size_t i) const { return api.requests.at(i).target; }
  std::string counter(const std::string& line) const {
    const std::string text = metrics.to_text();
    const size_t at = text.find(line);
    if (at == std::string::npos) return "none";
    const size_t begin = at + line.size() + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  test::VirtualReactor reactor;
  base::SeededRandom random{1};
  base::Metrics metrics;
  test::ScriptedKubeApi api{reactor.timers};
  NotingSink sink;
  std::unique_ptr<Reflector> reflector;
  async::TaskGroup tasks{reactor.ctx.get_executor()};
};

TEST_CASE("a streamed list and the watch after it come through in order, on one connection") {
  World w;
  const auto stream = w.api.open_watch();
  w.start();
  CHECK_FALSE(w.reflector->synced());
  stream->push_event("ADDED", object("a", 3));
  stream->push_event("ADDED", object("b", 1));
  w.reactor.settle();
  CHECK_FALSE(w.reflector->synced());
  stream->push_event("BOOKMARK", bookmark(10, true));
  stream->push_event("MODIFIED", object("a", 11));
  stream->push_event("DELETED", object("b", 12));
  stream->push_event("ADDED", object("c", 13));
  w.reactor.settle();
  CHECK(w.sink.said == Words{"begin", "a", "b", "end", "a", "-b", "c"});
  CHECK(w.reflector->synced());
  REQUIRE(w.api.requests.size() == 1);
  CHECK(w.target(0).starts_with("/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds="));
  CHECK(w.target(0).ends_with(
      "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=spec.nodeName%3Dburst"));
  CHECK(w.counter("spillway_lists_total{resource=\"pods\"}") == "1");
}

TEST_CASE("lines cut anywhere, in the middle of a character too, arrive whole") {
  World w;
  const auto stream = w.api.open_watch();
  w.start();
  const std::string text = R"({"type":"ADDED","object":)" + object("gr\xC3\xBC\xC3\x9F\xF0\x9F\x98\x80", 1) +
                           "}\n\n"
                           R"({ "object" : )" +
                           object("other", 2) +
                           R"(, "type" : "ADDED" })"
                           "\r\n";
  for (const char c : text) stream->push(std::string(1, c));
  w.reactor.settle();
  CHECK(w.sink.said == Words{"begin", "gr\xC3\xBC\xC3\x9F\xF0\x9F\x98\x80", "other"});
}

TEST_CASE("a server without streamed lists is listed in pages and watched from the list's version") {
  World w;
  w.api.refuse_watch(Error(ErrorKind::kInvalid, "sendInitialEvents is forbidden"));
  w.api.answer(R"({"kind":"PodList","metadata":{"resourceVersion":"70","continue":"t/+1"},"items":[)" + object("a", 1) +
               "," + object("b", 2) + "]}");
  w.api.answer(R"({"items":[)" + object("c", 3) + R"(],"metadata":{"resourceVersion":"70"}})");
  const auto stream = w.api.open_watch();
  w.start();
  CHECK(w.sink.said == Words{"begin", "a", "b", "c", "end"});
  REQUIRE(w.api.requests.size() == 4);
  CHECK(w.target(1) == "/api/v1/pods?limit=250&fieldSelector=spec.nodeName%3Dburst");
  CHECK(w.target(2) == "/api/v1/pods?limit=250&continue=t%2F%2B1&fieldSelector=spec.nodeName%3Dburst");
  CHECK(w.target(3).find("&resourceVersion=70&") != std::string::npos);
  CHECK(w.target(3).find("sendInitialEvents") == std::string::npos);
  CHECK(w.reflector->synced());
  stream->push_event("DELETED", object("c", 71));
  w.reactor.settle();
  CHECK(w.sink.said.back() == "-c");
}

/// Up to an open watch at version 10.
std::shared_ptr<test::ScriptedWatch> sync(World& w) {
  auto stream = w.api.open_watch();
  stream->push_event("ADDED", object("a", 3));
  stream->push_event("BOOKMARK", bookmark(10, true));
  w.start();
  REQUIRE(w.sink.said == Words{"begin", "a", "end"});
  w.sink.said.clear();
  return stream;
}

TEST_CASE("a watch that ends, breaks or tears is resumed from the last version without a list") {
  World w;
  const auto stream = sync(w);
  const auto second = w.api.open_watch();
  stream->push_event("MODIFIED", object("a", 12));
  SECTION("ended") { stream->close(); }
  SECTION("broken") { stream->break_off(); }
  SECTION("torn") {
    stream->push(R"({"type":"DELETED","object":{"metadata":{"name":"a","res)");
    stream->close();
  }
  SECTION("a bookmark moves the version") {
    stream->push_event("BOOKMARK", bookmark(12));
    stream->close();
  }
  CHECK(w.reactor.run_until([&] { return w.api.requests.size() == 2; }, seconds(1)));
  w.reactor.settle();
  CHECK(stream->released());
  CHECK(w.target(1).find("&resourceVersion=12&") != std::string::npos);
  second->push_event("DELETED", object("a", 13));
  w.reactor.settle();
  CHECK(w.sink.said == Words{"a", "-a"});
  CHECK(w.counter("spillway_lists_total{resource=\"pods\"}") == "1");
}

TEST_CASE("a version that is too old leads to a new list, whichever way it is said") {
  World w;
  const auto stream = sync(w);
  SECTION("in the stream") {
    stream->push_event("ERROR", R"({"kind":"Status","reason":"Expired","code":410,"message":"too old"})");
  }
  SECTION("as a status") {
    w.api.refuse_watch(Error(ErrorKind::kGone, "too old"));
    stream->break_off();
  }
  const auto second = w.api.open_watch();
  second->push_event("ADDED", object("b", 20));
  second->push_event("BOOKMARK", bookmark(21, true));
  w.reactor.run_for(seconds(2));
  CHECK(w.sink.said == Words{"begin", "b", "end"});
  CHECK(w.counter("spillway_lists_total{resource=\"pods\"}") == "2");
}

TEST_CASE("a watch that goes silent is noticed when it should have ended, and caught up") {
  World w(seconds(10));
  const auto stream = sync(w);
  const auto second = w.api.open_watch();
  second->push_event("DELETED", object("a", 30));
  const auto began = w.reactor.timers.now();
  CHECK(w.reactor.run_until([&] { return !w.sink.said.empty(); }, minutes(5)));
  CHECK(w.reactor.timers.now() - began <= seconds(12));
  CHECK(w.sink.said == Words{"-a"});
  CHECK(w.target(1).find("timeoutSeconds=10&") != std::string::npos);
  CHECK(w.target(1).find("&resourceVersion=10&") != std::string::npos);
}

TEST_CASE("without a watch time of its own a watch may be silent between two bookmarks, but not longer") {
  World w;
  const auto stream = sync(w);
  w.api.open_watch();
  w.reactor.run_for(seconds(60));
  stream->push_event("BOOKMARK", bookmark(11));
  w.reactor.run_for(seconds(80));
  CHECK(w.api.requests.size() == 1);
  w.reactor.run_for(seconds(20));
  REQUIRE(w.api.requests.size() == 2);
  CHECK(w.target(1).find("&resourceVersion=11&") != std::string::npos);
  CHECK(w.counter("spillway_watch_restarts_total{reason=\"silent\",resource=\"pods\"}") == "1");
}

TEST_CASE("short watches that end by themselves are renewed and cost no list") {
  World w(seconds(10));
  auto stream = sync(w);
  for (int i = 0; i < 30; ++i) {
    auto next = w.api.open_watch();
    w.reactor.run_for(seconds(10));
    stream->close();
    w.reactor.settle();
    stream = next;
    CHECK(w.reflector->synced());
  }
  CHECK(w.api.requests.size() == 31);
  CHECK(w.counter("spillway_lists_total{resource=\"pods\"}") == "1");
}

TEST_CASE("while the API server is away the reflector tries again with patience and is not synced") {
  World w;
  const auto stream = sync(w);
  stream->break_off();
  w.reactor.run_for(seconds(60));
  CHECK_FALSE(w.reflector->synced());
  CHECK(w.api.requests.size() > 8);
  CHECK(w.api.requests.size() < 35);
  const auto back = w.api.open_watch();
  back->push_event("MODIFIED", object("a", 40));
  CHECK(w.reactor.run_until([&] { return !w.sink.said.empty(); }, seconds(7)));
  CHECK(w.sink.said == Words{"a"});
  CHECK(w.reflector->synced());
}

TEST_CASE("a list that breaks off is begun again") {
  World w;
  const auto first = w.api.open_watch();
  const auto second = w.api.open_watch();
  w.api.answer(R"({"metadata":{"resourceVersion":"7"},"items":[)" + object("a", 1) + ",{\"metadata\":{\"na");
  w.api.answer(R"({"metadata":{"resourceVersion":"7"}})");
  w.api.answer(R"({"metadata":{"resourceVersion":"7"},"items":[)" + object("c", 1) + R"( {}]})");
  w.api.answer(R"({"metadata":{},"items":[]})");
  w.api.answer(R"({"metadata":{"resourceVersion":"7"},"items":null})");
  w.start();
  first->push_event("ADDED", object("a", 3));
  first->close();
  second->push_event("ADDED", object("b", 3));
  w.reactor.run_for(seconds(60));
  CHECK(w.sink.said == Words{"begin", "a", "begin", "b", "begin", "c", "begin", "end"});
}

TEST_CASE("a line of rubbish ends the watch, never the reflector") {
  World w;
  const auto stream = sync(w);
  const auto second = w.api.open_watch();
  stream->push("rubbish\n");
  second->push_event("ADDED", object("b", 20));
  w.reactor.run_for(seconds(2));
  CHECK(w.sink.said == Words{"b"});
  CHECK(w.counter("spillway_watch_restarts_total{reason=\"unreadable\",resource=\"pods\"}") == "1");
}

TEST_CASE("a line beyond all bounds is not kept in memory, and leads to a list") {
  World w;
  const auto stream = sync(w);
  const auto second = w.api.open_watch();
  for (int i = 0; i < 9; ++i) stream->push(std::string(1024 * 1024, 'x'));
  second->push_event("BOOKMARK", bookmark(50, true));
  w.reactor.run_for(seconds(2));
  CHECK(w.sink.said == Words{"begin", "end"});
  CHECK(w.counter("spillway_watch_restarts_total{reason=\"too_long\",resource=\"pods\"}") == "1");
}

TEST_CASE("between the objects of a long list others get their turn") {
  World w;
  w.api.refuse_watch(Error(ErrorKind::kInvalid, "no"));
  std::string items = object("p", 1);
  for (int i = 1; i < 250; ++i) items += "," + object("p", 1);
  w.api.answer(R"({"metadata":{"resourceVersion":"7"},"items":[)" + items + "]}");
  w.tasks.spawn(w.reflector->run());
  std::vector<size_t> seen;
  for (size_t turn = 0; turn < 200 && w.sink.said.size() < 252; ++turn) {
    w.reactor.ctx.restart();
    w.reactor.ctx.poll_one();
    const size_t said = w.sink.said.size();
    if (said > 0 && (seen.empty() || said != seen.back())) seen.push_back(said);
  }
  CHECK(seen == std::vector<size_t>{51, 101, 151, 201, 251, 252});
}

TEST_CASE("a reflector is cancelled wherever it waits") {
  World w;
  SECTION("in a watch") { sync(w); }
  SECTION("in a pause") { w.start(); }
  SECTION("in a list") {
    w.api.refuse_watch(Error(ErrorKind::kInvalid, "no"));
    w.api.stay_silent();
    w.start();
  }
  w.reactor.run(w.tasks.stop());
  CHECK(w.tasks.size() == 0);
}

TEST_CASE("mutated lines are events or not, never more") {
  base::SeededRandom random(9);
  const std::string seeds[] = {R"({"type":"ADDED","object":)" + object("a", 1) + "}",
                               R"({"type":"BOOKMARK","object":)" + bookmark(7, true) + "}",
                               R"({"type":"ERROR","object":{"code":410,"message":"x"}})"};
  constexpr std::string_view kLetters = "{}[]\",:\\u0an1-.et";
  for (int i = 0; i < 30000; ++i) {
    std::string line = seeds[random.next() % 3];
    for (auto n = random.next() % 3; n > 0; --n) {
      const size_t at = random.next() % line.size();
      if (random.next() % 2 == 0) {
        line[at] = kLetters[random.next() % kLetters.size()];
      } else {
        line.erase(at, 1);
      }
    }
    const auto event = parse_watch_line(line);
    if (!event) continue;
    CAPTURE(line);
    REQUIRE(json_is_object(event->object));
    if (event->type != WatchEvent::Type::kError) REQUIRE_FALSE(event->resource_version.empty());
  }
}

}  // namespace
}  // namespace spillway::kube
