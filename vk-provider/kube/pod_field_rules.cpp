// The table of kube/pod_fields.hpp.
#include <string>
#include <unordered_map>

#include "vk-provider/kube/pod_fields.hpp"

namespace spillway::kube {
namespace {

using model::Capability;
constexpr auto kHonoured = FieldClass::kHonoured;
constexpr auto kAccepted = FieldClass::kAccepted;

constexpr FieldRule honoured(std::string_view path) { return {path, kHonoured, std::nullopt, {}, {}}; }
constexpr FieldRule accepted(std::string_view path) { return {path, kAccepted, std::nullopt, {}, {}}; }
constexpr FieldRule needs(std::string_view path, Capability what, std::string_view why,
                          std::string_view harmless = {}) {
  return {path, FieldClass::kNeeds, what, why, harmless};
}
constexpr FieldRule refused(std::string_view path, std::string_view why, std::string_view harmless = {}) {
  return {path, FieldClass::kNeeds, std::nullopt, why, harmless};
}

constexpr std::string_view kNotYet = "it is not honoured yet";
constexpr std::string_view kHostNamespace = "the namespaces of a rented machine's host are not ours to give";
constexpr std::string_view kHomeDisk = "a rented machine cannot reach this storage of the home cluster";
constexpr std::string_view kNoDra = "a rented machine has no driver for resource claims; ask for GPUs under resources";
constexpr std::string_view kHostPort =
    "ports of a rented machine's host are published with the annotation "
    "spillway.dev/public-ports";
constexpr std::string_view kProbe = "the provider has to run probes";
constexpr std::string_view kHook = "the provider has to run lifecycle hooks";
constexpr std::string_view kTerminal = "the provider has to keep a terminal or an open standard input";
constexpr std::string_view kSecurity = "the provider has to apply security settings";
constexpr std::string_view kWindows = "rented machines run Linux";
constexpr std::string_view kFiles = "the provider has to place files into the container";
constexpr std::string_view kVolume = "the provider has to mount volumes";
constexpr std::string_view kClaim = "the provider has to attach network volumes";

constexpr FieldRule kRules[] = {
    // The container that runs.
    honoured("spec.containers[].name"),
    honoured("spec.containers[].image"),
    honoured("spec.containers[].command"),
    honoured("spec.containers[].args"),
    honoured("spec.containers[].workingDir"),
    honoured("spec.containers[].imagePullPolicy"),
    honoured("spec.containers[].ports[].name"),
    honoured("spec.containers[].ports[].containerPort"),
    honoured("spec.containers[].ports[].protocol"),
    refused("spec.containers[].ports[].hostPort", kHostPort, "0"),
    refused("spec.containers[].ports[].hostIP", kHostPort),
    honoured("spec.containers[].envFrom[].prefix"),
    honoured("spec.containers[].envFrom[].configMapRef.name"),
    honoured("spec.containers[].envFrom[].configMapRef.optional"),
    honoured("spec.containers[].envFrom[].secretRef.name"),
    honoured("spec.containers[].envFrom[].secretRef.optional"),
    honoured("spec.containers[].env[].name"),
    honoured("spec.containers[].env[].value"),
    honoured("spec.containers[].env[].valueFrom.configMapKeyRef.name"),
    honoured("spec.containers[].env[].valueFrom.configMapKeyRef.key"),
    honoured("spec.containers[].env[].valueFrom.configMapKeyRef.optional"),
    honoured("spec.containers[].env[].valueFrom.secretKeyRef.name"),
    honoured("spec.containers[].env[].valueFrom.secretKeyRef.key"),
    honoured("spec.containers[].env[].valueFrom.secretKeyRef.optional"),
    refused("spec.containers[].env[].valueFrom.fieldRef", kNotYet),
    refused("spec.containers[].env[].valueFrom.resourceFieldRef", kNotYet),
    refused("spec.containers[].env[].valueFrom.fileKeyRef", kNotYet),
    honoured("spec.containers[].resources.limits[cpu]"),
    honoured("spec.containers[].resources.limits[memory]"),
    honoured("spec.containers[].resources.limits[ephemeral-storage]"),
    honoured("spec.containers[].resources.limits[nvidia.com/gpu]"),
    honoured("spec.containers[].resources.limits[amd.com/gpu]"),
    honoured("spec.containers[].resources.requests[cpu]"),
    honoured("spec.containers[].resources.requests[memory]"),
    honoured("spec.containers[].resources.requests[ephemeral-storage]"),
    honoured("spec.containers[].resources.requests[nvidia.com/gpu]"),
    honoured("spec.containers[].resources.requests[amd.com/gpu]"),
    refused("spec.containers[].resources.claims", kNoDra),
    accepted("spec.containers[].resizePolicy"),  // speaks only of a later resize
    refused("spec.containers[].restartPolicy", kNotYet),
    refused("spec.containers[].restartPolicyRules", kNotYet),
    needs("spec.containers[].volumeMounts[]", Capability::kVolumes, kVolume),  // refined by the kind of the volume
    needs("spec.containers[].volumeDevices", Capability::kNetworkVolumes, kClaim),
    needs("spec.containers[].livenessProbe", Capability::kExec, kProbe),
    needs("spec.containers[].readinessProbe", Capability::kExec, kProbe),
    needs("spec.containers[].startupProbe", Capability::kExec, kProbe),
    needs("spec.containers[].lifecycle.postStart", Capability::kExec, kHook),
    needs("spec.containers[].lifecycle.preStop", Capability::kExec, kHook),
    needs("spec.containers[].lifecycle.stopSignal", Capability::kStopSignal, kHook),
    refused("spec.containers[].terminationMessagePath", kNotYet, "/dev/termination-log"),
    refused("spec.containers[].terminationMessagePolicy", kNotYet, "File"),
    needs("spec.containers[].stdin", Capability::kTty, kTerminal, "false"),
    needs("spec.containers[].stdinOnce", Capability::kTty, kTerminal, "false"),
    needs("spec.containers[].tty", Capability::kTty, kTerminal, "false"),
    needs("spec.containers[].securityContext.capabilities", Capability::kSecurityContext, kSecurity),
    refused("spec.containers[].securityContext.privileged", "a privileged container would own the rented machine",
            "false"),
    needs("spec.containers[].securityContext.seLinuxOptions", Capability::kSecurityContext, kSecurity),
    refused("spec.containers[].securityContext.windowsOptions", kWindows),
    needs("spec.containers[].securityContext.runAsUser", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.runAsGroup", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.runAsNonRoot", Capability::kSecurityContext, kSecurity, "false"),
    needs("spec.containers[].securityContext.readOnlyRootFilesystem", Capability::kSecurityContext, kSecurity, "false"),
    needs("spec.containers[].securityContext.allowPrivilegeEscalation", Capability::kSecurityContext, kSecurity,
          "true"),
    needs("spec.containers[].securityContext.procMount", Capability::kSecurityContext, kSecurity, "Default"),
    needs("spec.containers[].securityContext.seccompProfile", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.appArmorProfile", Capability::kSecurityContext, kSecurity),

    // Other containers.
    needs("spec.initContainers[]", Capability::kInitContainers, "the provider has to run init containers"),
    refused("spec.ephemeralContainers[]", "a debug container cannot be added to a rented instance"),

    // The life of the pod.
    honoured("spec.restartPolicy"),
    honoured("spec.terminationGracePeriodSeconds"),
    honoured("spec.readinessGates[].conditionType"),
    refused("spec.activeDeadlineSeconds", kNotYet),

    // Scheduling: done before the pod is ours.
    accepted("spec.nodeName"),
    accepted("spec.nodeSelector"),
    accepted("spec.affinity"),
    accepted("spec.tolerations"),
    accepted("spec.topologySpreadConstraints"),
    accepted("spec.schedulerName"),
    accepted("spec.schedulingGates"),
    accepted("spec.schedulingGroup"),
    accepted("spec.priority"),
    accepted("spec.priorityClassName"),
    accepted("spec.preemptionPolicy"),
    accepted("spec.overhead"),

    // Who the pod is in the cluster. Its token is withheld, and cluster addresses are of no use out there, so that
    // there are no service variables whatever enableServiceLinks says.
    accepted("spec.serviceAccountName"),
    accepted("spec.serviceAccount"),
    accepted("spec.automountServiceAccountToken"),
    accepted("spec.enableServiceLinks"),
    needs("spec.imagePullSecrets", Capability::kRegistryAuth, "the provider has to log in to the image's registry"),

    // Names and network. A rented container asks its machine's resolver, which is what Default means.
    refused("spec.dnsPolicy", "a rented machine's resolver cannot be chosen", "ClusterFirst|Default"),
    refused("spec.dnsConfig", "a rented machine's resolver cannot be chosen"),
    refused("spec.hostname", kNotYet),
    refused("spec.subdomain", kNotYet),
    refused("spec.hostnameOverride", kNotYet),
    refused("spec.setHostnameAsFQDN", kNotYet, "false"),
    refused("spec.hostAliases", kNotYet),
    needs("spec.hostNetwork", Capability::kHostNetwork, "the provider has to give the host's network", "false"),

    // The machine.
    refused("spec.hostPID", kHostNamespace, "false"),
    refused("spec.hostIPC", kHostNamespace, "false"),
    refused("spec.hostUsers", kNotYet, "true"),
    refused("spec.shareProcessNamespace", kNotYet, "false"),
    refused("spec.runtimeClassName", "the runtime of a rented machine cannot be chosen"),
    refused("spec.os.name", kWindows, "linux"),
    refused("spec.resources", "it is not honoured yet: set requests and limits on the container"),
    refused("spec.resourceClaims", kNoDra),
    needs("spec.securityContext.seLinuxOptions", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.seLinuxChangePolicy", Capability::kSecurityContext, kSecurity),
    refused("spec.securityContext.windowsOptions", kWindows),
    needs("spec.securityContext.runAsUser", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.runAsGroup", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.runAsNonRoot", Capability::kSecurityContext, kSecurity, "false"),
    needs("spec.securityContext.supplementalGroups", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.supplementalGroupsPolicy", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.fsGroup", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.fsGroupChangePolicy", Capability::kSecurityContext, kSecurity),
    refused("spec.securityContext.sysctls", "the kernel of a rented machine is not ours to configure"),
    needs("spec.securityContext.seccompProfile", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.appArmorProfile", Capability::kSecurityContext, kSecurity),

    // Volumes. The name alone asks for nothing.
    accepted("spec.volumes[].name"),
    needs("spec.volumes[].emptyDir", Capability::kVolumes, kVolume),  // refined by its medium
    needs("spec.volumes[].configMap", Capability::kFiles, kFiles),
    needs("spec.volumes[].secret", Capability::kFiles, kFiles),
    needs("spec.volumes[].downwardAPI", Capability::kFiles, kFiles),
    needs("spec.volumes[].projected", Capability::kFiles, kFiles),
    needs("spec.volumes[].persistentVolumeClaim", Capability::kNetworkVolumes, kClaim),
    needs("spec.volumes[].ephemeral", Capability::kNetworkVolumes, kClaim),
    refused("spec.volumes[].hostPath", "the files of a rented machine's host are not ours to give"),
    refused("spec.volumes[].image", kNotYet),
    refused("spec.volumes[].gitRepo", kNotYet),
    refused("spec.volumes[].awsElasticBlockStore", kHomeDisk),
    refused("spec.volumes[].azureDisk", kHomeDisk),
    refused("spec.volumes[].azureFile", kHomeDisk),
    refused("spec.volumes[].cephfs", kHomeDisk),
    refused("spec.volumes[].cinder", kHomeDisk),
    refused("spec.volumes[].csi", kHomeDisk),
    refused("spec.volumes[].fc", kHomeDisk),
    refused("spec.volumes[].flexVolume", kHomeDisk),
    refused("spec.volumes[].flocker", kHomeDisk),
    refused("spec.volumes[].gcePersistentDisk", kHomeDisk),
    refused("spec.volumes[].glusterfs", kHomeDisk),
    refused("spec.volumes[].iscsi", kHomeDisk),
    refused("spec.volumes[].nfs", kHomeDisk),
    refused("spec.volumes[].photonPersistentDisk", kHomeDisk),
    refused("spec.volumes[].portworxVolume", kHomeDisk),
    refused("spec.volumes[].quobyte", kHomeDisk),
    refused("spec.volumes[].rbd", kHomeDisk),
    refused("spec.volumes[].scaleIO", kHomeDisk),
    refused("spec.volumes[].storageos", kHomeDisk),
    refused("spec.volumes[].vsphereVolume", kHomeDisk),
};

/// The path one step up: `a.b[].c` -> `a.b[]` -> `a.b`. A dot inside brackets belongs to a key of a map.
std::string_view parent_of(std::string_view path) {
  const size_t bracket = path.ends_with(']') ? path.rfind('[') : std::string_view::npos;
  if (bracket != std::string_view::npos) return path.substr(0, bracket);
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

const std::unordered_map<std::string_view, const FieldRule*>& rule_index() {
  static const auto index = [] {
    std::unordered_map<std::string_view, const FieldRule*> out;
    for (const FieldRule& rule : kRules) out.emplace(rule.path, &rule);
    return out;
  }();
  return index;
}

}  // namespace

std::span<const FieldRule> pod_field_rules() { return kRules; }

const FieldRule* find_pod_field_rule(std::string_view path) {
  const auto& index = rule_index();
  for (; !path.empty(); path = parent_of(path)) {
    const auto it = index.find(path);
    if (it != index.end()) return it->second;
  }
  return nullptr;
}

}  // namespace spillway::kube
