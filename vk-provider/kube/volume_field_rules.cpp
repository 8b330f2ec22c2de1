// The rows of kube/pod_fields.hpp that are about volumes.
#include "vk-provider/kube/pod_field_rule.hpp"

namespace spillway::kube {
namespace {

using model::Capability;
using namespace rules;

constexpr std::string_view kHomeDisk = "a rented machine cannot reach this storage of the home cluster";
constexpr std::string_view kFiles = "the provider has to place files into the container";
constexpr std::string_view kVolume = "the provider has to mount volumes";
constexpr std::string_view kToken = "the provider has to replace the token before it expires";

constexpr FieldRule kRules[] = {
    // The name alone asks for nothing.
    accepted("spec.volumes[].name"),
    needs("spec.volumes[].emptyDir", Capability::kVolumes, kVolume),  // refined by its medium
    honoured("spec.volumes[].emptyDir.medium"),
    honoured("spec.volumes[].emptyDir.sizeLimit"),
    needs("spec.volumes[].configMap", Capability::kFiles, kFiles),
    honoured("spec.volumes[].configMap.defaultMode"),
    honoured("spec.volumes[].configMap.name"),
    honoured("spec.volumes[].configMap.optional"),
    honoured("spec.volumes[].configMap.items[].key"),
    honoured("spec.volumes[].configMap.items[].path"),
    honoured("spec.volumes[].configMap.items[].mode"),
    needs("spec.volumes[].secret", Capability::kFiles, kFiles),
    honoured("spec.volumes[].secret.defaultMode"),
    honoured("spec.volumes[].secret.secretName"),
    honoured("spec.volumes[].secret.optional"),
    honoured("spec.volumes[].secret.items[].key"),
    honoured("spec.volumes[].secret.items[].path"),
    honoured("spec.volumes[].secret.items[].mode"),
    needs("spec.volumes[].downwardAPI", Capability::kFiles, kFiles),
    honoured("spec.volumes[].downwardAPI.defaultMode"),
    honoured("spec.volumes[].downwardAPI.items[].path"),
    honoured("spec.volumes[].downwardAPI.items[].mode"),
    honoured("spec.volumes[].downwardAPI.items[].fieldRef.apiVersion"),
    honoured("spec.volumes[].downwardAPI.items[].fieldRef.fieldPath"),
    honoured("spec.volumes[].downwardAPI.items[].resourceFieldRef.containerName"),
    honoured("spec.volumes[].downwardAPI.items[].resourceFieldRef.resource"),
    honoured("spec.volumes[].downwardAPI.items[].resourceFieldRef.divisor"),
    needs("spec.volumes[].projected", Capability::kFiles, kFiles),
    honoured("spec.volumes[].projected.defaultMode"),
    honoured("spec.volumes[].projected.sources[].configMap.name"),
    honoured("spec.volumes[].projected.sources[].configMap.optional"),
    honoured("spec.volumes[].projected.sources[].configMap.items[].key"),
    honoured("spec.volumes[].projected.sources[].configMap.items[].path"),
    honoured("spec.volumes[].projected.sources[].configMap.items[].mode"),
    honoured("spec.volumes[].projected.sources[].secret.name"),
    honoured("spec.volumes[].projected.sources[].secret.optional"),
    honoured("spec.volumes[].projected.sources[].secret.items[].key"),
    honoured("spec.volumes[].projected.sources[].secret.items[].path"),
    honoured("spec.volumes[].projected.sources[].secret.items[].mode"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].path"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].mode"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.fieldPath"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.containerName"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.resource"),
    honoured("spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor"),

    // A token that cannot be replaced before it expires would leave the container without one.
    needs("spec.volumes[].projected.sources[].serviceAccountToken", Capability::kPutFiles, kToken),
    honoured("spec.volumes[].projected.sources[].serviceAccountToken.path"),
    honoured("spec.volumes[].projected.sources[].serviceAccountToken.audience"),
    honoured("spec.volumes[].projected.sources[].serviceAccountToken.expirationSeconds"),
    refused("spec.volumes[].projected.sources[].clusterTrustBundle", kNotYet),
    refused("spec.volumes[].projected.sources[].podCertificate", kNotYet),

    // Disks.
    needs("spec.volumes[].persistentVolumeClaim", Capability::kNetworkVolumes, kClaim),
    needs("spec.volumes[].ephemeral", Capability::kNetworkVolumes, kClaim),
    refused("spec.volumes[].hostPath",
            "the files of a rented machine's host are not ours to give; GPU devices come with the instance"),
    refused("spec.volumes[].image", kNotYet),
    refused("spec.volumes[].gitRepo", "no kubelet clones repositories any more; use an init container"),
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

}  // namespace

std::span<const FieldRule> volume_field_rules() { return kRules; }

}  // namespace spillway::kube
