#include "providers/fake/fake_provider.hpp"

#include <algorithm>

#include "providers/fake/config.hpp"
#include "providers/fake/in_process_cloud.hpp"
#include "providers/fake/log_stream.hpp"
#include "providers/fake/session.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;
using model::Capability;

CreateRequest to_request(const model::Placement& placement, const model::ResolvedPod& pod) {
  CreateRequest request;
  request.tag = placement.tag.text();
  request.offer = placement.offer.text();
  if (pod.spec) request.pod = pod.spec->key.to_string();
  request.public_ports = pod.public_ports;
  request.containers.reserve(pod.containers.size());
  for (const model::ResolvedContainer& c : pod.containers) {
    CreateRequest::Container container;
    container.name = c.name;
    container.image = c.image;
    container.start = c.start_at_once;
    request.containers.push_back(std::move(container));
  }
  if (!pod.spec) return request;
  const auto& annotations = pod.spec->annotations;
  for (auto it = annotations.lower_bound(std::string(model::kFakePrefix)); it != annotations.end(); ++it) {
    if (!it->first.starts_with(model::kFakePrefix)) break;
    request.orders.insert(*it);
  }
  return request;
}

}  // namespace

model::CapabilitySet capabilities() {
  return {
      Capability::kMultiContainer, Capability::kInitContainers, Capability::kExitCode,   Capability::kRestartContainer,
      Capability::kKeepStopped,    Capability::kPortsTcp,       Capability::kPortsHttp,  Capability::kStopGrace,
      Capability::kRegions,        Capability::kSpot,           Capability::kEntrypoint, Capability::kWorkingDir,
      Capability::kLogs,           Capability::kExec,           Capability::kAttach,     Capability::kDial,
      Capability::kSamples};
}

FakeProvider::FakeProvider(base::ProviderName name, std::unique_ptr<FakeCloud> owned, std::unique_ptr<FakeCloudApi> api,
                           async::Timers& timers, base::Duration settle_time, std::string pod_ip)
    : pod_ip_(std::move(pod_ip)), owned_(std::move(owned)), api_(std::move(api)), timers_(timers) {
  info_.name = std::move(name);
  info_.type = "fake";
  info_.settle_time = settle_time;
  info_.address_routable = !pod_ip_.empty();
  info_.capabilities = capabilities();
}

/// What only this end of the wire knows.
void FakeProvider::complete(model::Instance& instance) const {
  instance.ref.provider = info_.name;
  if (instance.state == model::InstanceState::kRunning) instance.address = pod_ip_;
}

async::Task<std::vector<model::Offer>> FakeProvider::list_offers(base::Deadline deadline) {
  auto offers = co_await api_->list_offers(deadline);
  if (offers) {
    for (model::Offer& offer : *offers) {
      offer.provider = info_.name;
      offer.seen_at = timers_.now();
    }
  }
  co_return offers;
}

async::Task<model::Instance> FakeProvider::create(model::Placement placement, model::ResolvedPod pod,
                                                  base::Deadline deadline) {
  CreateRequest request = to_request(placement, pod);
  auto instance = co_await api_->create(std::move(request), deadline);
  if (instance) complete(*instance);
  co_return instance;
}

async::Task<model::Instance> FakeProvider::get(model::InstanceRef ref, base::Deadline deadline) {
  auto instance = co_await api_->get(ref.id.str(), deadline);
  if (instance) complete(*instance);
  co_return instance;
}

async::Task<provider::OwnedList> FakeProvider::list_owned(std::string tag_prefix, base::Deadline deadline) {
  auto list = co_await api_->list_owned(std::move(tag_prefix), deadline);
  if (list) {
    for (model::Instance& instance : list->instances) complete(instance);
  }
  co_return list;
}

async::Task<void> FakeProvider::terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) {
  auto done = co_await api_->terminate(ref.id.str(), grace, deadline);
  if (!done && done.error().kind == base::ErrorKind::kNotFound) co_return base::Result<void>();
  co_return done;
}

async::Task<void> FakeProvider::control_container(model::InstanceRef ref, std::string container,
                                                  provider::ContainerAction action, std::chrono::seconds grace,
                                                  base::Deadline deadline) {
  co_return co_await api_->control(ref.id.str(), std::move(container), action, grace, deadline);
}

async::Task<async::ByteStreamPtr> FakeProvider::open_logs(model::InstanceRef ref, provider::LogOptions options,
                                                          base::Deadline deadline) {
  co_return co_await open_log(*api_, timers_, ref.id.str(), std::move(options), deadline);
}

async::Task<provider::ExecSessionPtr> FakeProvider::open_exec(model::InstanceRef ref, provider::ExecOptions options,
                                                              base::Deadline deadline) {
  const auto instance = co_await api_->get(ref.id.str(), deadline);
  if (!instance) co_return base::fail(instance.error());
  const std::string who = "container " + options.container + " of instance " + ref.id.str();
  const auto& containers = instance->containers;
  const auto c = std::ranges::find(containers, options.container,
                                   [](const auto& each) -> const std::string& { return each.name.str(); });
  if (c == containers.end()) co_return base::fail(ErrorKind::kNotFound, "there is no " + who);
  if (c->state != model::ContainerState::kRunning) co_return base::fail(ErrorKind::kConflict, who + " is not running");
  if (!options.command.empty()) co_return make_exec(timers_, std::move(options));
  if (options.stdin_open) co_return make_attach(timers_, options, nullptr);
  provider::LogOptions from_now;
  from_now.container = options.container;
  from_now.follow = true;
  from_now.tail_lines = 0;
  auto log = co_await open_log(*api_, timers_, ref.id.str(), std::move(from_now), deadline);
  if (!log) co_return base::fail(std::move(log.error()));
  co_return make_attach(timers_, options, std::move(*log));
}

async::Task<async::ByteStreamPtr> FakeProvider::dial(model::InstanceRef ref, int port, base::Deadline deadline) {
  const std::string peer = "port " + std::to_string(port) + " of instance " + ref.id.str();
  if (port <= 0 || port > 65535) co_return base::fail(ErrorKind::kInvalid, peer + ": there is no such port");
  const auto instance = co_await api_->get(ref.id.str(), deadline);
  if (!instance) co_return base::fail(instance.error());
  if (instance->state != model::InstanceState::kRunning) {
    co_return base::fail(ErrorKind::kConflict, peer + " cannot be connected to: nothing runs there");
  }
  co_return make_port(timers_, instance->tag.str() + " port " + std::to_string(port) + "\n");
}

async::Task<std::vector<provider::Sample>> FakeProvider::samples(base::Deadline deadline) {
  auto samples = co_await api_->samples(deadline);
  if (samples) {
    for (provider::Sample& sample : *samples) sample.instance.provider = info_.name;
  }
  co_return samples;
}

std::unique_ptr<provider::Provider> make_provider(base::ProviderName name, FakeCloud& cloud, async::Timers& timers) {
  return std::make_unique<FakeProvider>(std::move(name), nullptr, std::make_unique<InProcessCloud>(cloud, timers),
                                        timers, FakeConfig().settle_time);
}

provider::ProviderType provider_type_over(FakeCloud& cloud) {
  provider::ProviderType type;
  type.validate = [](const nlohmann::json& config) { return validate_config(config); };
  type.make = [&cloud](base::ProviderName name, const nlohmann::json&, const provider::ProviderDeps& deps) {
    return base::Result<std::unique_ptr<provider::Provider>>(make_provider(std::move(name), cloud, *deps.timers));
  };
  return type;
}

}  // namespace spillway::providers::fake
