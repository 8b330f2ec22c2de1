// The rows of kube/pod_fields.hpp that are about the whole pod, and how a row is found.
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/kube/pod_fields.hpp"

namespace spillway::kube {
namespace {

using model::Capability;
using namespace rules;

constexpr std::string_view kHostNamespace = "the namespaces of a rented machine's host are not ours to give";
constexpr std::string_view kHostname = "the provider has to give the pod its name";
constexpr std::string_view kResolver = "the provider has to set the container's resolver";

constexpr FieldRule kRules[] = {
    // Other containers. The second of spec.containers needs something, too: kube/pod_fields.
    needs("spec.initContainers[]", Capability::kInitContainers, "the provider has to run init containers and sidecars"),
    refused("spec.ephemeralContainers[]", "a debug container cannot be added to a rented instance"),

    // The life of the pod.
    honoured("spec.restartPolicy"),
    honoured("spec.terminationGracePeriodSeconds"),
    honoured("spec.readinessGates[].conditionType"),
    honoured("spec.activeDeadlineSeconds"),

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

    // Who the pod is in the cluster. Its token is withheld: see the volumes.
    accepted("spec.serviceAccountName"),
    accepted("spec.serviceAccount"),
    accepted("spec.automountServiceAccountToken"),
    honoured("spec.enableServiceLinks"),
    needs("spec.imagePullSecrets", Capability::kRegistryAuth, "the provider has to log in to the image's registry"),

    // Names and network. A rented container asks its machine's resolver, which is what Default means.
    needs("spec.dnsPolicy", Capability::kDnsConfig, kResolver, "ClusterFirst|ClusterFirstWithHostNet|Default"),
    needs("spec.dnsConfig.nameservers", Capability::kDnsConfig, kResolver),
    needs("spec.dnsConfig.searches", Capability::kDnsConfig, kResolver),
    needs("spec.dnsConfig.options", Capability::kDnsConfig, kResolver),
    honoured("spec.dnsConfig.options[].name"),
    honoured("spec.dnsConfig.options[].value"),
    needs("spec.hostname", Capability::kHostname, kHostname),
    needs("spec.subdomain", Capability::kHostname, kHostname),
    refused("spec.hostnameOverride", "set hostname instead"),
    needs("spec.setHostnameAsFQDN", Capability::kHostname, kHostname, "false"),
    needs("spec.hostAliases", Capability::kHostAliases, "the provider has to write the container's /etc/hosts"),
    honoured("spec.hostAliases[].ip"),
    honoured("spec.hostAliases[].hostnames"),
    needs("spec.hostNetwork", Capability::kHostNetwork, "the provider has to give the host's network", "false"),

    // The machine.
    refused("spec.hostPID", kHostNamespace, "false"),
    refused("spec.hostIPC", kHostNamespace, "false"),
    refused("spec.hostUsers", "user namespaces of a rented machine are not ours to make", "true"),
    needs("spec.shareProcessNamespace", Capability::kSharedProcesses,
          "the provider has to let the containers see each other's processes", "false"),
    refused("spec.runtimeClassName",
            "the runtime of a rented machine cannot be chosen, and another one promises isolation; only nvidia, which "
            "GPU machines have anyway, is accepted",
            "nvidia"),
    refused("spec.os.name", kWindows, "linux"),
    honoured("spec.resources.limits[cpu]"),
    honoured("spec.resources.limits[memory]"),
    honoured("spec.resources.requests[cpu]"),
    honoured("spec.resources.requests[memory]"),
    refused("spec.resources.claims", kNoDra),
    refused("spec.resourceClaims", kNoDra),
    refused("spec.securityContext.seLinuxOptions", kLabels),
    accepted("spec.securityContext.seLinuxChangePolicy"),  // speaks only of how to do what is refused
    refused("spec.securityContext.windowsOptions", kWindows),
    needs("spec.securityContext.runAsUser", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.runAsGroup", Capability::kSecurityContext, kSecurity),
    needs("spec.securityContext.runAsNonRoot", Capability::kSecurityContext, kSecurity, "false"),
    needs("spec.securityContext.supplementalGroups", Capability::kSecurityContext, kSecurity),
    refused("spec.securityContext.supplementalGroupsPolicy",
            "the groups of the image's own user cannot be kept away on a rented machine", "Merge"),
    needs("spec.securityContext.fsGroup", Capability::kSecurityContext, kSecurity),
    accepted("spec.securityContext.fsGroupChangePolicy"),  // a new volume has no files whose group could stay
    refused("spec.securityContext.sysctls", "the kernel of a rented machine is not ours to configure"),
    needs("spec.securityContext.seccompProfile.type", Capability::kSecurityContext, kSecurity),
    refused("spec.securityContext.seccompProfile.localhostProfile", kLocalProfile),
    needs("spec.securityContext.appArmorProfile.type", Capability::kSecurityContext, kSecurity),
    refused("spec.securityContext.appArmorProfile.localhostProfile", kLocalProfile),
};

/// The path one step up: `a.b[].c` -> `a.b[]` -> `a.b`. A dot inside brackets belongs to a key of a map.
std::string_view parent_of(std::string_view path) {
  const size_t bracket = path.ends_with(']') ? path.rfind('[') : std::string_view::npos;
  if (bracket != std::string_view::npos) return path.substr(0, bracket);
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

std::span<const FieldRule> pod_field_rules() {
  static const auto all = [] {
    std::vector<FieldRule> out(std::begin(kRules), std::end(kRules));
    for (const auto& part : {container_field_rules(), volume_field_rules()}) {
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }();
  return all;
}

namespace {

const std::unordered_map<std::string_view, const FieldRule*>& rule_index() {
  static const auto index = [] {
    std::unordered_map<std::string_view, const FieldRule*> out;
    for (const FieldRule& rule : pod_field_rules()) out.emplace(rule.path, &rule);
    return out;
  }();
  return index;
}

}  // namespace

const FieldRule* exact_pod_field_rule(std::string_view path) {
  const auto it = rule_index().find(path);
  return it == rule_index().end() ? nullptr : it->second;
}

const FieldRule* find_pod_field_rule(std::string_view path) {
  for (; !path.empty(); path = parent_of(path)) {
    if (const FieldRule* const rule = exact_pod_field_rule(path)) return rule;
  }
  return nullptr;
}

}  // namespace spillway::kube
