// A docker provider over engines in memory, in virtual time, for the tests beside this file.
#pragma once

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "providers/docker/docker_provider.hpp"
#include "test/support/docker_engine_model.hpp"
#include "test/support/provider_conformance.hpp"
#include "test/support/says.hpp"
#include "test/support/virtual_time.hpp"

namespace spillway::test {

class DockerRig {
 public:
  /// Hosts `box-0`, `box-1`, ... with two GPUs each.
  explicit DockerRig(size_t hosts = 1) {
    for (size_t i = 0; i < hosts; ++i) {
      providers::docker::HostConfig host;
      host.name = "box-" + std::to_string(i);
      host.region = "lab";
      host.price_per_hour = base::Money::from_micros(50'000);
      host.price_per_gpu_hour = base::Money::from_micros(1'000'000);
      host.gpu_model = "H100";
      host.gpu_count = 2;
      host.gpu_memory = 80LL << 30;
      host.cpu_milli = 16'000;
      host.memory = 64LL << 30;
      config.hosts.push_back(host);
      engines.push_back(std::make_unique<DockerEngineModel>(reactor.timers));
      engines.back()->images.insert("busybox:test");
    }
  }
  ~DockerRig() {
    if (daemon) stop_daemon();
  }
  DockerRig(const DockerRig&) = delete;
  DockerRig& operator=(const DockerRig&) = delete;

  provider::Provider& provider() {
    if (!daemon) start_daemon();
    return *daemon;
  }
  void start_daemon() {
    std::vector<std::unique_ptr<net::HttpClient>> clients;
    for (const auto& e : engines) clients.push_back(e->client());
    provider::ProviderDeps deps;
    deps.executor = reactor.ctx.get_executor();
    deps.timers = &reactor.timers;
    daemon = std::make_unique<providers::docker::DockerProvider>(base::ProviderName("docker"), config,
                                                                 std::move(clients), deps);
  }
  void stop_daemon() {
    reactor.run(daemon->stop());
    daemon.reset();
  }
  void restart_daemon() {
    stop_daemon();
    start_daemon();
  }

  DockerEngineModel& engine(size_t i = 0) { return *engines[i]; }
  base::Deadline soon() { return reactor.timers.now() + std::chrono::seconds(20); }

  static model::Placement placement(const std::string& tag, int gpus = 0, const std::string& host = "box-0") {
    model::Placement out;
    out.provider = base::ProviderName("docker");
    out.offer = base::OfferId(host + (gpus == 0 ? "/cpu" : "/gpu-" + std::to_string(gpus)));
    out.gpu_count = gpus;
    out.tag = base::InstanceTag(tag);
    return out;
  }
  static model::ResolvedPod pod(model::RestartPolicy policy = model::RestartPolicy::kAlways,
                                const std::string& image = "busybox:test") {
    model::ResolvedPod out = make_conformance_pod(image);
    auto spec = std::make_shared<model::PodSpec>(*out.spec);
    spec->restart_policy = policy;
    out.spec = std::move(spec);
    return out;
  }

  /// init `setup`, sidecar `proxy`, and `main`: only the first starts at once.
  static model::ResolvedPod pod_with_init(model::RestartPolicy policy = model::RestartPolicy::kNever) {
    model::ResolvedPod out = pod(policy);
    const model::ResolvedContainer main = out.containers.at(0);
    out.containers = {main, main, main};
    out.containers[0].name = "setup";
    out.containers[0].role = model::ContainerRole::kInit;
    out.containers[1].name = "proxy";
    out.containers[1].role = model::ContainerRole::kSidecar;
    out.containers[1].start_at_once = false;
    out.containers[2].start_at_once = false;
    return out;
  }

  base::Result<model::Instance> create(model::Placement placement, model::ResolvedPod pod = DockerRig::pod()) {
    return reactor.run(provider().create(std::move(placement), std::move(pod), soon()));
  }
  static model::InstanceRef ref(const std::string& tag, const std::string& host = "box-0") {
    return model::InstanceRef(base::ProviderName("docker"), base::InstanceId(host + "/" + tag));
  }
  base::Result<model::Instance> get(const std::string& tag, const std::string& host = "box-0") {
    return reactor.run(provider().get(ref(tag, host), soon()));
  }
  base::Result<void> terminate(const std::string& tag, std::chrono::seconds grace = std::chrono::seconds(0)) {
    return reactor.run(provider().terminate(ref(tag), grace, soon()));
  }
  base::Result<provider::OwnedList> list() { return reactor.run(provider().list_owned("spw-", soon())); }
  base::Result<std::vector<model::Offer>> offers() { return reactor.run(provider().list_offers(soon())); }
  base::Result<void> control(const std::string& tag, provider::ContainerAction action,
                             const std::string& container = "main") {
    return reactor.run(provider().control_container(ref(tag), container, action, std::chrono::seconds(10), soon()));
  }

  model::InstanceState state(const std::string& tag) {
    const auto instance = get(tag);
    REQUIRE(instance);
    return instance->state;
  }
  /// Lets background work go on without time passing.
  void settle() { reactor.settle(); }
  void pass(base::Duration d) { reactor.run_for(d); }

  VirtualReactor reactor;
  providers::docker::Config config;
  std::vector<std::unique_ptr<DockerEngineModel>> engines;
  std::unique_ptr<providers::docker::DockerProvider> daemon;
};

}  // namespace spillway::test
