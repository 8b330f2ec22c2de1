// The admin port: /metrics, /healthz, /readyz and, for peers on this machine, /debug/pods and /debug/placement/<uid>.
//
// Owned by the daemon, which awaits stop() before it dies; reactor thread only. Reads only; what it tells comes from
// callbacks, so that it knows no controller. Does not authenticate: nothing here is secret but what stands under
// /debug.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::api {

/// One thing that is asked for /healthz or /readyz.
struct AdminCheck {
  AdminCheck() = default;
  AdminCheck(std::string n, std::string p) : name(std::move(n)), problem(std::move(p)) {}
  std::string name;
  std::string problem;  // empty: all is well
};

struct AdminSources {
  AdminSources() = default;
  /// Empty: alive as long as the reactor answers.
  std::function<std::vector<AdminCheck>()> health;
  /// Empty: ready.
  std::function<std::vector<AdminCheck>()> readiness;
  /// JSON text. Empty: there is no /debug/pods.
  std::function<std::string()> debug_pods;
  /// JSON text on the pod of this UID; an empty optional if there is none. Empty: there is no /debug/placement.
  std::function<std::optional<std::string>(const std::string& uid)> debug_placement;
};

struct AdminServerConfig {
  AdminServerConfig() = default;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one, see port()
};

class AdminServer {
 public:
  AdminServer(boost::asio::any_io_executor executor, async::Timers& timers, const base::Metrics& metrics,
              AdminServerConfig config, AdminSources sources);
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// Begins to listen; the errors of net::HttpServer, with admin.address and admin.port in the message.
  base::Result<void> start();
  /// After start().
  std::uint16_t port() const { return server_.port(); }
  boost::asio::awaitable<void> stop(base::Deadline deadline) { return server_.stop(deadline); }

  /// What a request is answered; no I/O.
  net::HttpServerResponse answer(const net::HttpServerRequest& request) const;

 private:
  net::HttpServerResponse answer_debug(const net::HttpServerRequest& request) const;
  boost::asio::awaitable<net::HttpServerResponse> handle(net::HttpServerRequest request);

  const base::Metrics& metrics_;
  AdminServerConfig config_;
  AdminSources sources_;
  net::HttpServer server_;
};

}  // namespace spillway::api
