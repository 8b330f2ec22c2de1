// The kubelet's HTTP API of one virtual node: who may come in, what there is, and where each request goes.
//
// Owned by the kubelet API, one per node; reactor thread only. A node has a port of its own: that is how a caller who
// asks for "the node's" metrics or pods says which node it means, and how a right to one node opens no other. Reads
// only; what it tells comes from its sources, so that it knows no controller.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "vk-provider/api/authn.hpp"
#include "vk-provider/api/container_access.hpp"
#include "vk-provider/api/kubelet_config.hpp"
#include "vk-provider/api/kubelet_routes.hpp"
#include "vk-provider/api/stream_request.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/core/pod_view.hpp"
#include "vk-provider/core/probe_view.hpp"
#include "vk-provider/core/usage_book.hpp"
#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/net/http_server.hpp"
#include "vk-provider/net/url.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::api {

/// What the kubelet API tells of; all of it outlives the servers.
struct KubeletSources {
  KubeletSources() = default;
  const core::PodView* pods = nullptr;
  const core::ProbeView* probes = nullptr;
  const core::UsageBook* usage = nullptr;
  /// Somebody wants to know what is used: returns when the book is fresh, or at the deadline.
  std::function<boost::asio::awaitable<void>(base::Deadline)> refresh_usage;
  /// Some provider could not be asked what is used.
  std::function<bool()> usage_failing;
  /// Null for one that is not configured.
  std::function<provider::Provider*(const base::ProviderName&)> find_provider;
  /// Why the pods are not known completely; empty: they are.
  std::function<std::string()> unsynced;
  kube::KubeApi* api = nullptr;
  base::Metrics* metrics = nullptr;
  async::Timers* timers = nullptr;
};

class KubeletServer {
 public:
  /// `max_pods` is the node's, for /configz. `distrusted` is told of each client certificate that nobody vouches for.
  KubeletServer(boost::asio::any_io_executor executor, const KubeletSources& sources, Authn& authn,
                const KubeletApiConfig& config, std::string node, std::string max_pods,
                std::function<void()> distrusted);
  KubeletServer(const KubeletServer&) = delete;
  KubeletServer& operator=(const KubeletServer&) = delete;

  /// Begins to listen; the errors of net::HttpServer.
  base::Result<void> start(std::uint16_t port, net::ServerTls tls);
  base::Result<void> replace_tls(net::ServerTls tls) { return server_->replace_tls(std::move(tls)); }
  /// After start().
  std::uint16_t port() const { return server_->port(); }
  const std::string& node() const { return node_; }
  boost::asio::awaitable<void> stop(base::Deadline deadline);

  /// What a request is answered.
  boost::asio::awaitable<net::HttpServerResponse> handle(net::HttpServerRequest request);

 private:
  boost::asio::awaitable<net::HttpServerResponse> serve(Route route, net::HttpServerRequest request, std::string user);
  net::HttpServerResponse serve_fixed(const Route& route) const;
  boost::asio::awaitable<net::HttpServerResponse> serve_usage(RouteKind kind);
  boost::asio::awaitable<net::HttpServerResponse> serve_pods();
  boost::asio::awaitable<net::HttpServerResponse> serve_logs(Route route, net::Query query);
  net::HttpServerResponse serve_command(const Route& route, net::HttpServerRequest request, const std::string& user);
  net::HttpServerResponse serve_ports(const Route& route, net::HttpServerRequest request, const std::string& user);
  net::HttpServerResponse health(const std::string& check) const;
  Answer<const model::PodRecord*> find(const Route& route) const;
  Answer<provider::Provider*> provider_of(const model::InstanceRef& ref) const;
  StreamTimes stream_times() const;
  Credentials credentials_of(const net::HttpServerRequest& request) const;

  boost::asio::any_io_executor executor_;
  const KubeletSources& s_;
  Authn& authn_;
  const KubeletApiConfig& config_;
  std::string node_;
  std::string max_pods_;
  std::function<void()> distrusted_;
  base::WallTime started_;
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace spillway::api
