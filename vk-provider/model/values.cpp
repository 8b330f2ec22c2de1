#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/offer.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::model {

std::string_view to_string(CapacityType type) {
  switch (type) {
    case CapacityType::kOnDemand: return "on-demand";
    case CapacityType::kSpot: return "spot";
    case CapacityType::kReserved: return "reserved";
  }
  return "on-demand";
}

std::string_view to_string(InstanceState state) {
  switch (state) {
    case InstanceState::kPending: return "pending";
    case InstanceState::kRunning: return "running";
    case InstanceState::kExited: return "exited";
    case InstanceState::kTerminating: return "terminating";
    case InstanceState::kFailed: return "failed";
    case InstanceState::kUnknown: return "unknown";
  }
  return "unknown";
}

std::string_view to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::kUnset: return "";
    case PodPhase::kPending: return "Pending";
    case PodPhase::kRunning: return "Running";
    case PodPhase::kSucceeded: return "Succeeded";
    case PodPhase::kFailed: return "Failed";
    case PodPhase::kUnknown: return "Unknown";
  }
  return "";
}

bool is_older_version(std::string_view a, std::string_view b) {
  const auto is_number = [](std::string_view v) {
    return !v.empty() && v.front() != '0' && v.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_number(a) || !is_number(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

std::uint64_t fingerprint(const StateRecord& record) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  const auto mix = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0xffU) * 1099511628211ULL;
  };
  const Placement& p = record.placement;
  mix(p.provider.str());
  mix(p.offer.str());
  mix(p.region);
  mix(p.tag.str());
  mix(record.instance.str());
  for (const std::int64_t number :
       {p.price_per_hour.micros(), static_cast<std::int64_t>(p.gpu_count), static_cast<std::int64_t>(p.attempt),
        static_cast<std::int64_t>(p.capacity_type), static_cast<std::int64_t>(record.ran)}) {
    mix(std::to_string(number));
  }
  return hash == 0 ? 1 : hash;
}

std::string_view to_string(ConditionType type) {
  switch (type) {
    case ConditionType::kPodReadyToStartContainers: return "PodReadyToStartContainers";
    case ConditionType::kInitialized: return "Initialized";
    case ConditionType::kReady: return "Ready";
    case ConditionType::kContainersReady: return "ContainersReady";
    case ConditionType::kPodScheduled: return "PodScheduled";
    case ConditionType::kDisruptionTarget: return "DisruptionTarget";
    case ConditionType::kCount: break;
  }
  return "";
}

}  // namespace spillway::model
