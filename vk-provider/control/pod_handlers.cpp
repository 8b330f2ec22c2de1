// pod_controller, fourth part: probes and hooks of containers.
#include <utility>

#include "vk-provider/control/pod_controller.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::control {

kube::EventTarget PodController::target_of(const model::PodKey& key) {
  kube::EventTarget target;
  target.ns = key.ns;
  target.name = key.name;
  target.uid = key.uid.text();
  return target;
}

ProbeDeps PodController::probe_deps() {
  ProbeDeps deps;
  deps.executor = d_.executor;
  deps.timers = d_.timers;
  deps.handlers = d_.handlers;
  deps.providers = d_.providers;
  deps.changed = [this](const base::PodUid& uid, core::event::ProbeChanged e) { post(uid, std::move(e)); };
  deps.unhealthy = [this](const model::PodKey& key, std::string message) {
    d_.events->warning(target_of(key), "Unhealthy", std::move(message));
  };
  return deps;
}

async::Loop PodController::run_hook(base::PodUid uid, core::action::RunHook hook) {
  const PodEntry* entry = store_.find(uid);
  if (entry == nullptr || !holds_lease()) co_return;
  const model::PodRecord& record = entry->record;
  const model::PodSpecPtr spec = record.spec;
  provider::HandlerTarget target;
  target.provider = d_.providers->find(hook.ref.provider);
  target.ref = hook.ref;
  target.container = hook.container;
  if (record.provider.address_routable) {
    // An instance that is being ended is known by its id alone; where it can be reached stands on the pod.
    const model::Instance* instance = core::instance_of(record);
    target.address = instance != nullptr ? instance->address : record.observed.status.pod_ip;
  }
  core::event::HookEnded ended;
  ended.container = hook.container;
  ended.run = hook.run;
  ended.hook = hook.hook;
  const model::ContainerSpec* container = core::find_spec(*spec, hook.container);
  const auto& handler = hook.hook == core::Hook::kPostStart ? container->post_start : container->pre_stop;
  auto result = co_await d_.handlers->run(std::move(target), *handler, d_.timers->now() + hook.timeout);
  if (!result) ended.error = std::move(result.error());
  post(uid, std::move(ended));
}

}  // namespace spillway::control
