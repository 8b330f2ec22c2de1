// What a request to the kubelet API is for: the kubelet's paths and methods. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

enum class RouteKind : std::uint8_t {
  kUnknown,   // 404
  kMethod,    // 405: a path that there is, with a method that it has not
  kDisabled,  // 501: a kubelet's path with which nothing can be done here
  kPods,
  kRunningPods,
  kStatsSummary,
  kMetrics,
  kMetricsResource,
  kMetricsProbes,
  kMetricsCadvisor,
  kHealthz,
  kConfigz,
  kContainerLogs,
  kExec,
  kAttach,
  kPortForward,
};
/// A closed set, for a metric.
std::string_view to_string(RouteKind kind);

struct Route {
  Route() = default;
  RouteKind kind = RouteKind::kUnknown;
  std::string allow;  // kMethod: what it has, as in the header Allow
  std::string ns;     // of logs, exec, attach and port-forward
  std::string pod;
  std::string uid;        // empty: not given
  std::string container;  // not of port-forward
  std::string check;      // of healthz: empty, ping, log, syncloop
};

/// The decoded segments of a path; a slash at the end counts for nothing. None of what does not begin with a slash.
/// Segments are what authorization looks at, too: what is decoded twice, or in two ways, could be two things.
std::vector<std::string> split_path(std::string_view path);

Route find_route(std::string_view method, const std::vector<std::string>& segments);

}  // namespace spillway::api
