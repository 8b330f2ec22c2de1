// The model of the API server says what the real one said: the record in test/data is of a real server, and the tests
// of the cluster prove that it still says the same.
#include <catch2/catch.hpp>

#include "test/support/api_script/servers.hpp"
#include "test/support/api_script/transcript.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/kube/credentials.hpp"

using namespace spillway;
using namespace spillway::test::api_script;
using nlohmann::json;

namespace {

const std::string kData = std::string(SPILLWAY_SOURCE_DIR) + "/test/data/";

std::string transcript_of_model(const std::string& script) {
  auto steps = parse(script);
  REQUIRE(steps);
  test::VirtualReactor reactor;
  ModelServer server(reactor.timers);
  auto said = reactor.run(run(std::move(*steps), server));
  REQUIRE(said);
  return to_transcript(*said);
}

Said said(json text) {
  Said out;
  out.line = "GET /x";
  out.code = 200;
  out.texts.push_back(std::move(text));
  return out;
}

json pod(const std::string& uid, const std::string& version) {
  return {{"kind", "Pod"}, {"metadata", {{"name", "web"}, {"uid", uid}, {"resourceVersion", version}}}};
}

}  // namespace

TEST_CASE("the model says what the real API server said") {
  const auto script = kube::read_small_file(kData + "api_script.txt");
  const auto recorded = kube::read_small_file(kData + "api_script.transcript");
  REQUIRE(script);
  REQUIRE(recorded);
  CHECK(first_difference(*recorded, transcript_of_model(*script)) == "");
}

TEST_CASE("a script that cannot be read is told by its line") {
  CHECK(parse("GET /a\n\nFETCH /b\n").error().message == "line 3: not a step: FETCH /b");
  CHECK(parse("GET /a b\n").error().message == "line 1: not a step: GET /a b");
  CHECK(parse("READ w ADDED x\n").error().message == "line 1: not a step: READ w ADDED x");
  CHECK(parse("GET /a\nsave x\n").error().message == "line 2: save NAME POINTER");
}

TEST_CASE("a step has its title, words, body and saved values") {
  const auto steps = parse("# first\nPATCH strategic metadata /a/${u}\n{\"a\":\n 1}\nsave u /metadata/uid\n");
  REQUIRE(steps);
  REQUIRE(steps->size() == 1);
  const Step& step = steps->front();
  CHECK(step.title == "first");
  CHECK(step.request.method == net::Method::kPatch);
  CHECK(step.request.content_type == "application/strategic-merge-patch+json");
  CHECK(step.request.accept.starts_with("application/json;as=PartialObjectMetadata;"));
  CHECK(step.request.body == "{\"a\": 1}");
  CHECK(step.saves == std::vector<std::pair<std::string, std::string>>{{"u", "/metadata/uid"}});
  CHECK(fill_in(step.request.target, {{"u", "x"}}) == "/a/x");
}

TEST_CASE("a transcript keeps the order and equality of versions and identities, and drops the rest") {
  const std::string a = "11111111-1111-4111-8111-111111111111";
  const std::string b = "22222222-2222-4222-8222-222222222222";
  json list{{"kind", "PodList"}, {"metadata", {{"resourceVersion", "41"}}}, {"items", json::array()}};
  json timed = pod(a, "40");
  timed["metadata"]["creationTimestamp"] = "2026-11-29T00:00:00Z";
  timed["status"] = {{"startTime", "2020-01-01T10:00:00Z"}, {"qosClass", "BestEffort"}, {"message", nullptr}};
  const std::string text = to_transcript({said(pod(a, "9")), said(timed), said(pod(b, "9")), said(list)});
  const std::string get = "GET /x\n  200\n  ";
  const std::string web = R"({"kind":"Pod","metadata":{"name":"web","resourceVersion":")";
  CHECK(text == get + web + R"(v1","uid":"<uid 1>"}})" + "\n" + get +
                    R"({"kind":"Pod","metadata":{"creationTimestamp":"<time>","name":"web","resourceVersion":"v2",)"
                    R"("uid":"<uid 1>"},"status":{"startTime":"2020-01-01T10:00:00Z"}})" +
                    "\n" + get + web + R"(v1","uid":"<uid 2>"}})" + "\n" + get +
                    R"({"kind":"PodList","metadata":{"resourceVersion":">=v2"}})" + "\n");
}

TEST_CASE("the first difference is told with its step") {
  CHECK(first_difference("a\n", "a\n") == "");
  CHECK(first_difference("# t\nGET\n  1\n", "# t\nGET\n  2\n")
            .starts_with("line 3, # t\n  expected:   1\n  actual:     2\n"));
  CHECK(first_difference("a\nb\n", "a\n").starts_with("line 2"));
}
