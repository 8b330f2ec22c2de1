#include "vk-provider/model/capability.hpp"

namespace spillway::model {

std::string_view to_string(Capability c) {
  switch (c) {
    case Capability::kMultiContainer: return "multi_container";
    case Capability::kInitContainers: return "init_containers";
    case Capability::kFiles: return "files";
    case Capability::kVolumes: return "volumes";
    case Capability::kShm: return "shm";
    case Capability::kNetworkVolumes: return "network_volumes";
    case Capability::kSecurityContext: return "security_context";
    case Capability::kSharedProcesses: return "shared_processes";
    case Capability::kHostname: return "hostname";
    case Capability::kHostAliases: return "host_aliases";
    case Capability::kDnsConfig: return "dns_config";
    case Capability::kStopSignal: return "stop_signal";
    case Capability::kTerminationMessage: return "termination_message";
    case Capability::kPutFiles: return "put_files";
    case Capability::kHostNetwork: return "host_network";
    case Capability::kTty: return "tty";
    case Capability::kLogs: return "logs";
    case Capability::kExec: return "exec";
    case Capability::kAttach: return "attach";
    case Capability::kDial: return "dial";
    case Capability::kSamples: return "samples";
    case Capability::kExitCode: return "exit_code";
    case Capability::kRestartContainer: return "restart_container";
    case Capability::kKeepStopped: return "keep_stopped";
    case Capability::kPortsTcp: return "ports_tcp";
    case Capability::kPortsHttp: return "ports_http";
    case Capability::kPortsUdp: return "ports_udp";
    case Capability::kRegistryAuth: return "registry_auth";
    case Capability::kSpot: return "spot";
    case Capability::kRegions: return "regions";
    case Capability::kStopGrace: return "stop_grace";
    case Capability::kEntrypoint: return "entrypoint";
    case Capability::kWorkingDir: return "working_dir";
    case Capability::kCount: break;
  }
  return "unknown";
}

}  // namespace spillway::model
