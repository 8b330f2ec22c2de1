// A life of a pod with several containers, of which the provider says what the test tells it.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/core/life.hpp"
#include "vk-provider/core/pod_status.hpp"

namespace spillway::test {

using model::ContainerState;
using model::RestartPolicy;

inline model::ContainerSpec a_container(const std::string& name) {
  model::ContainerSpec spec;
  spec.name = name;
  spec.image = "registry.example/" + name + ":1";
  return spec;
}

inline model::ContainerSpec a_sidecar(const std::string& name) {
  model::ContainerSpec spec = a_container(name);
  spec.restart_policy = RestartPolicy::kAlways;
  return spec;
}

/// `inits` before the one container `main`.
inline model::PodSpec a_pod_with(std::vector<model::ContainerSpec> inits,
                                 RestartPolicy policy = RestartPolicy::kAlways) {
  model::PodSpec pod = a_pod();
  pod.restart_policy = policy;
  model::PodExtras extras;
  extras.init_containers.edit() = std::move(inits);
  pod.extras = std::move(extras);
  return pod;
}

inline model::PodSpec two_containers(RestartPolicy policy) {
  model::PodSpec pod = a_pod();
  pod.restart_policy = policy;
  pod.containers.edit().push_back(a_container("aside"));
  return pod;
}

/// A life in which the provider says of its containers what the test tells it.
class Machine : public Life {
 public:
  explicit Machine(model::PodSpec spec, model::ObservedPod observed = seen_at())
      : Life(std::move(spec), std::move(observed)) {
    instance = an_instance(InstanceState::kRunning);
    instance.containers.clear();
    for (const auto& c :
         record.spec->extras ? record.spec->extras->init_containers.items() : std::vector<model::ContainerSpec>{}) {
      add(c.name);
    }
    for (const auto& c : record.spec->containers) add(c.name);
  }
  model::InstanceContainer& claim(const std::string& name) {
    return *std::ranges::find_if(instance.containers, [&](const auto& c) { return c.name == name; });
  }
  void runs(const std::string& name) {
    model::InstanceContainer& c = claim(name);
    c.state = ContainerState::kRunning;
    c.created = false;
    c.exit_code.reset();
    c.finished_at.reset();
    c.started_at = now.wall;
  }
  void exits(const std::string& name, int code) {
    model::InstanceContainer& c = claim(name);
    c.state = ContainerState::kExited;
    c.created = false;
    c.exit_code = code;
    if (!c.started_at) c.started_at = now.wall;
    c.finished_at = now.wall;
  }
  /// A listing: the world as it is now.
  void look() { on(event::InstanceSeen{instance}); }
  void boot() {
    to_create();
    on(event::Created{instance});
  }
  /// The names of the containers that were to be started by the last event; they run from then on.
  std::vector<std::string> starts() {
    std::vector<std::string> names;
    for (const auto& a : all<action::StartContainer>()) names.push_back(a.container);
    for (const auto& name : names) {
      runs(name);
      on(event::ContainerStarted{name});
    }
    return names;
  }
  model::ContainerRecord& of(const std::string& name) {
    return *std::ranges::find_if(record.containers, [&](const auto& c) { return c.claim.name == name; });
  }
  model::PodStatus status() const { return *wanted_status(record, "192.0.2.1", now); }

  model::Instance instance;

 private:
  void add(const std::string& name) {
    model::InstanceContainer& c = instance.containers.emplace_back();
    c.name = name;
    c.created = true;
  }
};

}  // namespace spillway::test
