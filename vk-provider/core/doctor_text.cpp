// What each check says to people.
#include <array>

#include "vk-provider/core/doctor.hpp"

namespace spillway::core {
namespace {

struct Words {
  DoctorCheck check;
  std::string_view name, why, fix;
};

constexpr std::array<Words, 23> kWords{{
    {DoctorCheck::kRights, "rights", "the daemon cannot do its work, or not all of it",
     "kubectl apply -k config/deploy (and config/deploy/gate); another installation.name needs lines of its own there"},
    {DoctorCheck::kGateIdentity, "gate-identity",
     "the admission plugin NodeRestriction refuses every change of taints by a node",
     "run the daemon or the gate with the ServiceAccount of config/deploy"},
    {DoctorCheck::kLeases, "leases", "no daemon is at work: pods wait, and instances are billed unwatched",
     "kubectl -n <namespace> get pods, then the log of the daemon; start it"},
    {DoctorCheck::kClock, "clock", "ages of leases and samples, caps per day, and certificates are judged by clocks",
     "run NTP on that machine"},
    {DoctorCheck::kCertificates, "certificates",
     "until then the kubelet API has a self-signed certificate: logs, exec and top fail where it is verified",
     "kubectl certificate approve <name>; see vk-provider/docs/certificates.md"},
    {DoctorCheck::kProviders, "providers", "nothing can be rented there, and what runs there cannot be watched",
     "check the credentials in the configuration, the network, and the provider's status page"},
    {DoctorCheck::kProviderQuota, "provider-quota", "the provider refuses to sell more: pods go elsewhere, or wait",
     "end what is not needed, or ask the provider for a higher quota"},
    {DoctorCheck::kZoneLabels, "zone-labels",
     "spreading over zones counts a node without the label as none: burst pods are drawn to the rented node",
     "set topology.kubernetes.io/zone on all nodes or on none"},
    {DoctorCheck::kDaemonSets, "daemonsets",
     "Spillway shows such a pod as Running and runs nothing: what it should do there is not done",
     "require type NotIn virtual-kubelet by node affinity"},
    {DoctorCheck::kKueueFlavors, "kueue-flavors", "the virtual node counts as capacity for training",
     "add a label to nodeLabels that the virtual node does not have"},
    {DoctorCheck::kStateMetrics, "kube-state-metrics",
     "the default queries of the gate find nothing in Prometheus, and no data holds the gate as it is",
     "install kube-state-metrics, or set the gate's freeQuery or mode: Kubernetes"},
    {DoctorCheck::kPolicyFights, "policy-fights",
     "it evicts pods that come back to the rented node: each round buys machines anew",
     "nodeSelector: \"type!=virtual-kubelet\" in that policy; drain with a policy of its own"},
    {DoctorCheck::kPolicyNodes, "policy-nodes", "a descheduler skips its cycle with less than two Ready nodes",
     "choose pods by the taint (includedTaints), not nodes by nodeSelector"},
    {DoctorCheck::kPolicyLocalStorage, "policy-local-storage",
     "pods with an emptyDir, which is every one with /dev/shm, stay on rented machines for ever",
     "podProtections.defaultDisabled: [PodsWithLocalStorage] of DefaultEvictor"},
    {DoctorCheck::kPolicyUnbounded, "policy-unbounded",
     "nodeFit is judged before the first eviction: one free GPU at home lets every pod pass",
     "maxNoOfPodsToEvictPerNode: 1, and a PodDisruptionBudget for each workload"},
    {DoctorCheck::kBudgetMissing, "pdb-missing", "all of its pods may be evicted at once on the way home",
     "a PodDisruptionBudget with maxUnavailable: 1"},
    {DoctorCheck::kBudgetBlocks, "pdb-blocks", "its pods never come home by eviction, and a node cannot be drained",
     "let at least one pod be absent, or run one replica more"},
    {DoctorCheck::kBudgetOverlap, "pdb-overlap", "the API server answers every eviction of such a pod with an error",
     "leave one PodDisruptionBudget for each pod"},
    {DoctorCheck::kGateTolerated, "tolerates-gate", "the gate does not keep it at home: it may be rented at any time",
     "tolerate virtual-kubelet.io/provider alone"},
    {DoctorCheck::kShortToleration, "short-tolerations",
     "if the daemon is away for longer, its pods are deleted though their machines are well",
     "tolerate node.kubernetes.io/not-ready and unreachable (NoExecute) for 3600 s in the pod template"},
    {DoctorCheck::kQuota, "resource-quota", "the replacement of a pod cannot be created before the old one is gone",
     "raise the ResourceQuota by one pod"},
    {DoctorCheck::kGang, "gangs", "a part of the group may be rented, and has no fast network to the rest",
     "take the toleration of virtual-kubelet.io/provider away"},
    {DoctorCheck::kTraining, "training", "training may land on rented machines, and preempt pods there",
     "take the toleration of virtual-kubelet.io/provider away"},
}};

const Words& words_of(DoctorCheck check) {
  for (const Words& words : kWords) {
    if (words.check == check) return words;
  }
  return kWords.front();
}

}  // namespace

std::string_view to_string(DoctorCheck check) { return words_of(check).name; }
std::string_view why_of(DoctorCheck check) { return words_of(check).why; }
std::string_view fix_of(DoctorCheck check) { return words_of(check).fix; }

std::string_view to_string(DoctorSeverity severity) {
  switch (severity) {
    case DoctorSeverity::kOk: return "ok";
    case DoctorSeverity::kWarning: return "warning";
    case DoctorSeverity::kError: return "error";
  }
  return "ok";
}

}  // namespace spillway::core
