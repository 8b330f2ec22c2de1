#include "vk-provider/api/container_access.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "vk-provider/core/container_order.hpp"
#include "vk-provider/core/pod_status.hpp"

namespace spillway::api {
namespace {

using Kind = model::ContainerStatusState::Kind;

constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kConflict = 409;
constexpr int kInternal = 500;
constexpr int kNotImplemented = 501;
constexpr int kUnavailable = 503;

/// What is there of the pod, whether it runs, is being ended or is kept for its logs.
std::optional<model::InstanceRef> instance_ref(const model::PodRecord& pod) {
  if (pod.placeholder) return std::nullopt;
  if (const model::Instance* const instance = core::instance_of(pod)) return instance->ref;
  if (const auto* stopping = std::get_if<model::Stopping>(&pod.stage)) return stopping->ref;
  if (const auto* finished = std::get_if<model::Finished>(&pod.stage)) return finished->kept;
  return std::nullopt;
}

std::string waiting_text(const model::PodRecord& pod, const std::string& container, const std::string& reason) {
  const std::string begin =
      fmt::format("container \"{}\" in pod \"{}\" is waiting to start: ", container, pod.key().name);
  if (reason == "ErrImagePull") return begin + "image can't be pulled";
  if (reason == "ImagePullBackOff") return begin + "trying and failing to pull image";
  return begin + (reason.empty() ? "no logs yet" : reason);
}

std::string placeholder_text(const model::PodRecord& pod) {
  return fmt::format(
      "pod \"{}\" belongs to a DaemonSet that tolerates every taint: on this virtual node it is shown as running, and "
      "nothing runs for it",
      pod.key().name);
}

/// `kubectl debug` asks for the log of what it added, and shows this.
bool is_debug_container(const model::PodRecord& pod, std::string_view container) {
  std::string_view names = pod.observed.debug_containers;
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    if (names.substr(0, end) == container) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

std::unexpected<Refusal> no_such_container(const model::PodRecord& pod, const std::string& container,
                                           std::string otherwise) {
  if (!is_debug_container(pod, container)) return refuse(kNotFound, std::move(otherwise));
  return refuse(kBadRequest, fmt::format("container \"{}\" in pod \"{}\" was not started: {}", container,
                                         pod.key().name, model::kNoDebugContainers));
}

}  // namespace

Answer<const model::PodRecord*> find_pod(const core::PodView& pods, std::string_view node, const PodName& name) {
  const model::PodRecord* const pod = pods.find_pod(node, name.ns, name.pod);
  if (pod == nullptr) return refuse(kNotFound, fmt::format("pod \"{}\" does not exist", name.pod));
  if (!name.uid.empty() && pod->key().uid.str() != name.uid) {
    return refuse(kNotFound, fmt::format("pod \"{}\" is another one by now", name.pod));
  }
  return pod;
}

Answer<model::InstanceRef> find_log(const model::PodRecord& pod, const std::string& container, bool previous,
                                    base::Now now) {
  const auto status = core::find_container_status(pod, container, now);
  const std::string& name = pod.key().name;
  if (!status) {
    return no_such_container(pod, container, fmt::format("container \"{}\" not found in pod \"{}\"", container, name));
  }
  if (pod.placeholder) return refuse(kBadRequest, placeholder_text(pod));
  const bool ran_before = status->last_state.kind == Kind::kTerminated;
  if (previous && !ran_before) {
    return refuse(kBadRequest,
                  fmt::format("previous terminated container \"{}\" in pod \"{}\" not found", container, name));
  }
  if (status->state.kind == Kind::kWaiting && !ran_before) {
    return refuse(kBadRequest, waiting_text(pod, container, status->state.reason));
  }
  const auto ref = instance_ref(pod);
  if (ref) return *ref;
  // It ran, and the machine with its log was given back.
  return refuse(kBadRequest, fmt::format("container \"{}\" in pod \"{}\" is terminated, and its log is gone with its "
                                         "instance",
                                         container, name));
}

Answer<model::InstanceRef> find_running(const model::PodRecord& pod, const std::string& container, base::Now now) {
  const auto status = core::find_container_status(pod, container, now);
  if (!status) return no_such_container(pod, container, fmt::format("container not found (\"{}\")", container));
  if (pod.placeholder) return refuse(kBadRequest, placeholder_text(pod));
  const auto ref = instance_ref(pod);
  if (status->state.kind == Kind::kRunning && ref) return *ref;
  if (status->state.kind == Kind::kWaiting) {
    return refuse(kBadRequest, waiting_text(pod, container, status->state.reason));
  }
  return refuse(kBadRequest, fmt::format("container \"{}\" in pod \"{}\" is not running", container, pod.key().name));
}

Answer<model::InstanceRef> find_ports(const model::PodRecord& pod) {
  if (pod.placeholder) return refuse(kBadRequest, placeholder_text(pod));
  const auto ref = instance_ref(pod);
  if (ref && std::ranges::any_of(pod.containers, core::runs)) return *ref;
  return refuse(kBadRequest, fmt::format("nothing of pod \"{}\" is running", pod.key().name));
}

Refusal refusal_of(const base::Error& error) {
  using base::ErrorKind;
  int status = kInternal;
  switch (error.kind) {
    case ErrorKind::kInvalid: status = kBadRequest; break;
    case ErrorKind::kNotFound: status = kNotFound; break;
    case ErrorKind::kConflict: status = kConflict; break;
    case ErrorKind::kUnsupported: status = kNotImplemented; break;
    case ErrorKind::kRateLimited:
    case ErrorKind::kUnavailable:
    case ErrorKind::kDeadline: status = kUnavailable; break;
    default: break;
  }
  return {status, error.message};
}

}  // namespace spillway::api
