#include "vk-provider/api/kubelet_server.hpp"

#include <utility>

#include "vk-provider/api/configz.hpp"
#include "vk-provider/api/logs.hpp"
#include "vk-provider/api/measures.hpp"
#include "vk-provider/api/pods.hpp"
#include "vk-provider/api/port_forward.hpp"
#include "vk-provider/api/remote_command.hpp"
#include "vk-provider/api/resource_metrics.hpp"
#include "vk-provider/api/stats.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::api {
namespace log = base::log;

namespace {

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kInternal = 500;
constexpr int kNotImplemented = 501;

constexpr base::Duration kAdmission = std::chrono::seconds(10);
constexpr base::Duration kUsage = std::chrono::seconds(5);     // for what is used to be asked for
constexpr base::Duration kOpening = std::chrono::seconds(30);  // of a log, or of the API server's list

constexpr const char* kJson = "application/json";

net::HttpServerResponse text(int status, std::string body) {
  return {status, "text/plain; charset=utf-8", std::move(body)};
}

net::HttpServerResponse text(const Refusal& refusal) { return text(refusal.status, refusal.text); }

net::HttpServerResponse refuse_stream(const Refusal& refusal) {
  return api::refuse_stream(refusal.status, refusal.text);
}

net::HttpServerConfig server_config(const KubeletApiConfig& config, std::uint16_t port, net::ServerTls tls) {
  net::HttpServerConfig out;
  out.host = config.address;
  out.port = port;
  out.tls = std::move(tls);
  out.max_header = config.limits.header;
  out.max_body = config.limits.body;
  out.max_connections = static_cast<std::size_t>(config.limits.connections);
  out.max_streams = static_cast<std::size_t>(config.limits.streams);
  out.stall_time = config.limits.idle;
  return out;
}

}  // namespace

KubeletServer::KubeletServer(boost::asio::any_io_executor executor, const KubeletSources& sources, Authn& authn,
                             const KubeletApiConfig& config, std::string node, std::string max_pods,
                             std::function<void()> distrusted)
    : executor_(std::move(executor)),
      s_(sources),
      authn_(authn),
      config_(config),
      node_(std::move(node)),
      max_pods_(std::move(max_pods)),
      distrusted_(std::move(distrusted)),
      started_(sources.timers->wall()) {}

base::Result<void> KubeletServer::start(std::uint16_t port, net::ServerTls tls) {
  server_ =
      std::make_unique<net::HttpServer>(executor_, *s_.timers, server_config(config_, port, std::move(tls)),
                                        [this](net::HttpServerRequest request) { return handle(std::move(request)); });
  return server_->start();
}

boost::asio::awaitable<void> KubeletServer::stop(base::Deadline deadline) {
  if (server_) co_await server_->stop(deadline);
}

StreamTimes KubeletServer::stream_times() const {
  StreamTimes times;
  times.idle = config_.limits.idle;
  return times;
}

Credentials KubeletServer::credentials_of(const net::HttpServerRequest& request) const {
  Credentials out;
  if (request.peer_certificate) {
    const net::PeerCertificate& shown = *request.peer_certificate;
    // One without a name is nobody's, whoever signed it.
    out.certificate_refused = !shown.trusted() || shown.common_name.empty();
    if (out.certificate_refused) {
      distrusted_();
    } else {
      out.certificate = user_of_certificate(shown.common_name, shown.organizations);
    }
  }
  if (const auto header = request.header("Authorization")) out.bearer = bearer_of(*header);
  return out;
}

boost::asio::awaitable<net::HttpServerResponse> KubeletServer::handle(net::HttpServerRequest request) {
  const std::vector<std::string> segments = split_path(request.path());
  Route route = find_route(request.method, segments);
  const std::string kind(to_string(route.kind));
  AccessAttributes wanted;
  wanted.node = node_;
  wanted.verb = verb_of(request.method);
  wanted.subresources = subresources_of(segments.empty() ? std::string_view() : segments.front());
  Admission admission =
      co_await authn_.admit(credentials_of(request), std::move(wanted), s_.timers->now() + kAdmission);
  net::HttpServerResponse response;
  if (admission.status == kOk) {
    response = co_await serve(std::move(route), std::move(request), std::move(admission.user));
  } else {
    response = text(admission.status, std::move(admission.body));
  }
  // A connection that is taken over answers for itself.
  const int status = response.take_over ? 101 : response.status;
  s_.metrics
      ->counter("spillway_kubelet_requests_total", "Requests to the kubelet API.",
                {{"route", kind}, {"code", std::to_string(status)}})
      .add();
  co_return response;
}

boost::asio::awaitable<net::HttpServerResponse> KubeletServer::serve(Route route, net::HttpServerRequest request,
                                                                     std::string user) {
  switch (route.kind) {
    case RouteKind::kStatsSummary:
    case RouteKind::kMetricsResource:
    case RouteKind::kMetricsCadvisor: co_return co_await serve_usage(route.kind);
    case RouteKind::kPods: co_return co_await serve_pods();
    case RouteKind::kContainerLogs: {
      net::Query query(request.query());
      co_return co_await serve_logs(std::move(route), std::move(query));
    }
    case RouteKind::kExec:
    case RouteKind::kAttach: co_return serve_command(route, std::move(request), user);
    case RouteKind::kPortForward: co_return serve_ports(route, std::move(request), user);
    default: co_return serve_fixed(route);
  }
}

net::HttpServerResponse KubeletServer::serve_fixed(const Route& route) const {
  switch (route.kind) {
    case RouteKind::kRunningPods: return {kOk, kJson, to_running_pods(*s_.pods, node_)};
    case RouteKind::kMetrics: return {kOk, kMetricsType, s_.metrics->to_text()};
    case RouteKind::kMetricsProbes: return {kOk, kMetricsType, to_probe_metrics(*s_.probes, node_)};
    case RouteKind::kConfigz:
      return {kOk, kJson, to_configz(config_, server_ ? server_->port() : config_.port, max_pods_)};
    case RouteKind::kHealthz: return health(route.check);
    case RouteKind::kMethod: {
      net::HttpServerResponse refused = text(kMethodNotAllowed, "405: Method Not Allowed");
      refused.headers.emplace_back("Allow", route.allow);
      return refused;
    }
    case RouteKind::kDisabled:
      return text(kNotImplemented, "this endpoint is disabled: a virtual node has no machine of its own");
    default: return text(kNotFound, "404: Page Not Found");
  }
}

net::HttpServerResponse KubeletServer::health(const std::string& check) const {
  const bool asked = check.empty() || check == "syncloop";
  const std::string problem = asked ? s_.unsynced() : std::string();
  if (problem.empty()) return text(kOk, "ok");
  return text(kInternal, "[-] syncloop: " + problem + "\nhealthz check failed\n");
}

boost::asio::awaitable<net::HttpServerResponse> KubeletServer::serve_usage(RouteKind kind) {
  co_await s_.refresh_usage(s_.timers->now() + kUsage);
  const NodeMeasure measured = measure_node(*s_.pods, *s_.usage, node_, s_.timers->both());
  switch (kind) {
    case RouteKind::kStatsSummary: co_return net::HttpServerResponse(kOk, kJson, to_stats_summary(measured, started_));
    case RouteKind::kMetricsCadvisor:
      co_return net::HttpServerResponse(kOk, kMetricsType, to_cadvisor_metrics(measured));
    default: co_return net::HttpServerResponse(kOk, kMetricsType, to_resource_metrics(measured, s_.usage_failing()));
  }
}

/// The API server's own list: complete, and nothing has to be kept for it. A record holds what is acted on, and would
/// be less than what callers of a kubelet expect.
boost::asio::awaitable<net::HttpServerResponse> KubeletServer::serve_pods() {
  kube::KubeRequest request;
  // From its cache, as every kubelet's first list is.
  request.target =
      "/api/v1/pods?fieldSelector=" + net::encode_query_value("spec.nodeName=" + node_) + "&resourceVersion=0";
  auto list = co_await s_.api->watch(std::move(request), s_.timers->now() + kOpening);
  if (!list) {
    const Refusal refusal = refusal_of(list.error());
    co_return text(refusal.status, "the API server cannot be asked for the pods: " + refusal.text);
  }
  net::HttpServerResponse response(kOk, kJson, {});
  response.stream = std::move(*list);
  co_return response;
}

Answer<const model::PodRecord*> KubeletServer::find(const Route& route) const {
  PodName name;
  name.ns = route.ns;
  name.pod = route.pod;
  name.uid = route.uid;
  return find_pod(*s_.pods, node_, name);
}

Answer<provider::Provider*> KubeletServer::provider_of(const model::InstanceRef& ref) const {
  provider::Provider* const provider = s_.find_provider(ref.provider);
  if (provider != nullptr) return provider;
  return refuse(kInternal, "the provider " + ref.provider.str() + " of the pod is not configured");
}

boost::asio::awaitable<net::HttpServerResponse> KubeletServer::serve_logs(Route route, net::Query query) {
  auto options = parse_log_query(query, route.container, s_.timers->wall());
  if (!options) co_return text(options.error());
  const auto pod = find(route);
  if (!pod) co_return text(pod.error());
  const auto ref = find_log(**pod, route.container, options->previous, s_.timers->both());
  if (!ref) co_return text(ref.error());
  const auto provider = provider_of(*ref);
  if (!provider) co_return text(provider.error());
  auto log = co_await (*provider)->open_logs(*ref, std::move(*options), s_.timers->now() + kOpening);
  if (!log) co_return text(refusal_of(log.error()));
  net::HttpServerResponse response(kOk, "text/plain", {});
  response.stream = std::move(*log);
  co_return response;
}

net::HttpServerResponse KubeletServer::serve_command(const Route& route, net::HttpServerRequest request,
                                                     const std::string& user) {
  const net::Query query(request.query());
  const auto streams = parse_remote_streams(query);
  if (!streams) return api::refuse_stream(kBadRequest, streams.error().message);
  const auto pod = find(route);
  if (!pod) return refuse_stream(pod.error());
  const auto ref = find_running(**pod, route.container, s_.timers->both());
  if (!ref) return refuse_stream(ref.error());
  const auto provider = provider_of(*ref);
  if (!provider) return refuse_stream(provider.error());
  const bool attach = route.kind == RouteKind::kAttach;
  provider::ExecOptions options;
  options.container = route.container;
  options.stdin_open = streams->input;
  if (attach) {
    // A process has the terminal that it was started with.
    options.tty = core::find_spec(*(*pod)->spec, route.container)->tty;
  } else {
    options.tty = streams->tty;
    options.command = query.all("command");
    if (options.command.empty())
      return api::refuse_stream(kBadRequest, "you must specify at least 1 command for the container");
  }
  log::info(attach ? "attach" : "exec",
            {{"pod", (*pod)->key().to_string()}, {"container", route.container}, {"user", user}});
  auto open = [p = *provider, ref = *ref, options = std::move(options)](base::Deadline deadline) {
    return p->open_exec(ref, options, deadline);
  };
  return answer_remote_command(std::move(request), *streams, std::move(open), *s_.timers, stream_times());
}

net::HttpServerResponse KubeletServer::serve_ports(const Route& route, net::HttpServerRequest request,
                                                   const std::string& user) {
  const auto pod = find(route);
  if (!pod) return refuse_stream(pod.error());
  const auto ref = find_ports(**pod);
  if (!ref) return refuse_stream(ref.error());
  const auto provider = provider_of(*ref);
  if (!provider) return refuse_stream(provider.error());
  log::info("port-forward", {{"pod", (*pod)->key().to_string()}, {"user", user}});
  auto dial = [p = *provider, ref = *ref](int port, base::Deadline deadline) { return p->dial(ref, port, deadline); };
  return answer_port_forward(std::move(request), (*pod)->key().to_string(), std::move(dial), *s_.timers,
                             stream_times());
}

}  // namespace spillway::api
