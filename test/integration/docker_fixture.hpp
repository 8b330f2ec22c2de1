// A docker provider on the engine whose socket SPILLWAY_TEST_DOCKER_SOCKET names, in real time.
//
// The engine has an image `busybox:test` (or what SPILLWAY_TEST_DOCKER_IMAGE names) with sh, sleep and httpd. A test
// ends what it made by the provider; what one that failed has left is removed after it.
#pragma once

#include <catch2/catch.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "providers/docker/docker_provider.hpp"
#include "test/support/provider_conformance.hpp"
#include "test/support/real_reactor.hpp"
#include "test/support/says.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/net/http_client.hpp"

namespace spillway::test {

/// What the runner set this variable to: `what` it names.
inline std::string from_runner(const std::string& variable, const std::string& what) {
  const char* const value = std::getenv(variable.c_str());
  if (value == nullptr) throw std::runtime_error(variable + " must name " + what);
  return value;
}

inline std::string engine_socket() {
  return from_runner("SPILLWAY_TEST_DOCKER_SOCKET", "the socket of a Docker engine");
}

inline std::string engine_image() {
  const char* const image = std::getenv("SPILLWAY_TEST_DOCKER_IMAGE");
  return image == nullptr ? "busybox:test" : image;
}

/// Cuts the power of the engine, and returns when it answers again: SPILLWAY_TEST_DOCKER_POWER names a Unix socket of
/// which each connection is one cut.
inline void cut_power() {
  const std::string path = from_runner("SPILLWAY_TEST_DOCKER_POWER", "the socket of a power switch");
  boost::asio::io_context own;
  boost::asio::local::stream_protocol::socket power(own);
  power.connect({path});
  char byte = 0;
  boost::system::error_code end;
  power.read_some(boost::asio::buffer(&byte, 1), end);
}

class DockerFixture {
 public:
  DockerFixture() : http(reactor.ctx.get_executor(), reactor.timers), random(1), daemon(start_daemon()) {}
  ~DockerFixture() {
    stop_daemon();
    remove_leftovers();
  }
  DockerFixture(const DockerFixture&) = delete;
  DockerFixture& operator=(const DockerFixture&) = delete;

  static providers::docker::HostConfig host_config() {
    providers::docker::HostConfig host;
    host.name = "box";
    host.region = "here";
    host.endpoint.scheme = net::Endpoint::Scheme::kUnix;
    host.endpoint.unix_path = engine_socket();
    host.price_per_hour = base::Money::from_micros(50'000);
    host.price_per_gpu_hour = base::Money::from_micros(1'000'000);
    host.gpu_count = 4;
    host.gpu_model = "A100-80GB";
    host.gpu_request = providers::docker::GpuRequest::kEnvironment;
    host.cpu_milli = 2000;
    return host;
  }

  /// Another process on the same engine: it knows nothing of the first.
  std::unique_ptr<providers::docker::DockerProvider> start_daemon(providers::docker::HostConfig host = host_config()) {
    providers::docker::Config config;
    config.hosts.push_back(std::move(host));
    std::vector<std::unique_ptr<net::HttpClient>> clients;
    clients.push_back(std::move(*http.make(config.hosts.front().endpoint)));
    provider::ProviderDeps deps;
    deps.executor = reactor.ctx.get_executor();
    deps.timers = &reactor.timers;
    deps.random = &random;
    deps.http = &http;
    return std::make_unique<providers::docker::DockerProvider>(base::ProviderName("docker"), std::move(config),
                                                               std::move(clients), deps);
  }
  void stop_daemon() {
    if (daemon) reactor.run(daemon->stop());
    daemon.reset();
  }
  void restart_daemon(providers::docker::HostConfig host = host_config()) {
    stop_daemon();
    daemon = start_daemon(std::move(host));
  }

  base::Deadline soon() { return reactor.timers.now() + std::chrono::seconds(30); }

  static model::Placement placement(const std::string& tag, int gpus = 0) {
    model::Placement out;
    out.provider = base::ProviderName("docker");
    out.offer = base::OfferId(gpus == 0 ? "box/cpu" : "box/gpu-" + std::to_string(gpus));
    out.gpu_count = gpus;
    out.tag = base::InstanceTag(tag);
    return out;
  }

  /// A pod of one container `main` that runs this shell script.
  static model::ResolvedPod pod(std::string script, model::RestartPolicy policy = model::RestartPolicy::kNever) {
    model::ResolvedPod out = make_conformance_pod(engine_image());
    auto spec = std::make_shared<model::PodSpec>(*out.spec);
    spec->restart_policy = policy;
    spec->grace = std::chrono::seconds(2);
    out.spec = std::move(spec);
    out.containers[0].command = {"sh", "-c", std::move(script)};
    return out;
  }
  static model::ResolvedPod lasting_pod() { return pod("trap 'exit 0' TERM; while :; do sleep 1 & wait; done"); }

  base::Result<model::Instance> create(model::Placement placement, model::ResolvedPod pod) {
    return reactor.run(daemon->create(std::move(placement), std::move(pod), soon()));
  }
  base::Result<model::Instance> get(const model::InstanceRef& ref) { return reactor.run(daemon->get(ref, soon())); }

  template <class Predicate>
  model::Instance get_until(const model::InstanceRef& ref, Predicate done) {
    for (int i = 0; i < 200; ++i) {
      auto instance = get(ref);
      if (!instance) throw std::runtime_error("get: " + instance.error().message);
      if (done(*instance)) return *instance;
      reactor.run(reactor.timers.sleep_for(std::chrono::milliseconds(50)));
    }
    const auto last = get(ref);
    throw std::runtime_error("the instance did not get there: " + std::string(model::to_string(last->state)) + " " +
                             last->message);
  }
  model::Instance get_running(const model::InstanceRef& ref) {
    return get_until(ref, [](const model::Instance& i) { return i.state == model::InstanceState::kRunning; });
  }
  model::Instance get_exited(const model::InstanceRef& ref) {
    return get_until(ref, [](const model::Instance& i) { return i.state == model::InstanceState::kExited; });
  }

  /// Ends it and waits until it is gone.
  void end(const model::InstanceRef& ref, std::chrono::seconds grace = std::chrono::seconds(0)) {
    for (int i = 0; i < 400; ++i) {
      const auto asked = reactor.run(daemon->terminate(ref, grace, soon()));
      if (!asked && asked.error().kind != base::ErrorKind::kNotFound) FAIL(asked.error().message);
      const auto left = get(ref);
      if (!left && left.error().kind == base::ErrorKind::kNotFound) return;
      reactor.run(reactor.timers.sleep_for(std::chrono::milliseconds(50)));
    }
    FAIL("the instance is not gone");
  }

  /// One request of our own. On a reactor of its own: cases ask from inside a coroutine.
  static net::HttpResponse api(net::Method method, std::string target, std::string body = "") {
    RealReactor own;
    net::BeastHttpClientFactory factory(own.ctx.get_executor(), own.timers);
    const auto client = std::move(*factory.make(host_config().endpoint));
    net::HttpRequest request;
    request.method = method;
    request.target = "/v1.41" + std::move(target);
    request.body = std::move(body);
    request.content_type = "application/json";
    auto response = own.run(client->send(std::move(request), own.timers.now() + std::chrono::seconds(30)));
    if (!response) throw std::runtime_error(response.error().message);
    return std::move(*response);
  }

  static void remove_leftovers() {
    const auto listing = api(net::Method::kGet,
                             "/containers/json?all=true&" + providers::docker::encode_label_filter("spillway.dev/tag"));
    const auto entries = providers::docker::decode_list(listing.body);
    if (!entries) return;
    for (const auto& entry : *entries) {
      if (!entry.name.starts_with("spw-it-") && !entry.name.starts_with("spw-conf-")) continue;
      api(net::Method::kDelete, "/containers/" + entry.id + "?force=true&v=true");
    }
  }

  RealReactor reactor;
  net::BeastHttpClientFactory http;
  base::SeededRandom random;
  std::unique_ptr<providers::docker::DockerProvider> daemon;
};

}  // namespace spillway::test
