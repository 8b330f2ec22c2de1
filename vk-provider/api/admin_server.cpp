#include "vk-provider/api/admin_server.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::api {
namespace {

constexpr int kOk = 200;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kNotReady = 503;
constexpr std::string_view kPlacement = "/debug/placement/";
constexpr std::string_view kText = "text/plain; charset=utf-8";

net::HttpServerResponse text(int status, std::string body) { return {status, std::string(kText), std::move(body)}; }

net::HttpServerConfig server_config(const AdminServerConfig& config) {
  net::HttpServerConfig out;
  out.host = config.address;
  out.port = config.port;
  return out;
}

/// `verbose` as a key of the query, with or without a value.
bool is_verbose(std::string_view query) {
  for (;;) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    if (pair.substr(0, pair.find('=')) == "verbose") return true;
    if (end == std::string_view::npos) return false;
    query.remove_prefix(end + 1);
  }
}

/// The checks are listed when they are asked for, and when one of them fails.
net::HttpServerResponse answer_checks(const std::function<std::vector<AdminCheck>()>& source, std::string_view query) {
  const std::vector<AdminCheck> checks = source ? source() : std::vector<AdminCheck>{};
  const bool well = std::ranges::all_of(checks, [](const AdminCheck& c) { return c.problem.empty(); });
  std::string body;
  if (!well || is_verbose(query)) {
    for (const AdminCheck& check : checks) {
      body += check.problem.empty() ? "[+] " + check.name + " ok\n" : "[-] " + check.name + ": " + check.problem + "\n";
    }
  }
  body += well ? "ok\n" : "failed\n";
  return text(well ? kOk : kNotReady, std::move(body));
}

}  // namespace

AdminServer::AdminServer(boost::asio::any_io_executor executor, async::Timers& timers, const base::Metrics& metrics,
                         AdminServerConfig config, AdminSources sources)
    : metrics_(metrics),
      config_(std::move(config)),
      sources_(std::move(sources)),
      server_(std::move(executor), timers, server_config(config_),
              [this](net::HttpServerRequest request) { return handle(std::move(request)); }) {}

base::Result<void> AdminServer::start() {
  base::Result<void> started = server_.start();
  if (started) return started;
  base::Error error = std::move(started.error());
  error.message =
      "admin.address " + config_.address + ", admin.port " + std::to_string(config_.port) + ": " + error.message;
  return base::fail(std::move(error));
}

boost::asio::awaitable<net::HttpServerResponse> AdminServer::handle(net::HttpServerRequest request) {
  co_return answer(request);
}

net::HttpServerResponse AdminServer::answer(const net::HttpServerRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    net::HttpServerResponse refused = text(kMethodNotAllowed, "only GET and HEAD\n");
    refused.headers.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  const std::string_view path = request.path();
  if (path == "/healthz") return answer_checks(sources_.health, request.query());
  if (path == "/readyz") return answer_checks(sources_.readiness, request.query());
  if (path == "/metrics") return {kOk, "text/plain; version=0.0.4; charset=utf-8", metrics_.to_text()};
  if (sources_.debug_pods && (path == "/debug/pods" || path.starts_with(kPlacement))) return answer_debug(request);
  return text(kNotFound, "not found; there are /metrics, /healthz, /readyz" +
                             std::string(sources_.debug_pods ? ", /debug/pods, /debug/placement/<uid>" : "") + "\n");
}

net::HttpServerResponse AdminServer::answer_debug(const net::HttpServerRequest& request) const {
  if (!request.from_loopback) {
    return text(kForbidden, "/debug is for peers on this machine; use kubectl port-forward or exec\n");
  }
  const std::string_view path = request.path();
  if (path == "/debug/pods") return {kOk, "application/json", sources_.debug_pods()};
  const auto found = sources_.debug_placement ? sources_.debug_placement(std::string(path.substr(kPlacement.size())))
                                              : std::optional<std::string>();
  return found ? net::HttpServerResponse{kOk, "application/json", *found}
               : text(kNotFound, "no pod of this daemon has that UID\n");
}

}  // namespace spillway::api
