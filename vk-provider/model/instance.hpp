// A provider's claim about the world: what it says exists.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/base/shared_text.hpp"

namespace spillway::model {

struct InstanceRef {
  InstanceRef() = default;
  InstanceRef(base::ProviderName p, base::InstanceId i) : provider(std::move(p)), id(std::move(i)) {}
  base::ProviderName provider;
  base::InstanceId id;
  auto operator<=>(const InstanceRef&) const = default;
};

enum class InstanceState : std::uint8_t {
  kPending,      // accepted; host, image or start still to come
  kRunning,      // at least one container was started
  kExited,       // all containers ended; the instance is kept
  kTerminating,  // on its way out, still billed
  kFailed,       // will never run; `message` says why
  kUnknown,      // the provider cannot say
};
std::string_view to_string(InstanceState state);

enum class ContainerState : std::uint8_t { kWaiting, kRunning, kExited };

struct InstanceContainer {
  InstanceContainer() = default;
  base::SharedText name;
  ContainerState state = ContainerState::kWaiting;
  bool created = false;  // while waiting: it exists and only waits for control_container
  /// While waiting: a kubelet's word for it (ContainerCreating, ErrImagePull, RunContainerError ...) and the text.
  base::SharedText reason;
  base::SharedText message;
  std::optional<int> exit_code;  // of the last run; empty if the provider cannot tell
  bool oom_killed = false;
  base::SharedText termination_message;  // once exited, where the provider can read it
  int restarts = 0;                      // that the provider did by itself; ours are counted in core
  std::optional<base::WallTime> started_at;
  std::optional<base::WallTime> finished_at;
  base::SharedText image_id;
  base::SharedText container_id;  // the provider's id, for containerStatuses[].containerID

  bool operator==(const InstanceContainer&) const = default;
};

struct InstancePort {
  InstancePort() = default;
  int container_port = 0;
  std::string host;  // where it can be reached from outside
  int public_port = 0;

  bool operator==(const InstancePort&) const = default;
};

/// From when, in what steps and with what minimum an instance is billed.
struct Billing {
  Billing() = default;
  std::optional<base::WallTime> from;
  std::chrono::seconds grain{1};
  std::chrono::seconds minimum{0};

  bool operator==(const Billing&) const = default;
};

struct Instance {
  Instance() = default;
  InstanceRef ref;
  base::InstanceTag tag;  // empty or foreign: not ours, never touched
  InstanceState state = InstanceState::kUnknown;
  base::SharedText message;  // why it failed or what it waits for; for people
  bool image_error = false;  // with kFailed: the image cannot be pulled
  base::SharedText evicted;  // its pod broke a limit of its own, and has to go: a kubelet's words for it
  bool preempted = false;    // with kFailed, kTerminating or kExited: the provider took a spot instance back
  std::vector<InstanceContainer> containers;
  base::SharedText address;  // set only if the provider declares its addresses routable
  std::vector<InstancePort> ports;
  std::optional<base::Money> price_per_hour;  // read back from what was created
  Billing billing;
  std::optional<base::WallTime> created_at;

  bool operator==(const Instance&) const = default;
};

}  // namespace spillway::model
