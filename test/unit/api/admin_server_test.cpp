#include "vk-provider/api/admin_server.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "test/support/real_reactor.hpp"
#include "vk-provider/net/http_client.hpp"

using spillway::api::AdminCheck;
using spillway::api::AdminServer;
using spillway::api::AdminServerConfig;
using spillway::api::AdminSources;
using spillway::base::ErrorKind;
using spillway::base::Metrics;
using spillway::net::HttpServerRequest;
using spillway::test::RealReactor;

namespace net = spillway::net;

namespace {

struct Fixture {
  AdminServer& server() {
    if (!made) {
      AdminServerConfig config;
      made = std::make_unique<AdminServer>(reactor.ctx.get_executor(), reactor.timers, metrics, config, sources);
    }
    return *made;
  }
  net::HttpServerResponse get(const std::string& target, bool from_loopback = false,
                              const std::string& method = "GET") {
    HttpServerRequest request;
    request.method = method;
    request.target = target;
    request.from_loopback = from_loopback;
    return server().answer(request);
  }

  RealReactor reactor;
  Metrics metrics;
  AdminSources sources;
  std::unique_ptr<AdminServer> made;
};

}  // namespace

TEST_CASE("metrics are the text of the registry") {
  Fixture f;
  f.metrics.counter("spillway_test_total", "a test").add(3);
  const auto answer = f.get("/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.content_type == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(answer.body.find("spillway_test_total 3") != std::string::npos);
}

TEST_CASE("readyz fails while one check fails, and then names all of them") {
  Fixture f;
  std::string problem = "another daemon holds the lease";
  f.sources.readiness = [&problem] { return std::vector{AdminCheck("lease", problem), AdminCheck("nodes", "")}; };
  CHECK(f.get("/readyz").status == 503);
  CHECK(f.get("/readyz").body == "[-] lease: another daemon holds the lease\n[+] nodes ok\nfailed\n");
  problem.clear();
  CHECK(f.get("/readyz").status == 200);
  CHECK(f.get("/readyz").body == "ok\n");
  CHECK(f.get("/readyz?verbose").body == "[+] lease ok\n[+] nodes ok\nok\n");
  CHECK(f.get("/readyz?x=1&verbose=true").body == "[+] lease ok\n[+] nodes ok\nok\n");
  CHECK(f.get("/readyz?notverbose").body == "ok\n");
}

TEST_CASE("healthz is well without checks and asks those that it has") {
  Fixture bare;
  CHECK(bare.get("/healthz").status == 200);
  CHECK(bare.get("/readyz").status == 200);
  Fixture f;
  f.sources.health = [] { return std::vector{AdminCheck("reactor", "late by 12 s")}; };
  CHECK(f.get("/healthz").status == 503);
}

TEST_CASE("debug/pods is for peers on this machine, and only if it is on") {
  Fixture f;
  f.sources.debug_pods = [] { return std::string("[]"); };
  CHECK(f.get("/debug/pods", true).status == 200);
  CHECK(f.get("/debug/pods", true).content_type == "application/json");
  CHECK(f.get("/debug/pods", true).body == "[]");
  CHECK(f.get("/debug/pods", false).status == 403);
  CHECK(f.get("/debug/pods", false).body.find("[]") == std::string::npos);
  Fixture off;
  CHECK(off.get("/debug/pods", true).status == 404);
}

TEST_CASE("other paths and methods are refused") {
  Fixture f;
  CHECK(f.get("/").status == 404);
  CHECK(f.get("/metricsx").status == 404);
  CHECK(f.get("/metrics", true, "POST").status == 405);
  CHECK(f.get("/healthz", true, "HEAD").status == 200);
}

TEST_CASE("the admin port answers over a socket, and a taken one is refused by name") {
  Fixture f;
  f.sources.debug_pods = [] { return std::string("{\"pods\":[]}"); };
  REQUIRE(f.server().start().has_value());

  net::BeastHttpClientFactory factory(f.reactor.ctx.get_executor(), f.reactor.timers);
  net::Endpoint endpoint;
  endpoint.scheme = net::Endpoint::Scheme::kHttp;
  endpoint.host = "127.0.0.1";
  endpoint.port = f.server().port();
  auto client = factory.make(endpoint);
  REQUIRE(client.has_value());
  net::HttpRequest request;
  request.target = "/debug/pods";
  const auto answer = f.reactor.run((*client)->send(request, f.reactor.timers.now() + std::chrono::seconds(10)));
  REQUIRE(answer.has_value());
  CHECK(answer->status == 200);
  CHECK(answer->body == "{\"pods\":[]}");

  AdminServerConfig same;
  same.port = f.server().port();
  AdminServer second(f.reactor.ctx.get_executor(), f.reactor.timers, f.metrics, same, {});
  const auto refused = second.start();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kConflict);
  CHECK(refused.error().message.starts_with("admin.address 127.0.0.1, admin.port " + std::to_string(same.port) + ": "));

  client->reset();
  f.reactor.run(f.server().stop(f.reactor.timers.now() + std::chrono::seconds(5)));
}
