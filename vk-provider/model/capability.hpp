// What a provider can honour, and so what a pod may need of one.
//
// core/requirements computes the set a pod needs; an offer counts only if its provider's set covers it.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace spillway::model {

enum class Capability : std::uint8_t {
  kMultiContainer,
  kInitContainers,   // and sidecars: control_container starts what create only made
  kFiles,            // configMap, secret, downwardAPI and projected volumes
  kVolumes,          // emptyDir
  kShm,              // emptyDir with medium Memory
  kNetworkVolumes,   // persistent volume claims
  kSecurityContext,  // users, groups, Linux capabilities, read-only root, seccomp, AppArmor
  kSharedProcesses,  // one process namespace for the pod
  kHostname,
  kHostAliases,
  kDnsConfig,
  kStopSignal,
  kTerminationMessage,
  kPutFiles,  // put_files replaces files of a running instance
  kHostNetwork,
  kTty,
  kLogs,
  kExec,
  kAttach,
  kDial,
  kSamples,
  kExitCode,          // the exit code of a container can be read
  kRestartContainer,  // control_container works
  kKeepStopped,       // a stopped instance can be kept, unbilled, until its pod is deleted
  kPortsTcp,
  kPortsHttp,
  kPortsUdp,
  kRegistryAuth,
  kSpot,
  kRegions,
  kStopGrace,   // terminate honours its grace
  kEntrypoint,  // command can replace the image's entrypoint
  kWorkingDir,
  kCount
};

/// The word of a capability in documents, messages and the gRPC contract: `multi_container`.
std::string_view to_string(Capability c);

class CapabilitySet {
 public:
  CapabilitySet() = default;
  CapabilitySet(std::initializer_list<Capability> list) {
    for (const Capability c : list) add(c);
  }
  void add(Capability c) { bits_.set(static_cast<size_t>(c)); }
  bool has(Capability c) const { return bits_.test(static_cast<size_t>(c)); }
  bool covers(const CapabilitySet& needed) const { return (needed.bits_ & ~bits_).none(); }
  bool operator==(const CapabilitySet&) const = default;

 private:
  std::bitset<static_cast<size_t>(Capability::kCount)> bits_;
};

}  // namespace spillway::model
