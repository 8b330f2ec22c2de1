// What each request to the kubelet API is answered, without a socket.
#include "vk-provider/api/kubelet_server.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "test/support/answering_provider.hpp"
#include "test/support/pod_shelf.hpp"
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;
using Json = nlohmann::json;

namespace {

class NoProbes final : public core::ProbeView {
 public:
  void each_probe(std::string_view, const Visit& visit) const override {
    core::ProbeCount count;
    count.pod = &key;
    count.container = "main";
    count.kind = core::ProbeKind::kReadiness;
    count.successful = 3;
    count.failed = 1;
    visit(count);
  }
  model::PodKey key = test::a_pod().key;
};

/// A node with one pod, and an API server by which admin may do everything and viewer may read metrics.
class Node {
 public:
  Node() {
    provider.log = [this] { return canned("a line\n"); };
    shelf.add(test::a_running_pod("web-0", "u-1", {"main"}, reactor.timers.wall()));
    sources.pods = &shelf.store;
    sources.probes = &probes;
    sources.usage = &usage;
    sources.refresh_usage = [this](base::Deadline) { return refresh(); };
    sources.usage_failing = [] { return false; };
    sources.find_provider = [this](const base::ProviderName& name) {
      return name.str() == "cloud" ? &provider : nullptr;
    };
    sources.unsynced = [this] { return unsynced; };
    sources.api = &api;
    sources.metrics = &metrics;
    sources.timers = &reactor.timers;
    api.handler = [](const kube::KubeRequest& request) { return review(request); };
    authn = std::make_unique<Authn>(api, reactor.timers, metrics, false);
    server = std::make_unique<KubeletServer>(reactor.ctx.get_executor(), sources, *authn, config, "burst", "110",
                                             [this] { ++distrusted; });
  }

  net::HttpServerResponse send(net::HttpServerRequest request) {
    return reactor.run(server->handle(std::move(request)));
  }
  net::HttpServerResponse ask(const std::string& target, const std::string& method = "GET",
                              const std::string& user = "admin") {
    net::HttpServerRequest request;
    request.method = method;
    request.target = target;
    if (!user.empty()) {
      request.peer_certificate.emplace();
      request.peer_certificate->common_name = user;
    }
    return send(std::move(request));
  }
  /// Status and text; of a metav1.Status its message.
  std::string said(const std::string& target, const std::string& method = "GET", const std::string& user = "admin") {
    const net::HttpServerResponse response = ask(target, method, user);
    const auto object = nlohmann::json::parse(response.body, nullptr, false);
    const bool is_status = object.is_object() && object.value("kind", "") == "Status";
    return std::to_string(response.status) + " " + (is_status ? object["message"].get<std::string>() : response.body);
  }
  std::string read_all(async::ByteStream& stream) {
    std::string out;
    for (;;) {
      const auto bytes = reactor.run(stream.read(reactor.timers.now() + 10s));
      REQUIRE(bytes.has_value());
      if (bytes->empty()) return out;
      out += *bytes;
    }
  }
  base::Result<async::ByteStreamPtr> canned(const std::string& text) {
    return std::make_unique<test::CannedStream>(reactor.timers, std::deque<std::string>{text});
  }

  test::VirtualReactor reactor;
  base::Metrics metrics;
  test::ScriptedKubeApi api{reactor.timers};
  test::PodShelf shelf;
  test::AnsweringProvider provider;
  NoProbes probes;
  core::UsageBook usage;
  KubeletApiConfig config;
  KubeletSources sources;
  std::unique_ptr<Authn> authn;
  std::unique_ptr<KubeletServer> server;
  std::string unsynced;
  int refreshes = 0;
  int distrusted = 0;

 private:
  boost::asio::awaitable<void> refresh() {
    ++refreshes;
    co_return;
  }
  static std::optional<base::Result<kube::KubeResponse>> review(const kube::KubeRequest& request) {
    if (request.target.find("subjectaccessreviews") == std::string::npos) return std::nullopt;
    const Json spec = Json::parse(request.body).at("spec");
    const bool reads_metrics = spec.at("user") == "viewer" && spec.at("resourceAttributes").at("verb") == "get" &&
                               spec.at("resourceAttributes").at("subresource") == "metrics";
    kube::KubeResponse response;
    response.body = Json{{"status", {{"allowed", spec.at("user") == "admin" || reads_metrics}}}}.dump();
    return response;
  }
};

}  // namespace

TEST_CASE("nobody gets anything without a right to it") {
  Node node;
  CHECK(node.said("/pods", "GET", "") == "401 Unauthorized");
  CHECK(node.said("/nothing", "GET", "") == "401 Unauthorized");
  CHECK(node.said("/exec/team-a/web-0/main?command=sh&output=1", "POST", "viewer") ==
        "403 Forbidden (user=viewer, verb=create, resource=nodes, subresource(s)=[proxy])\n");
  CHECK(node.ask("/metrics/resource", "GET", "viewer").status == 200);
  // Whoever may read metrics may not reach something else by a path that begins like it.
  CHECK(node.ask("/metrics/../pods", "GET", "viewer").status == 404);
  CHECK(node.ask("/metrics%2F..%2Fpods", "GET", "viewer").status == 403);
  CHECK(node.provider.execs.empty());
  CHECK(node.metrics.to_text().find(R"(spillway_kubelet_requests_total{code="401",route="pods"} 1)") !=
        std::string::npos);
}

TEST_CASE("a certificate that nobody vouches for, or without a name, is none") {
  Node node;
  net::HttpServerRequest request;
  request.method = "GET";
  request.target = "/pods";
  request.peer_certificate.emplace();
  SECTION("not vouched for") {
    request.peer_certificate->common_name = "admin";
    request.peer_certificate->problem = "self-signed certificate";
  }
  SECTION("without a name") {}
  CHECK(node.send(std::move(request)).status == 401);
  CHECK(node.distrusted == 1);
}

TEST_CASE("paths that there are not, and methods that they have not, read as with a kubelet") {
  Node node;
  CHECK(node.said("/nothing") == "404 404: Page Not Found");
  const net::HttpServerResponse refused = node.ask("/pods", "POST");
  CHECK(refused.status == 405);
  CHECK(refused.body == "405: Method Not Allowed");
  CHECK(refused.headers == std::vector<net::Header>{{"Allow", "GET"}});
  CHECK(node.said("/logs/") == "501 this endpoint is disabled: a virtual node has no machine of its own");
  CHECK(node.ask("/run/team-a/web-0/main?cmd=ls", "POST").status == 501);
}

TEST_CASE("metrics, pods and the rest are told, each as what it is") {
  Node node;
  const std::pair<const char*, const char*> rows[] = {
      {"/metrics", "text/plain; version=0.0.4; charset=utf-8"},
      {"/metrics/resource", "text/plain; version=0.0.4; charset=utf-8"},
      {"/metrics/cadvisor", "text/plain; version=0.0.4; charset=utf-8"},
      {"/metrics/probes", "text/plain; version=0.0.4; charset=utf-8"},
      {"/stats/summary", "application/json"},
      {"/runningpods/", "application/json"},
      {"/configz", "application/json"},
      {"/healthz", "text/plain; charset=utf-8"},
  };
  for (const auto& [path, type] : rows) {
    CAPTURE(path);
    const net::HttpServerResponse response = node.ask(path);
    CHECK(response.status == 200);
    CHECK(response.content_type == type);
    CHECK_FALSE(response.body.empty());
  }
  CHECK(node.refreshes == 3);
  CHECK(Json::parse(node.ask("/stats/summary").body)["pods"][0]["podRef"]["uid"] == "u-1");
  CHECK(node.ask("/metrics/probes")
            .body.find("prober_probe_total{container=\"main\",namespace=\"team-a\",pod=\"web-0\",pod_uid=\"" +
                       std::string(test::kUid) + "\",probe_type=\"Readiness\",result=\"successful\"} 3\n") !=
        std::string::npos);
}

TEST_CASE("the list of pods is the API server's own, piece by piece") {
  Node node;
  auto list = node.api.open_watch();
  net::HttpServerResponse response = node.ask("/pods");
  CHECK(response.status == 200);
  CHECK(response.content_type == "application/json");
  REQUIRE(response.stream != nullptr);
  CHECK(node.api.requests.back().target == "/api/v1/pods?fieldSelector=spec.nodeName%3Dburst&resourceVersion=0");
  list->push(R"({"kind":"PodList",)");
  list->push(R"("items":[]})");
  list->close();
  CHECK(node.read_all(*response.stream) == R"({"kind":"PodList","items":[]})");
  node.api.refuse_watch(base::Error(base::ErrorKind::kUnavailable, "connection refused"));
  CHECK(node.said("/pods") == "503 the API server cannot be asked for the pods: connection refused");
}

TEST_CASE("the node is healthy once its pods are known") {
  Node node;
  CHECK(node.said("/healthz") == "200 ok");
  node.unsynced = "the pods were not listed completely yet";
  CHECK(node.said("/healthz") == "500 [-] syncloop: the pods were not listed completely yet\nhealthz check failed\n");
  CHECK(node.ask("/healthz/syncloop").status == 500);
  CHECK(node.said("/healthz/ping") == "200 ok");
}

TEST_CASE("a log comes from the provider of the pod, with what was asked of it") {
  Node node;
  net::HttpServerResponse response = node.ask("/containerLogs/team-a/web-0/main?follow=true&tailLines=5");
  CHECK(response.status == 200);
  CHECK(response.content_type == "text/plain");
  REQUIRE(response.stream != nullptr);
  CHECK(node.read_all(*response.stream) == "a line\n");
  REQUIRE(node.provider.logs.size() == 1);
  CHECK(node.provider.logs[0].container == "main");
  CHECK(node.provider.logs[0].follow);
  CHECK(node.provider.logs[0].tail_lines == 5);
}

TEST_CASE("a log that there is not is refused with the reason") {
  Node node;
  CHECK(node.said("/containerLogs/team-a/web-9/main") == "404 pod \"web-9\" does not exist");
  CHECK(node.said("/containerLogs/team-b/web-0/main") == "404 pod \"web-0\" does not exist");
  CHECK(node.said("/containerLogs/team-a/web-0/side") == "404 container \"side\" not found in pod \"web-0\"");
  CHECK(node.said("/containerLogs/team-a/web-0/main?tailLines=-1") == "422 tailLines must not be negative");
  CHECK(node.said("/containerLogs/team-a/web-0/main?tailLines=x") ==
        "400 tailLines: found \"x\"; allowed: a whole number");
  CHECK(node.said("/containerLogs/team-a/web-0/main?previous=true") ==
        "400 previous terminated container \"main\" in pod \"web-0\" not found");
  CHECK(node.provider.logs.empty());
  node.provider.log = [] {
    return base::Result<async::ByteStreamPtr>(
        base::fail(base::ErrorKind::kUnsupported, "this cloud keeps no logs that can be read"));
  };
  CHECK(node.said("/containerLogs/team-a/web-0/main") == "501 this cloud keeps no logs that can be read");
}

TEST_CASE("an exec that makes no sense is refused before anything is taken over") {
  Node node;
  CHECK(node.ask("/exec/team-a/web-0/main?command=sh", "POST").status == 400);
  CHECK(node.said("/exec/team-a/web-0/main?output=1", "POST") ==
        "400 you must specify at least 1 command for the container");
  CHECK(node.said("/exec/team-a/web-9/main?output=1&command=sh", "POST") == "404 pod \"web-9\" does not exist");
  CHECK(node.said("/exec/team-a/web-0/side?output=1&command=sh", "POST") == "404 container not found (\"side\")");
  CHECK(node.said("/exec/team-a/web-0/u-2/main?output=1&command=sh", "POST") ==
        "404 pod \"web-0\" is another one by now");
  // Not an upgrade.
  CHECK(node.ask("/exec/team-a/web-0/main?output=1&command=sh", "POST").status == 400);
  CHECK(node.ask("/attach/team-a/web-0/main?output=1", "POST").status == 400);
  CHECK(node.ask("/portForward/team-a/web-0", "POST").status == 400);
  CHECK(node.said("/portForward/team-a/web-9", "POST") == "404 pod \"web-9\" does not exist");
  CHECK(node.provider.execs.empty());
}

TEST_CASE("an exec, an attach and a port-forward that ask for an upgrade take the connection over") {
  Node node;
  for (const char* target : {"/exec/team-a/web-0/u-1/main?output=1&command=sh", "/attach/team-a/web-0/main?output=1",
                             "/portForward/team-a/web-0/u-1"}) {
    CAPTURE(target);
    net::HttpServerRequest request;
    request.method = "POST";
    request.target = target;
    request.headers = {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}};
    const bool forwards = std::string_view(target).starts_with("/portForward");
    request.headers.emplace_back("X-Stream-Protocol-Version", forwards ? "portforward.k8s.io" : "v4.channel.k8s.io");
    request.peer_certificate.emplace();
    request.peer_certificate->common_name = "admin";
    CHECK(static_cast<bool>(node.send(std::move(request)).take_over));
  }
  CHECK(node.metrics.to_text().find(R"(spillway_kubelet_requests_total{code="101",route="exec"} 1)") !=
        std::string::npos);
}
