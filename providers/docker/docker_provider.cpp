#include "providers/docker/docker_provider.hpp"

#include <fstream>
#include <iterator>

#include "providers/docker/gather.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;
using model::Capability;

base::Result<std::string> read_file(const std::string& path, std::string_view what) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || content.empty()) {
    return base::fail(ErrorKind::kInvalid, std::string(what) + ": " + path + " cannot be read or is empty");
  }
  return content;
}

base::Result<std::unique_ptr<net::HttpClient>> make_client(const HostConfig& host, net::HttpClientFactory& factory) {
  const std::string where = "docker host " + host.name + ": tls.";
  net::Endpoint endpoint = host.endpoint;
  auto ca = read_file(host.tls.ca, where + "caFile");
  if (!ca) return base::fail(std::move(ca.error()));
  auto cert = read_file(host.tls.cert, where + "certFile");
  if (!cert) return base::fail(std::move(cert.error()));
  auto key = read_file(host.tls.key, where + "keyFile");
  if (!key) return base::fail(std::move(key.error()));
  endpoint.ca_pem = std::move(*ca);
  endpoint.client_cert_pem = std::move(*cert);
  endpoint.client_key_pem = base::Secret(std::move(*key));
  return factory.make(std::move(endpoint));
}

base::Result<std::unique_ptr<provider::Provider>> make(base::ProviderName name, const nlohmann::json& node,
                                                       const provider::ProviderDeps& deps) {
  ParsedConfig parsed = parse_config(node);
  if (!parsed.faults.empty()) {
    const provider::ConfigFault& first = parsed.faults.front();
    return base::fail(ErrorKind::kInvalid, first.path + " " + first.message);
  }
  std::vector<std::unique_ptr<net::HttpClient>> clients;
  for (const HostConfig& host : parsed.config.hosts) {
    auto client = make_client(host, *deps.http);
    if (!client) return base::fail(std::move(client.error()));
    clients.push_back(std::move(*client));
  }
  return std::make_unique<DockerProvider>(std::move(name), std::move(parsed.config), std::move(clients), deps);
}

}  // namespace

model::CapabilitySet capabilities() {
  return {Capability::kMultiContainer,
          Capability::kInitContainers,
          Capability::kFiles,
          Capability::kVolumes,
          Capability::kShm,
          Capability::kSecurityContext,
          Capability::kSharedProcesses,
          Capability::kHostname,
          Capability::kHostAliases,
          Capability::kDnsConfig,
          Capability::kStopSignal,
          Capability::kTerminationMessage,
          Capability::kPutFiles,
          Capability::kTty,
          Capability::kRegistryAuth,
          Capability::kLogs,
          Capability::kExec,
          Capability::kAttach,
          Capability::kDial,
          Capability::kSamples,
          Capability::kExitCode,
          Capability::kRestartContainer,
          Capability::kKeepStopped,
          Capability::kPortsTcp,
          Capability::kPortsHttp,
          Capability::kStopGrace,
          Capability::kRegions,
          Capability::kEntrypoint,
          Capability::kWorkingDir};
}

provider::ProviderType provider_type() {
  provider::ProviderType type;
  type.capabilities = capabilities();
  type.costs_money = false;
  type.validate = [](const nlohmann::json& node) { return parse_config(node).faults; };
  type.make = make;
  return type;
}

DockerProvider::DockerProvider(base::ProviderName name, Config config,
                               std::vector<std::unique_ptr<net::HttpClient>> clients,
                               const provider::ProviderDeps& deps)
    : timers_(*deps.timers), background_(deps.executor) {
  info_.name = std::move(name);
  info_.type = "docker";
  info_.capabilities = capabilities();
  info_.own_machines = true;
  info_.settle_time = std::chrono::seconds(5);

  HostContext context;
  context.executor = deps.executor;
  context.timers = deps.timers;
  context.background = &background_;
  context.provider = info_.name;
  context.pull_progress_timeout = config.pull_progress_timeout;
  context.disk_usage_every = config.disk_usage_every;
  context.container_scheme = config.container_scheme;
  for (size_t i = 0; i < config.hosts.size(); ++i) {
    hosts_.push_back(std::make_unique<Host>(std::move(config.hosts[i]), std::move(clients[i]), context));
  }
}

base::Result<DockerProvider::Place> DockerProvider::find(const model::InstanceRef& ref) const {
  const auto parsed = from_instance_id(ref.id);
  // An id that is not of our making names nothing that exists.
  if (!parsed) return base::fail(ErrorKind::kNotFound, "\"" + ref.id.str() + "\" is no id of a docker instance");
  for (const auto& host : hosts_) {
    if (host->name() != parsed->host) continue;
    Place place;
    place.host = host.get();
    place.tag = parsed->tag;
    return place;
  }
  // Not kNotFound: its containers may run on, and somebody has to end them.
  return base::fail(ErrorKind::kUnavailable, "docker host " + parsed->host + " of instance " + parsed->tag +
                                                 " is not in the configuration of provider " + info_.name.str() +
                                                 "; put it back until its instances are gone");
}

async::Task<std::vector<model::Offer>> DockerProvider::list_offers(base::Deadline deadline) {
  std::vector<async::Task<std::vector<model::Offer>>> tasks;
  for (const auto& host : hosts_) tasks.push_back(host->list_offers(deadline));
  auto results = co_await gather<std::vector<model::Offer>>(background_, timers_, std::move(tasks));
  std::vector<model::Offer> offers;
  std::optional<base::Error> error;
  size_t failed = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) {
      ++failed;
      if (!error) error = results[i].error();
    }
    std::vector<model::Offer> of_host = results[i] ? std::move(*results[i]) : hosts_[i]->unavailable_offers();
    std::move(of_host.begin(), of_host.end(), std::back_inserter(offers));
  }
  if (failed == results.size()) co_return base::fail(std::move(*error));
  co_return offers;
}

async::Task<model::Instance> DockerProvider::create(model::Placement placement, model::ResolvedPod pod,
                                                    base::Deadline deadline) {
  const std::string host_name = placement.offer.str().substr(0, placement.offer.str().find('/'));
  for (const auto& host : hosts_) {
    if (host->name() == host_name) co_return co_await host->create(std::move(placement), std::move(pod), deadline);
  }
  co_return base::fail(ErrorKind::kInvalid,
                       "provider " + info_.name.str() + " has no docker host for offer " + placement.offer.str());
}

async::Task<model::Instance> DockerProvider::get(model::InstanceRef ref, base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->get(place->tag, deadline);
}

async::Task<provider::OwnedList> DockerProvider::list_owned(std::string tag_prefix, base::Deadline deadline) {
  std::vector<async::Task<std::vector<model::Instance>>> tasks;
  for (const auto& host : hosts_) tasks.push_back(host->list_owned(tag_prefix, deadline));
  auto results = co_await gather<std::vector<model::Instance>>(background_, timers_, std::move(tasks));
  provider::OwnedList owned;
  size_t failed = 0;
  for (auto& result : results) {
    if (result) {
      std::move(result->begin(), result->end(), std::back_inserter(owned.instances));
      continue;
    }
    ++failed;
    owned.complete = false;
    if (!owned.incomplete_why.empty()) owned.incomplete_why += "; ";
    owned.incomplete_why += result.error().message;
  }
  // Nobody answered: that is an outage, not a short list.
  if (failed == results.size()) co_return base::fail(results.front().error());
  co_return owned;
}

async::Task<void> DockerProvider::terminate(model::InstanceRef ref, std::chrono::seconds grace,
                                            base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->terminate(place->tag, grace, deadline);
}

async::Task<void> DockerProvider::control_container(model::InstanceRef ref, std::string container,
                                                    provider::ContainerAction action, std::chrono::seconds grace,
                                                    base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->control(place->tag, std::move(container), action, grace, deadline);
}

async::Task<async::ByteStreamPtr> DockerProvider::open_logs(model::InstanceRef ref, provider::LogOptions options,
                                                            base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->open_logs(place->tag, std::move(options), deadline);
}

async::Task<std::vector<provider::Sample>> DockerProvider::samples(base::Deadline deadline) {
  std::vector<async::Task<std::vector<provider::Sample>>> tasks;
  for (const auto& host : hosts_) tasks.push_back(host->samples(deadline));
  auto results = co_await gather<std::vector<provider::Sample>>(background_, timers_, std::move(tasks));
  std::vector<provider::Sample> samples;
  size_t failed = 0;
  for (auto& result : results) {
    if (result) std::move(result->begin(), result->end(), std::back_inserter(samples));
    if (!result) ++failed;
  }
  if (failed == results.size()) co_return base::fail(results.front().error());
  co_return samples;
}

async::Task<provider::ExecSessionPtr> DockerProvider::open_exec(model::InstanceRef ref, provider::ExecOptions options,
                                                                base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->open_exec(place->tag, std::move(options), deadline);
}

async::Task<async::ByteStreamPtr> DockerProvider::dial(model::InstanceRef ref, int port, base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->dial(place->tag, port, deadline);
}

async::Task<void> DockerProvider::put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                                            base::Deadline deadline) {
  const auto place = find(ref);
  if (!place) co_return base::fail(place.error());
  co_return co_await place->host->put_files(place->tag, std::move(files), deadline);
}

boost::asio::awaitable<void> DockerProvider::stop() {
  for (const auto& host : hosts_) host->cancel_pulls();
  co_await background_.stop();
}

}  // namespace spillway::providers::docker
