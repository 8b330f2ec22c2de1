#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/offer.hpp"
#include "vk-provider/model/pod_status.hpp"
#include "vk-provider/model/wishes.hpp"

namespace spillway::model {

std::string_view to_string(CapacityType type) {
  switch (type) {
    case CapacityType::kOnDemand: return "on-demand";
    case CapacityType::kSpot: return "spot";
    case CapacityType::kReserved: return "reserved";
  }
  return "on-demand";
}

std::string_view to_string(Trust trust) {
  switch (trust) {
    case Trust::kDatacenter: return "datacenter";
    case Trust::kCommunity: return "community";
  }
  return "datacenter";
}

std::string_view to_string(Tier tier) {
  switch (tier) {
    case Tier::kBatch: return "batch";
    case Tier::kStandard: return "standard";
    case Tier::kInteractive: return "interactive";
    case Tier::kCritical: return "critical";
  }
  return "standard";
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

namespace {

/// FNV-1a over texts and numbers, with a mark between them.
class Fingerprint {
 public:
  void mix(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0xff);
  }
  void mix(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      step(static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> shift));
  }
  void mix(const std::optional<base::WallTime>& time) {
    mix(time ? time->time_since_epoch().count() : std::int64_t{-1});
  }
  std::uint64_t value() const { return hash_ == 0 ? 1 : hash_; }

 private:
  void step(unsigned char byte) { hash_ = (hash_ ^ byte) * 1099511628211ULL; }

  std::uint64_t hash_ = 1469598103934665603ULL;
};

void mix_state(Fingerprint& print, const ContainerStatusState& state) {
  print.mix(static_cast<std::int64_t>(state.kind));
  print.mix(std::int64_t{state.exit_code});
  print.mix(state.reason.str());
  print.mix(state.message.str());
  print.mix(state.started_at);
  print.mix(state.finished_at);
  print.mix(state.container_id.str());
}

void mix_container(Fingerprint& print, const ContainerStatus& c) {
  print.mix(c.name);
  print.mix(c.image);
  print.mix(c.image_id);
  print.mix(c.container_id);
  print.mix(std::int64_t{c.ready});
  print.mix(std::int64_t{c.started});
  print.mix(std::int64_t{c.restart_count});
  mix_state(print, c.state);
  mix_state(print, c.last_state);
}

}  // namespace

std::uint64_t fingerprint(const std::vector<ContainerStatus>& containers,
                          const std::vector<ContainerStatus>& init_containers) {
  Fingerprint print;
  for (const auto* list : {&containers, &init_containers}) {
    for (const ContainerStatus& c : *list) mix_container(print, c);
    print.mix(static_cast<std::int64_t>(list->size()));
  }
  return print.value();
}

bool shows(const PodStatus& shown, const PodStatus& wanted) {
  const bool same = shown.phase == wanted.phase && shown.reason == wanted.reason && shown.message == wanted.message &&
                    shown.host_ip == wanted.host_ip && shown.pod_ip == wanted.pod_ip &&
                    shown.start_time == wanted.start_time && shown.conditions == wanted.conditions &&
                    shown.debug_containers == wanted.debug_containers;
  if (!same) return false;
  if (shown.containers_fingerprint == 0) {
    return shown.containers == wanted.containers && shown.init_containers == wanted.init_containers;
  }
  return shown.containers_fingerprint == fingerprint(wanted.containers, wanted.init_containers);
}

std::uint64_t fingerprint(const StateRecord& record) {
  Fingerprint print;
  const Placement& p = record.placement;
  print.mix(p.provider.str());
  print.mix(p.offer.str());
  print.mix(p.region);
  print.mix(p.tag.str());
  print.mix(record.instance.str());
  print.mix(p.price_per_hour.micros());
  print.mix(std::int64_t{p.gpu_count});
  print.mix(std::int64_t{p.attempt});
  print.mix(static_cast<std::int64_t>(p.capacity_type));
  print.mix(std::int64_t{record.ran});
  return print.value();
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
