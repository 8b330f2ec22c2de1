#include "providers/fake/routes.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "providers/fake/codec.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using nlohmann::json;

namespace {

json body_of(const WireReply& reply) { return json::parse(reply.body); }

std::string message_of(const WireReply& reply) { return body_of(reply).at("error").at("message"); }

}  // namespace

TEST_CASE("fake routes: buy, look, list, stop, start and end") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto offers = route(cloud, "GET", "/v1/offers", "", at(0s));
  CHECK(offers.status == 200);
  CHECK(body_of(offers).at("offers").at(0).at("pricePerHourMicros") == 360'000);

  const auto made = route(cloud, "POST", "/v1/instances", encode_create(a_purchase("spw-a-1")), at(1s));
  CHECK(made.status == 201);
  const std::string id = body_of(made).at("id");
  CHECK(body_of(made).at("tag") == "spw-a-1");
  CHECK(body_of(made).at("state") == "running");
  CHECK(body_of(made).at("createdAt") == "2026-11-29T00:00:01.000000Z");

  CHECK(body_of(route(cloud, "GET", "/v1/instances/" + id, "", at(2s))).at("id") == id);
  CHECK(body_of(route(cloud, "GET", "/v1/instances?tag_prefix=spw%2Da-", "", at(2s))).at("instances").size() == 1);
  CHECK(body_of(route(cloud, "GET", "/v1/instances?tag_prefix=spw-b-", "", at(2s))).at("instances").empty());

  CHECK(route(cloud, "POST", "/v1/instances/" + id + "/containers/main/stop", "", at(3s)).status == 200);
  CHECK(body_of(route(cloud, "GET", "/v1/instances/" + id, "", at(3s))).at("state") == "exited");
  CHECK(route(cloud, "POST", "/v1/instances/" + id + "/containers/main/start", "", at(4s)).status == 200);
  CHECK(route(cloud, "DELETE", "/v1/instances/" + id + "?grace=x", "", at(5s)).status == 400);
  CHECK(route(cloud, "DELETE", "/v1/instances/" + id + "?grace=5", "", at(5s)).status == 202);
  const auto gone = route(cloud, "GET", "/v1/instances/" + id, "", at(5s));
  CHECK(gone.status == 404);
  CHECK(body_of(gone).at("error").at("kind") == "not_found");
}

TEST_CASE("fake routes: a log in pages, and samples") {
  FakeCloud cloud(a_cloud(), cloud_start());
  CreateRequest purchase = a_purchase("spw-a-1", {{"log-every", "2s"}});
  purchase.pod = "default/web";
  const std::string id = body_of(route(cloud, "POST", "/v1/instances", encode_create(purchase), at(0s))).at("id");
  const std::string log = "/v1/instances/" + id + "/containers/main/log";
  CHECK(body_of(route(cloud, "GET", log, "", at(3s))) == json::parse(R"({
      "lines": [{"at": "2026-11-29T00:00:00.000000Z", "stderr": false, "text": "default/web main run 1: line 1 of 3"},
                {"at": "2026-11-29T00:00:02.000000Z", "stderr": true, "text": "default/web main run 1: line 2 of 3"}],
      "next": 2, "ended": false})"));
  CHECK(body_of(route(cloud, "GET", log + "?from=2", "", at(3s))) ==
        json::parse(R"({"lines": [], "next": 2, "ended": false})"));
  CHECK(body_of(route(cloud, "GET", log + "?previous=false&tail=1", "", at(9s))).at("lines").size() == 1);
  CHECK(route(cloud, "GET", log + "?previous=true", "", at(9s)).status == 404);
  for (const char* query : {"?from=x", "?from=-1", "?tail=1x"}) {
    CHECK(route(cloud, "GET", log + query, "", at(9s)).status == 400);
  }
  CHECK(body_of(route(cloud, "GET", "/v1/samples", "", at(9s))) == json::parse(R"({"samples": [
      {"instance": ")" + id + R"(", "container": "main", "at": "2026-11-29T00:00:09.000000Z", "cpuNs": 901000000,
       "workingSet": 26214400}]})"));
}

TEST_CASE("fake routes: what is not known is never said to be gone") {
  FakeCloud cloud(a_cloud(), cloud_start());
  for (const char* target : {"/", "/v1/", "/v2/offers", "/v1/offers/x", "/v1/instances/a/b",
                             "/v1/instances/a/containers/b/pat", "/v1/nothing", "/v1/invoice/x"}) {
    for (const char* method : {"GET", "POST", "PUT", "DELETE"}) {
      INFO(method << " " << target);
      const auto reply = route(cloud, method, target, "", at(0s));
      CHECK(reply.status == 404);
      CHECK(body_of(reply).at("error").at("kind") == "unsupported");
    }
  }
}

TEST_CASE("fake routes: faults come as data, one or several, and go") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto added =
      route(cloud, "POST", "/v1/faults",
            R"([{"effect": "error", "call": "list_offers", "kind": "rate_limited", "retryAfter": "2500ms",
                                "times": 1, "message": "slower"},
                               {"effect": "lose_answer", "call": "create", "tag": "-a-", "offer": "sm*", "image": "*app*",
                                "skip": 0, "probability": 100, "lasts": "1h"},
                               {"effect": "delay", "call": "get", "duration": "2s"},
                               {"effect": "overcharge", "percent": 200}])",
            at(0s));
  CHECK(added.status == 201);
  CHECK(body_of(added).at("faults") == json({1, 2, 3, 4}));

  const auto limited = route(cloud, "GET", "/v1/offers", "", at(1s));
  CHECK(limited.status == 429);
  CHECK(limited.retry_after == 2500ms);
  CHECK(body_of(limited) == json::parse(R"({"error":{"kind":"rate_limited","message":"slower","retryAfterMs":2500}})"));
  CHECK(route(cloud, "GET", "/v1/offers", "", at(1s)).status == 200);

  CHECK(route(cloud, "POST", "/v1/instances", encode_create(a_purchase("spw-a-1")), at(1s)).lost);
  CHECK(route(cloud, "GET", "/v1/instances/x", "", at(1s)).delay == 2s);
  const auto list = body_of(route(cloud, "GET", "/v1/instances", "", at(1s)));
  CHECK(list.at("instances").at(0).at("pricePerHourMicros") == 720'000);

  CHECK(route(cloud, "DELETE", "/v1/faults", "", at(2s)).status == 200);
  CHECK(route(cloud, "GET", "/v1/instances/x", "", at(2s)).delay == 0s);
}

TEST_CASE("fake routes: a misspelt fault is refused with the remedy") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto refused = [&](const char* body) {
    const auto reply = route(cloud, "POST", "/v1/faults", body, at(0s));
    CHECK(reply.status == 400);
    return message_of(reply);
  };
  CHECK(refused("{") == "the body is not JSON");
  CHECK(refused("{}") == "a fault without an effect");
  CHECK(refused("[1]") == "a fault is a JSON object");
  CHECK(refused(R"({"effect": "delay", "durtion": "1s"})") == "unknown key durtion in a fault; did you mean duration?");
  CHECK(refused(R"({"effect": "delay", "duration": 1})").starts_with("duration: found 1, expected a duration"));
  CHECK(refused(R"({"effect": "explode"})").starts_with("effect: found \"explode\", expected error, lose_request"));
  CHECK(refused(R"({"effect": "delay", "call": "crate"})").starts_with("call: found"));
  CHECK(refused(R"({"effect": "error", "kind": "bad"})").starts_with("kind: found"));
  CHECK(refused(R"({"effect": "error", "times": -1})").starts_with("times: found -1"));
  CHECK(refused(R"({"effect": "ghost", "call": "get"})") == "effect ghost can befall create only, not get");
}

TEST_CASE("fake routes: kill, foreign instances, invoice and audit") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const std::string id =
      body_of(route(cloud, "POST", "/v1/instances", encode_create(a_purchase("spw-a-1")), at(0s))).at("id");
  const auto foreign = route(cloud, "POST", "/v1/foreign", R"({"tag": "somebody"})", at(0s));
  CHECK(foreign.status == 201);
  const std::string foreign_id = body_of(foreign).at("id");
  CHECK(route(cloud, "POST", "/v1/foreign", "", at(0s)).status == 201);
  CHECK(route(cloud, "POST", "/v1/foreign", "[]", at(0s)).status == 400);

  CHECK(route(cloud, "POST", "/v1/instances/" + id + "/kill", R"({"how": "explode"})", at(1s)).status == 400);
  CHECK(
      route(cloud, "POST", "/v1/instances/" + id + "/kill", R"({"how": "crash", "exitCode": 9, "oom": false})", at(50s))
          .status == 200);
  CHECK(body_of(route(cloud, "GET", "/v1/instances/" + id, "", at(51s))).at("containers").at(0).at("exitCode") == 9);
  CHECK(
      route(cloud, "POST", "/v1/instances/" + id + "/kill", R"({"how": "preempt", "notice": "10s"})", at(60s)).status ==
      200);
  CHECK(body_of(route(cloud, "GET", "/v1/instances/" + id, "", at(69s))).at("preempted") == true);
  CHECK(route(cloud, "GET", "/v1/instances/" + id, "", at(70s)).status == 404);
  CHECK(route(cloud, "POST", "/v1/instances/" + id + "/kill", "", at(71s)).status == 404);

  const json invoice = body_of(route(cloud, "GET", "/v1/invoice", "", at(100s)));
  CHECK(invoice.at("lines").size() == 3);
  CHECK(invoice.at("lines").at(0).at("amountMicros") == 5000);
  CHECK(invoice.at("lines").at(0).at("billedSeconds") == 50);
  CHECK(invoice.at("totalMicros") == 25'000);

  const json audit = body_of(route(cloud, "GET", "/v1/audit", "", at(100s)));
  CHECK(audit.at("instances").at(0).at("endedBy") == "preempt");
  CHECK(audit.at("instances").at(0).at("gone") == "2026-11-29T00:01:10.000000Z");
  CHECK(audit.at("instances").at(0).at("foreign") == false);
  CHECK(audit.at("instances").at(1).at("foreign") == true);
  CHECK(audit.at("instances").at(1).at("id") == foreign_id);
  CHECK(audit.at("instances").at(1).at("gone").is_null());
  CHECK(audit.at("creates") == json::parse(R"({"spw-a-1": 1})"));
  CHECK(audit.at("calls").at("create") == 1);
  CHECK(audit.at("calls").at("get") == 3);
  CHECK(route(cloud, "GET", "/v1/healthz", "", at(100s)).status == 200);
}

TEST_CASE("fake codec: bytes survive as they are, and bad UTF-8 cannot throw") {
  CreateRequest request = a_purchase("spw-a-1", {{"image-error", "z\xC3\xBCrich \"quoted\"\n$x"}});
  request.public_ports = {80, 443};
  const auto back = decode_create(encode_create(request));
  REQUIRE(back.has_value());
  CHECK(back->orders == request.orders);
  CHECK(back->public_ports == request.public_ports);
  CHECK(back->containers[0].image == "registry.example/app:1");
  request.tag = "\xff";
  CHECK_FALSE(encode_create(request).empty());
  for (const char* bad : {"", "[]", "nul", "{\"a\":", "\xff"}) CHECK_FALSE(decode_create(bad).has_value());
}

TEST_CASE("fake codec: mistyped fields of an instance are tolerated, a missing id is not") {
  const auto odd = decode_instance(
      R"({"id":"i-1","tag":7,"state":"dancing","containers":[{"name":null,"exitCode":"x","startedAt":"now"},3],
          "ports":{},"billing":[],"pricePerHourMicros":1.5,"preempted":"yes"})");
  REQUIRE(odd.has_value());
  CHECK(odd->state == model::InstanceState::kUnknown);
  CHECK(odd->containers.size() == 2);
  CHECK_FALSE(odd->containers[0].exit_code.has_value());
  CHECK_FALSE(odd->price_per_hour.has_value());
  CHECK_FALSE(odd->preempted);
  CHECK_FALSE(decode_instance(R"({"tag":"x"})").has_value());
}
