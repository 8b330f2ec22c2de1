#include "vk-provider/api/kubelet_routes.hpp"

#include <catch2/catch.hpp>

using namespace spillway::api;

namespace {

Route route(const std::string& method, const std::string& path) { return find_route(method, split_path(path)); }

}  // namespace

TEST_CASE("the kubelet's paths are found, with a slash at the end or without") {
  const std::pair<const char*, RouteKind> rows[] = {
      {"/pods", RouteKind::kPods},
      {"/pods/", RouteKind::kPods},
      {"/runningpods", RouteKind::kRunningPods},
      {"/runningpods/", RouteKind::kRunningPods},
      {"/stats/summary", RouteKind::kStatsSummary},
      {"/metrics", RouteKind::kMetrics},
      {"/metrics/resource", RouteKind::kMetricsResource},
      {"/metrics/probes", RouteKind::kMetricsProbes},
      {"/metrics/cadvisor", RouteKind::kMetricsCadvisor},
      {"/configz", RouteKind::kConfigz},
      {"/healthz", RouteKind::kHealthz},
      {"/containerLogs/ns/pod/main", RouteKind::kContainerLogs},
      {"/exec/ns/pod/main", RouteKind::kExec},
      {"/attach/ns/pod/main", RouteKind::kAttach},
      {"/portForward/ns/pod", RouteKind::kPortForward},
      {"/logs/", RouteKind::kDisabled},
      {"/logs/kubelet.log", RouteKind::kDisabled},
      {"/checkpoint/ns/pod/main", RouteKind::kDisabled},
      {"/debug/pprof/heap", RouteKind::kDisabled},
      {"/run/ns/pod/main", RouteKind::kDisabled},
      {"/statusz", RouteKind::kDisabled},
      {"/", RouteKind::kUnknown},
      {"/spec", RouteKind::kUnknown},
      {"/Pods", RouteKind::kUnknown},
      {"//pods", RouteKind::kUnknown},
      {"/stats", RouteKind::kUnknown},
      {"/stats/ns/pod/uid/main", RouteKind::kUnknown},
      {"/healthz/other", RouteKind::kUnknown},
      {"/metrics/../pods", RouteKind::kUnknown},
      {"/exec/ns/pod", RouteKind::kUnknown},
      {"/exec/ns/pod/uid/main/more", RouteKind::kUnknown},
      {"/exec/ns//main", RouteKind::kUnknown},
      {"/containerLogs/ns/pod", RouteKind::kUnknown},
      {"/containerLogs/ns/pod/uid/main", RouteKind::kUnknown},
      {"/portForward/ns", RouteKind::kUnknown},
  };
  for (const auto& [path, kind] : rows) {
    CAPTURE(path);
    CHECK(route("GET", path).kind == kind);
  }
}

TEST_CASE("names stand in the path, with a uid or without") {
  const Route plain = route("POST", "/exec/team-a/web-0/main");
  CHECK(plain.kind == RouteKind::kExec);
  CHECK(plain.ns == "team-a");
  CHECK(plain.pod == "web-0");
  CHECK(plain.uid.empty());
  CHECK(plain.container == "main");
  const Route with_uid = route("GET", "/attach/team-a/web-0/4f0c1a52/main");
  CHECK(with_uid.kind == RouteKind::kAttach);
  CHECK(with_uid.uid == "4f0c1a52");
  CHECK(with_uid.container == "main");
  const Route forward = route("POST", "/portForward/team-a/web-0/4f0c1a52/");
  CHECK(forward.kind == RouteKind::kPortForward);
  CHECK(forward.uid == "4f0c1a52");
  CHECK(forward.container.empty());
  CHECK(route("GET", "/healthz/ping").check == "ping");
  CHECK(route("GET", "/healthz").check.empty());
}

TEST_CASE("an escaped slash is part of a name and opens no other path") {
  CHECK(split_path("/metrics%2F..%2Fexec") == std::vector<std::string>{"metrics/../exec"});
  CHECK(route("GET", "/metrics%2Fresource").kind == RouteKind::kUnknown);
  CHECK(route("GET", "/exec/ns/pod/a%2Fb").container == "a/b");
  CHECK(route("GET", "/%70ods").kind == RouteKind::kPods);
  CHECK(route("GET", "/pods%").kind == RouteKind::kUnknown);
  CHECK(split_path("pods").empty());
  CHECK(route("OPTIONS", "*").kind == RouteKind::kUnknown);
}

TEST_CASE("a method that a path has not is told, with those that it has") {
  CHECK(route("POST", "/pods").kind == RouteKind::kMethod);
  CHECK(route("POST", "/pods").allow == "GET");
  CHECK(route("HEAD", "/metrics").kind == RouteKind::kMethod);
  CHECK(route("POST", "/stats/summary").kind == RouteKind::kStatsSummary);
  CHECK(route("DELETE", "/stats/summary").allow == "GET, POST");
  CHECK(route("POST", "/containerLogs/ns/pod/main").allow == "GET");
  CHECK(route("PUT", "/exec/ns/pod/main").allow == "GET, POST");
  CHECK(route("PUT", "/portForward/ns/pod").kind == RouteKind::kMethod);
}
