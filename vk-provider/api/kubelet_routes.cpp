#include "vk-provider/api/kubelet_routes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "vk-provider/net/url.hpp"

namespace spillway::api {
namespace {

using Segments = std::vector<std::string>;

struct Fixed {
  std::string_view path;  // segments, joined
  RouteKind kind;
};
constexpr std::array kFixed{
    Fixed{"pods", RouteKind::kPods},
    Fixed{"runningpods", RouteKind::kRunningPods},
    Fixed{"stats/summary", RouteKind::kStatsSummary},
    Fixed{"metrics", RouteKind::kMetrics},
    Fixed{"metrics/resource", RouteKind::kMetricsResource},
    Fixed{"metrics/probes", RouteKind::kMetricsProbes},
    Fixed{"metrics/cadvisor", RouteKind::kMetricsCadvisor},
    Fixed{"configz", RouteKind::kConfigz},
    Fixed{"healthz", RouteKind::kHealthz},
    Fixed{"healthz/ping", RouteKind::kHealthz},
    Fixed{"healthz/log", RouteKind::kHealthz},
    Fixed{"healthz/syncloop", RouteKind::kHealthz},
};
/// First segments of what a kubelet does on its machine, and there is none here.
constexpr std::array<std::string_view, 6> kDisabled{"logs", "checkpoint", "debug", "run", "statusz", "flagz"};

/// The segments as a path. Empty if that would say something else: a name may hold a slash, a path none that is empty.
std::string joined(const Segments& segments) {
  std::string out;
  for (const std::string& segment : segments) {
    if (segment.empty() || segment.find('/') != std::string::npos) return {};
    out += (out.empty() ? "" : "/") + segment;
  }
  return out;
}

/// Takes namespace, pod and, where they belong, uid and container out of the path. False if they are not there.
bool take_names(Route& route, const Segments& segments) {
  const bool has_container = route.kind != RouteKind::kPortForward;
  const bool may_have_uid = route.kind != RouteKind::kContainerLogs;
  const size_t fewest = has_container ? 4 : 3;
  const bool has_uid = may_have_uid && segments.size() == fewest + 1;
  if (segments.size() != fewest && !has_uid) return false;
  if (std::ranges::any_of(segments, [](const std::string& s) { return s.empty(); })) return false;
  route.ns = segments[1];
  route.pod = segments[2];
  if (has_uid) route.uid = segments[3];
  if (has_container) route.container = segments.back();
  return true;
}

Route route_to_pod(std::string_view method, const Segments& segments) {
  Route route;
  const std::string& first = segments.front();
  if (first == "containerLogs") route.kind = RouteKind::kContainerLogs;
  if (first == "exec") route.kind = RouteKind::kExec;
  if (first == "attach") route.kind = RouteKind::kAttach;
  if (first == "portForward") route.kind = RouteKind::kPortForward;
  if (route.kind == RouteKind::kUnknown || !take_names(route, segments)) return {};
  const bool is_log = route.kind == RouteKind::kContainerLogs;
  if (method == "GET" || (method == "POST" && !is_log)) return route;
  Route refused;
  refused.kind = RouteKind::kMethod;
  refused.allow = is_log ? "GET" : "GET, POST";
  return refused;
}

}  // namespace

std::string_view to_string(RouteKind kind) {
  switch (kind) {
    case RouteKind::kUnknown: return "unknown";
    case RouteKind::kMethod: return "method";
    case RouteKind::kDisabled: return "disabled";
    case RouteKind::kPods: return "pods";
    case RouteKind::kRunningPods: return "runningpods";
    case RouteKind::kStatsSummary: return "stats/summary";
    case RouteKind::kMetrics: return "metrics";
    case RouteKind::kMetricsResource: return "metrics/resource";
    case RouteKind::kMetricsProbes: return "metrics/probes";
    case RouteKind::kMetricsCadvisor: return "metrics/cadvisor";
    case RouteKind::kHealthz: return "healthz";
    case RouteKind::kConfigz: return "configz";
    case RouteKind::kContainerLogs: return "containerLogs";
    case RouteKind::kExec: return "exec";
    case RouteKind::kAttach: return "attach";
    case RouteKind::kPortForward: return "portForward";
  }
  return "unknown";
}

Segments split_path(std::string_view path) {
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  Segments out;
  for (;;) {
    const size_t end = path.find('/');
    out.push_back(net::decode_path_segment(path.substr(0, end)));
    if (end == std::string_view::npos) return out;
    path.remove_prefix(end + 1);
  }
}

Route find_route(std::string_view method, const Segments& segments) {
  if (segments.empty()) return {};
  const std::string path = joined(segments);
  if (const auto* const fixed = std::ranges::find(kFixed, path, &Fixed::path); fixed != kFixed.end()) {
    Route route;
    const bool is_summary = fixed->kind == RouteKind::kStatsSummary;
    if (method == "GET" || (method == "POST" && is_summary)) {
      route.kind = fixed->kind;
      if (route.kind == RouteKind::kHealthz && segments.size() > 1) route.check = segments[1];
    } else {
      route.kind = RouteKind::kMethod;
      route.allow = is_summary ? "GET, POST" : "GET";
    }
    return route;
  }
  if (std::ranges::find(kDisabled, segments.front()) != kDisabled.end()) {
    Route route;
    route.kind = RouteKind::kDisabled;
    return route;
  }
  return route_to_pod(method, segments);
}

}  // namespace spillway::api
