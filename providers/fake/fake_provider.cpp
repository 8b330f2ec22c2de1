#include "providers/fake/fake_provider.hpp"

#include "providers/fake/config.hpp"
#include "providers/fake/in_process_cloud.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::providers::fake {
namespace {

using model::Capability;

CreateRequest to_request(const model::Placement& placement, const model::ResolvedPod& pod) {
  CreateRequest request;
  request.tag = placement.tag.text();
  request.offer = placement.offer.text();
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
      Capability::kRegions,        Capability::kSpot,           Capability::kEntrypoint, Capability::kWorkingDir};
}

FakeProvider::FakeProvider(base::ProviderName name, std::unique_ptr<FakeCloud> owned, std::unique_ptr<FakeCloudApi> api,
                           const base::Clock& clock, base::Duration settle_time)
    : owned_(std::move(owned)), api_(std::move(api)), clock_(clock) {
  info_.name = std::move(name);
  info_.type = "fake";
  info_.settle_time = settle_time;
  info_.capabilities = capabilities();
}

async::Task<std::vector<model::Offer>> FakeProvider::list_offers(base::Deadline deadline) {
  auto offers = co_await api_->list_offers(deadline);
  if (offers) {
    for (model::Offer& offer : *offers) {
      offer.provider = info_.name;
      offer.seen_at = clock_.now();
    }
  }
  co_return offers;
}

async::Task<model::Instance> FakeProvider::create(model::Placement placement, model::ResolvedPod pod,
                                                  base::Deadline deadline) {
  CreateRequest request = to_request(placement, pod);
  auto instance = co_await api_->create(std::move(request), deadline);
  if (instance) instance->ref.provider = info_.name;
  co_return instance;
}

async::Task<model::Instance> FakeProvider::get(model::InstanceRef ref, base::Deadline deadline) {
  auto instance = co_await api_->get(ref.id.str(), deadline);
  if (instance) instance->ref.provider = info_.name;
  co_return instance;
}

async::Task<provider::OwnedList> FakeProvider::list_owned(std::string tag_prefix, base::Deadline deadline) {
  auto list = co_await api_->list_owned(std::move(tag_prefix), deadline);
  if (list) {
    for (model::Instance& instance : list->instances) instance.ref.provider = info_.name;
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
