#include "vk-provider/api/authn.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;
using Json = nlohmann::json;

namespace {

/// An API server that knows one token, and who may do what.
class Gate {
 public:
  explicit Gate(bool anonymous = false) : authn(api, reactor.timers, metrics, anonymous) {
    api.handler = [this](const kube::KubeRequest& request) { return answer(request); };
  }

  Admission admit(const Credentials& credentials, std::vector<std::string> subresources = {"proxy"},
                  const std::string& verb = "get", const std::string& node = "burst") {
    AccessAttributes wanted;
    wanted.node = node;
    wanted.verb = verb;
    wanted.subresources = std::move(subresources);
    return reactor.run(authn.admit(credentials, wanted, reactor.timers.now() + 10s));
  }
  size_t token_reviews() const { return asked("tokenreviews"); }
  size_t access_reviews() const { return asked("subjectaccessreviews"); }

  test::VirtualReactor reactor;
  test::ScriptedKubeApi api{reactor.timers};
  base::Metrics metrics;
  bool away = false;
  /// verb + sub-resource that the user alice may do on the node burst
  std::vector<std::string> allowed{"get metrics", "get pods"};
  Authn authn;

 private:
  size_t asked(const std::string& what) const {
    size_t n = 0;
    for (const auto& request : api.requests) n += request.target.find(what) != std::string::npos ? 1 : 0;
    return n;
  }
  std::optional<base::Result<kube::KubeResponse>> answer(const kube::KubeRequest& request) {
    if (away) return base::fail(base::ErrorKind::kUnavailable, "connection refused");
    const Json body = Json::parse(request.body);
    const Json& spec = body.at("spec");
    Json status;
    if (request.target.find("tokenreviews") != std::string::npos) {
      const bool good = spec.at("token") == "good";
      status = {{"authenticated", good}};
      if (good) status["user"] = {{"username", "alice"}, {"groups", {"system:authenticated"}}};
    } else {
      const Json& attributes = spec.at("resourceAttributes");
      const std::string what =
          attributes.at("verb").get<std::string>() + " " + attributes.at("subresource").get<std::string>();
      const bool there = std::ranges::find(allowed, what) != allowed.end();
      status = {{"allowed", there && spec.at("user") == "alice" && attributes.at("name") == "burst"}};
    }
    kube::KubeResponse response;
    response.status = 201;
    response.body = Json{{"status", status}}.dump();
    return response;
  }
};

Credentials with_token(const std::string& token) {
  Credentials out;
  out.bearer = base::Secret(token);
  return out;
}

Credentials with_certificate(const std::string& name) {
  Credentials out;
  out.certificate = user_of_certificate(name, {});
  return out;
}

}  // namespace

TEST_CASE("who shows nothing, or nothing that is known, is nobody") {
  Gate gate;
  CHECK(gate.admit(Credentials()).status == 401);
  CHECK(gate.admit(Credentials()).body == "Unauthorized");
  CHECK(gate.admit(with_token("bad")).status == 401);
  Credentials foreign;
  foreign.certificate_refused = true;
  CHECK(gate.admit(foreign).status == 401);
  CHECK(gate.access_reviews() == 0);
}

TEST_CASE("a certificate or a token opens what its user may do, and nothing else") {
  Gate gate;
  for (const Credentials& who : {with_certificate("alice"), with_token("good")}) {
    CHECK(gate.admit(who, {"metrics"}).status == 200);
    CHECK(gate.admit(who, {"metrics"}).user == "alice");
    CHECK(gate.admit(who, {"metrics"}, "create").status == 403);
    CHECK(gate.admit(who, {"stats"}).status == 403);
    CHECK(gate.admit(who, {"metrics"}, "get", "other").status == 403);
  }
  CHECK(gate.admit(with_certificate("bob"), {"metrics"}).body ==
        "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[metrics])\n");
}

TEST_CASE("a certificate wins over a token, and a foreign one does not spoil a good token") {
  Gate gate;
  Credentials both = with_token("bad");
  both.certificate = user_of_certificate("alice", {});
  CHECK(gate.admit(both, {"metrics"}).status == 200);
  CHECK(gate.token_reviews() == 0);
  Credentials foreign = with_token("good");
  foreign.certificate_refused = true;
  CHECK(gate.admit(foreign, {"metrics"}).status == 200);
}

TEST_CASE("the finer right is enough, and so is the one over all") {
  Gate gate;
  CHECK(gate.admit(with_token("good"), {"pods", "proxy"}).status == 200);
  CHECK(gate.access_reviews() == 1);
  gate.allowed = {"get proxy"};
  gate.reactor.run_for(6min);
  CHECK(gate.admit(with_token("good"), {"pods", "proxy"}).status == 200);
  gate.allowed = {};
  gate.reactor.run_for(6min);
  CHECK(gate.admit(with_token("good"), {"pods", "proxy"}).body ==
        "Forbidden (user=alice, verb=get, resource=nodes, subresource(s)=[pods proxy])\n");
}

TEST_CASE("anonymous callers are let in only if configured, and then only by what they may") {
  Gate gate(true);
  CHECK(gate.admit(Credentials(), {"metrics"}).body ==
        "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n");
  // Bad credentials are not better than none.
  CHECK(gate.admit(with_token("bad"), {"metrics"}).status == 401);
  Credentials foreign;
  foreign.certificate_refused = true;
  CHECK(gate.admit(foreign, {"metrics"}).status == 401);
}

TEST_CASE("what the API server said holds as long as with a kubelet") {
  Gate gate;
  const Credentials alice = with_token("good");
  REQUIRE(gate.admit(alice, {"metrics"}).status == 200);
  REQUIRE(gate.admit(alice, {"stats"}).status == 403);
  gate.reactor.run_for(29s);
  gate.admit(alice, {"metrics"});
  gate.admit(alice, {"stats"});
  CHECK(gate.token_reviews() == 1);
  CHECK(gate.access_reviews() == 2);
  gate.allowed = {"get stats"};
  gate.reactor.run_for(1s);
  CHECK(gate.admit(alice, {"stats"}).status == 200);
  gate.reactor.run_for(91s);
  CHECK(gate.admit(alice, {"metrics"}).status == 200);
  CHECK(gate.token_reviews() == 2);
  gate.reactor.run_for(3min);
  CHECK(gate.admit(alice, {"metrics"}).status == 403);
}

TEST_CASE("while the API server is away nobody comes in on its word") {
  Gate gate;
  REQUIRE(gate.admit(with_token("good"), {"metrics"}).status == 200);
  gate.away = true;
  CHECK(gate.admit(with_token("good"), {"metrics"}).status == 200);
  CHECK(gate.admit(with_token("other"), {"metrics"}).status == 500);
  CHECK(gate.admit(with_token("other"), {"metrics"}).body ==
        "Authentication error: the API server cannot be asked about the token\n");
  const Admission refused = gate.admit(with_certificate("alice"), {"stats"});
  CHECK(refused.status == 500);
  CHECK(refused.body ==
        "Authorization error (user=alice, verb=get, resource=nodes, subresource=stats): connection refused\n");
  gate.away = false;
  CHECK(gate.admit(with_certificate("alice"), {"stats"}).status == 403);
  CHECK(gate.metrics.to_text().find(R"(spillway_kubelet_reviews_total{outcome="error",review="token"} 2)") !=
        std::string::npos);
}

TEST_CASE("no token is repeated in what is said about it") {
  Gate gate;
  gate.away = true;
  CHECK(gate.admit(with_token("t0p-s3cret")).body.find("t0p-s3cret") == std::string::npos);
}
