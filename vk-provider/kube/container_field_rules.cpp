// The rows of kube/pod_fields.hpp that are about one container; init containers and sidecars are judged by them, too.
#include "vk-provider/kube/pod_field_rule.hpp"

namespace spillway::kube {
namespace {

using model::Capability;
using namespace rules;

constexpr std::string_view kHostPort =
    "ports of a rented machine's host are published with the annotation "
    "spillway.dev/public-ports";
constexpr std::string_view kTerminal = "the provider has to keep a terminal or an open standard input";
constexpr std::string_view kVolume = "the provider has to mount volumes";
constexpr std::string_view kRestart = "the provider has to start containers again";
constexpr std::string_view kStop = "the provider has to stop and start a single container";
constexpr std::string_view kRunsCommand = "the provider has to run commands in containers";
constexpr std::string_view kReachesPort = "the provider has to reach ports of containers";
constexpr std::string_view kLastWords = "the provider has to read what a container says at its end";

constexpr FieldRule kRules[] = {
    // What runs.
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

    // Its environment.
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
    honoured("spec.containers[].env[].valueFrom.fieldRef"),
    honoured("spec.containers[].env[].valueFrom.resourceFieldRef"),
    refused("spec.containers[].env[].valueFrom.fileKeyRef",
            "a file that another container writes cannot be read before this one is made"),

    // Resources.
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

    // Restarts. Always makes a sidecar of an init container, and is then no more than that.
    needs("spec.containers[].restartPolicy", Capability::kRestartContainer, kRestart),
    needs("spec.containers[].restartPolicyRules", Capability::kRestartContainer, kRestart),

    // Mounts are judged by the kind of their volume, too. A new volume has no mounts below it that could be writable.
    needs("spec.containers[].volumeMounts[]", Capability::kVolumes, kVolume),
    honoured("spec.containers[].volumeMounts[].name"),
    honoured("spec.containers[].volumeMounts[].mountPath"),
    honoured("spec.containers[].volumeMounts[].readOnly"),
    honoured("spec.containers[].volumeMounts[].subPath"),
    honoured("spec.containers[].volumeMounts[].subPathExpr"),
    accepted("spec.containers[].volumeMounts[].recursiveReadOnly"),
    refused("spec.containers[].volumeMounts[].mountPropagation", "mounts of a rented machine's host are not shared",
            "None"),
    needs("spec.containers[].volumeDevices", Capability::kNetworkVolumes, kClaim),

    // Probes. One that fails stops its container, but for a readiness probe. A port of another host than the pod's is
    // asked from here, and needs nothing of the provider.
    needs("spec.containers[].startupProbe", Capability::kRestartContainer, kStop),
    honoured("spec.containers[].startupProbe.initialDelaySeconds"),
    honoured("spec.containers[].startupProbe.timeoutSeconds"),
    honoured("spec.containers[].startupProbe.periodSeconds"),
    honoured("spec.containers[].startupProbe.successThreshold"),
    honoured("spec.containers[].startupProbe.failureThreshold"),
    honoured("spec.containers[].startupProbe.terminationGracePeriodSeconds"),
    needs("spec.containers[].startupProbe.exec", Capability::kExec, kRunsCommand),
    honoured("spec.containers[].startupProbe.exec.command"),
    needs("spec.containers[].startupProbe.httpGet", Capability::kDial, kReachesPort),
    honoured("spec.containers[].startupProbe.httpGet.path"),
    honoured("spec.containers[].startupProbe.httpGet.port"),
    honoured("spec.containers[].startupProbe.httpGet.host"),
    honoured("spec.containers[].startupProbe.httpGet.scheme"),
    honoured("spec.containers[].startupProbe.httpGet.httpHeaders[].name"),
    honoured("spec.containers[].startupProbe.httpGet.httpHeaders[].value"),
    needs("spec.containers[].startupProbe.tcpSocket", Capability::kDial, kReachesPort),
    honoured("spec.containers[].startupProbe.tcpSocket.port"),
    honoured("spec.containers[].startupProbe.tcpSocket.host"),
    needs("spec.containers[].startupProbe.grpc", Capability::kDial, kReachesPort),
    honoured("spec.containers[].startupProbe.grpc.port"),
    honoured("spec.containers[].startupProbe.grpc.service"),
    honoured("spec.containers[].readinessProbe.initialDelaySeconds"),
    honoured("spec.containers[].readinessProbe.timeoutSeconds"),
    honoured("spec.containers[].readinessProbe.periodSeconds"),
    honoured("spec.containers[].readinessProbe.successThreshold"),
    honoured("spec.containers[].readinessProbe.failureThreshold"),
    honoured("spec.containers[].readinessProbe.terminationGracePeriodSeconds"),
    needs("spec.containers[].readinessProbe.exec", Capability::kExec, kRunsCommand),
    honoured("spec.containers[].readinessProbe.exec.command"),
    needs("spec.containers[].readinessProbe.httpGet", Capability::kDial, kReachesPort),
    honoured("spec.containers[].readinessProbe.httpGet.path"),
    honoured("spec.containers[].readinessProbe.httpGet.port"),
    honoured("spec.containers[].readinessProbe.httpGet.host"),
    honoured("spec.containers[].readinessProbe.httpGet.scheme"),
    honoured("spec.containers[].readinessProbe.httpGet.httpHeaders[].name"),
    honoured("spec.containers[].readinessProbe.httpGet.httpHeaders[].value"),
    needs("spec.containers[].readinessProbe.tcpSocket", Capability::kDial, kReachesPort),
    honoured("spec.containers[].readinessProbe.tcpSocket.port"),
    honoured("spec.containers[].readinessProbe.tcpSocket.host"),
    needs("spec.containers[].readinessProbe.grpc", Capability::kDial, kReachesPort),
    honoured("spec.containers[].readinessProbe.grpc.port"),
    honoured("spec.containers[].readinessProbe.grpc.service"),
    needs("spec.containers[].livenessProbe", Capability::kRestartContainer, kStop),
    honoured("spec.containers[].livenessProbe.initialDelaySeconds"),
    honoured("spec.containers[].livenessProbe.timeoutSeconds"),
    honoured("spec.containers[].livenessProbe.periodSeconds"),
    honoured("spec.containers[].livenessProbe.successThreshold"),
    honoured("spec.containers[].livenessProbe.failureThreshold"),
    honoured("spec.containers[].livenessProbe.terminationGracePeriodSeconds"),
    needs("spec.containers[].livenessProbe.exec", Capability::kExec, kRunsCommand),
    honoured("spec.containers[].livenessProbe.exec.command"),
    needs("spec.containers[].livenessProbe.httpGet", Capability::kDial, kReachesPort),
    honoured("spec.containers[].livenessProbe.httpGet.path"),
    honoured("spec.containers[].livenessProbe.httpGet.port"),
    honoured("spec.containers[].livenessProbe.httpGet.host"),
    honoured("spec.containers[].livenessProbe.httpGet.scheme"),
    honoured("spec.containers[].livenessProbe.httpGet.httpHeaders[].name"),
    honoured("spec.containers[].livenessProbe.httpGet.httpHeaders[].value"),
    needs("spec.containers[].livenessProbe.tcpSocket", Capability::kDial, kReachesPort),
    honoured("spec.containers[].livenessProbe.tcpSocket.port"),
    honoured("spec.containers[].livenessProbe.tcpSocket.host"),
    needs("spec.containers[].livenessProbe.grpc", Capability::kDial, kReachesPort),
    honoured("spec.containers[].livenessProbe.grpc.port"),
    honoured("spec.containers[].livenessProbe.grpc.service"),

    // Hooks. A postStart hook that fails ends its container.
    needs("spec.containers[].lifecycle.postStart", Capability::kRestartContainer, kStop),
    needs("spec.containers[].lifecycle.postStart.exec", Capability::kExec, kRunsCommand),
    honoured("spec.containers[].lifecycle.postStart.exec.command"),
    needs("spec.containers[].lifecycle.postStart.httpGet", Capability::kDial, kReachesPort),
    honoured("spec.containers[].lifecycle.postStart.httpGet.path"),
    honoured("spec.containers[].lifecycle.postStart.httpGet.port"),
    honoured("spec.containers[].lifecycle.postStart.httpGet.host"),
    honoured("spec.containers[].lifecycle.postStart.httpGet.scheme"),
    honoured("spec.containers[].lifecycle.postStart.httpGet.httpHeaders[].name"),
    honoured("spec.containers[].lifecycle.postStart.httpGet.httpHeaders[].value"),
    honoured("spec.containers[].lifecycle.postStart.sleep"),
    honoured("spec.containers[].lifecycle.postStart.sleep.seconds"),
    refused("spec.containers[].lifecycle.postStart.tcpSocket", kNoSuchHandler),
    needs("spec.containers[].lifecycle.preStop.exec", Capability::kExec, kRunsCommand),
    honoured("spec.containers[].lifecycle.preStop.exec.command"),
    needs("spec.containers[].lifecycle.preStop.httpGet", Capability::kDial, kReachesPort),
    honoured("spec.containers[].lifecycle.preStop.httpGet.path"),
    honoured("spec.containers[].lifecycle.preStop.httpGet.port"),
    honoured("spec.containers[].lifecycle.preStop.httpGet.host"),
    honoured("spec.containers[].lifecycle.preStop.httpGet.scheme"),
    honoured("spec.containers[].lifecycle.preStop.httpGet.httpHeaders[].name"),
    honoured("spec.containers[].lifecycle.preStop.httpGet.httpHeaders[].value"),
    honoured("spec.containers[].lifecycle.preStop.sleep"),
    honoured("spec.containers[].lifecycle.preStop.sleep.seconds"),
    refused("spec.containers[].lifecycle.preStop.tcpSocket", kNoSuchHandler),
    needs("spec.containers[].lifecycle.stopSignal", Capability::kStopSignal,
          "the provider has to send another signal than the image's"),

    // Terminal and last words.
    needs("spec.containers[].terminationMessagePath", Capability::kTerminationMessage, kLastWords,
          "/dev/termination-log"),
    needs("spec.containers[].terminationMessagePolicy", Capability::kTerminationMessage, kLastWords, "File"),
    needs("spec.containers[].stdin", Capability::kTty, kTerminal, "false"),
    needs("spec.containers[].stdinOnce", Capability::kTty, kTerminal, "false"),
    needs("spec.containers[].tty", Capability::kTty, kTerminal, "false"),

    // Security.
    refused("spec.containers[].securityContext.privileged", "a privileged container would own the rented machine",
            "false"),
    refused("spec.containers[].securityContext.seLinuxOptions", kLabels),
    refused("spec.containers[].securityContext.windowsOptions", kWindows),
    refused("spec.containers[].securityContext.procMount", "the /proc of a rented machine is not ours to open",
            "Default"),
    needs("spec.containers[].securityContext.capabilities.add", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.capabilities.drop", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.runAsUser", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.runAsGroup", Capability::kSecurityContext, kSecurity),
    needs("spec.containers[].securityContext.runAsNonRoot", Capability::kSecurityContext, kSecurity, "false"),
    needs("spec.containers[].securityContext.readOnlyRootFilesystem", Capability::kSecurityContext, kSecurity, "false"),
    needs("spec.containers[].securityContext.allowPrivilegeEscalation", Capability::kSecurityContext, kSecurity,
          "true"),
    needs("spec.containers[].securityContext.seccompProfile.type", Capability::kSecurityContext, kSecurity),
    refused("spec.containers[].securityContext.seccompProfile.localhostProfile", kLocalProfile),
    needs("spec.containers[].securityContext.appArmorProfile.type", Capability::kSecurityContext, kSecurity),
    refused("spec.containers[].securityContext.appArmorProfile.localhostProfile", kLocalProfile),
};

}  // namespace

std::span<const FieldRule> container_field_rules() { return kRules; }

}  // namespace spillway::kube
