// The projection of a Pod that Spillway acts on: decoded once, then the JSON is thrown away.
//
// Values, made by kube/pod_codec. Immutable after creation as far as Kubernetes makes the fields so; therefore shared
// as shared_ptr<const PodSpec>. Anything that a pod sets and that is not here stands in `uses` as a field path with
// the capability that it needs: nothing is dropped without a word.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/base/boxed.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/shared_list.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/model/capability.hpp"
#include "vk-provider/model/container_spec.hpp"
#include "vk-provider/model/volume.hpp"

namespace spillway::model {

/// namespace, name: for messages and requests. The identity is the UID.
struct PodKey {
  PodKey() = default;
  base::SharedText ns;
  base::SharedText name;
  base::PodUid uid;

  std::string to_string() const { return ns.str() + "/" + name.str(); }
};

/// metadata.ownerReferences[controller=true]; empty for a bare pod.
struct OwnerRef {
  OwnerRef() = default;
  base::SharedText kind;
  base::SharedText name;
  base::SharedText uid;
};

/// GPUs of one pod: what its containers hold at one time.
struct GpuNeed {
  GpuNeed() = default;
  int count = 0;
  base::SharedText resource;  // nvidia.com/gpu or amd.com/gpu; empty if count is 0
};

/// A field that the pod sets and that somebody must be able to honour.
struct FieldUse {
  FieldUse() = default;
  std::string path;                 // spec.containers[0].livenessProbe
  std::optional<Capability> needs;  // empty: no provider can ever honour it on a rented machine
  std::string why;                  // shown to the user: "host namespaces do not exist on a rented machine"
};

/// spec.hostAliases[]: lines of /etc/hosts.
struct HostAlias {
  HostAlias() = default;
  std::string ip;
  std::vector<std::string> hostnames;
  bool operator==(const HostAlias&) const = default;
};

/// spec.dnsConfig. With dnsPolicy None it is all that there is, otherwise it is added to the machine's resolver.
struct DnsConfig {
  DnsConfig() = default;
  bool alone = false;
  std::vector<std::string> nameservers;
  std::vector<std::string> searches;
  std::vector<std::string> options;  // name or name:value
  bool operator==(const DnsConfig&) const = default;
};

/// What few pods set of all that concerns the whole pod.
struct PodExtras {
  PodExtras() = default;
  std::string hostname;
  std::string subdomain;
  bool hostname_as_fqdn = false;
  std::vector<HostAlias> host_aliases;
  base::Boxed<DnsConfig> dns;
  bool share_processes = false;
  std::vector<std::int64_t> supplemental_groups;
  std::optional<std::int64_t> fs_group;
  std::vector<std::string> pull_secrets;
  base::Boxed<Resources> resources;  // spec.resources: of the whole pod, instead of its containers' sum
  base::SharedList<VolumeSpec> volumes;
  base::SharedList<ContainerSpec> init_containers;  // and sidecars
  bool operator==(const PodExtras&) const = default;
};

struct PodSpec {
  PodSpec() = default;
  PodKey key;
  OwnerRef owner;
  base::SharedText node_name;
  base::SharedText service_account;
  base::WallTime created_at;
  base::SharedList<ContainerSpec> containers;
  base::Boxed<PodExtras> extras;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  std::chrono::seconds grace{30};
  GpuNeed gpu;
  std::vector<FieldUse> uses;
  bool service_account_token_withheld = false;
  bool tolerates_everything = false;  // a toleration without a key: such a pod of a DaemonSet is everywhere
  bool service_links = true;          // enableServiceLinks
  std::vector<std::string> readiness_gates;
  /// Annotations of the pod under spillway.dev/ and fake.spillway.dev/ (never those under state.).
  std::map<std::string, std::string> annotations;

  /// The UID of who would replace this pod; a bare pod is its own owner.
  const std::string& owner_key() const { return owner.uid.empty() ? key.uid.str() : owner.uid.str(); }
};

using PodSpecPtr = std::shared_ptr<const PodSpec>;

}  // namespace spillway::model
