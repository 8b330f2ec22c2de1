// Pods, instances and placements for tests, without JSON.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "vk-provider/core/pod_fsm.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::test {

inline constexpr const char* kUid = "4f0c1a52-0000-4000-8000-0123456789ab";

/// One container `main`, restartPolicy Always, on node `burst`.
inline model::PodSpec a_pod(const std::string& name = "web-0") {
  model::PodSpec pod;
  pod.key.ns = "team-a";
  pod.key.name = name;
  pod.key.uid = base::PodUid(kUid);
  pod.node_name = "burst";
  model::ContainerSpec container;
  container.name = "main";
  container.image = "registry.example/app:1";
  pod.containers.edit().push_back(container);
  return pod;
}

inline model::PodSpecPtr share(model::PodSpec pod) { return std::make_shared<const model::PodSpec>(std::move(pod)); }

inline model::ObservedPod seen_at(const std::string& version = "100") {
  model::ObservedPod observed;
  observed.resource_version = version;
  return observed;
}

inline model::Placement a_placement(int attempt = 1) {
  model::Placement placement;
  placement.pod = base::PodUid(kUid);
  placement.provider = base::ProviderName("cloud");
  placement.offer = base::OfferId("cheap");
  placement.price_per_hour = base::Money::from_micros(1'000'000);
  placement.tag = base::InstanceTag("spw-x-y-" + std::to_string(attempt));
  placement.attempt = attempt;
  return placement;
}

inline model::ProviderFacts facts() {
  model::ProviderFacts facts;
  facts.settle_time = std::chrono::seconds(10);
  facts.keeps_stopped = true;
  facts.can_restart = true;
  return facts;
}

inline model::Instance an_instance(model::InstanceState state, int attempt = 1) {
  model::Instance instance;
  instance.ref = model::InstanceRef(base::ProviderName("cloud"), base::InstanceId("i-1"));
  instance.tag = a_placement(attempt).tag;
  instance.state = state;
  model::InstanceContainer container;
  container.name = "main";
  if (state == model::InstanceState::kRunning) container.state = model::ContainerState::kRunning;
  if (state == model::InstanceState::kExited) container.state = model::ContainerState::kExited;
  instance.containers.push_back(container);
  return instance;
}

inline model::Instance exited(int code, base::WallTime finished, base::Duration ran = std::chrono::seconds(1)) {
  model::Instance instance = an_instance(model::InstanceState::kExited);
  instance.containers[0].exit_code = code;
  instance.containers[0].started_at = finished - std::chrono::duration_cast<std::chrono::microseconds>(ran);
  instance.containers[0].finished_at = finished;
  return instance;
}

}  // namespace spillway::test
