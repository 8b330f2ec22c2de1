// Typed calls over KubeApi: one function per verb that we use.
//
// Owned by the daemon, uses a KubeApi that outlives it; reactor thread only. Repeats nothing and keeps nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/kube/pod_codec.hpp"
#include "vk-provider/model/cluster_objects.hpp"

namespace spillway::kube {

struct Lease {
  Lease() = default;
  std::string ns;
  std::string name;
  std::string resource_version;  // empty when it is to be created
  std::string holder;            // empty: released
  std::chrono::seconds duration{0};
  std::optional<base::WallTime> acquire_time;
  std::optional<base::WallTime> renew_time;
  int transitions = 0;
  /// The Node that owns it (node leases); both empty without one.
  std::string owner_node_name;
  std::string owner_node_uid;
};

struct Event {
  Event() = default;
  std::string ns;
  std::string name;
  std::string involved_kind = "Pod";
  std::string involved_namespace;
  std::string involved_name;
  std::string involved_uid;
  std::string involved_version;  // apiVersion of the object: v1
  bool warning = false;
  std::string reason;
  std::string message;
  base::WallTime first_seen;
  base::WallTime last_seen;
  int count = 1;
  std::string host;  // reportingInstance and source.host
};

class Client {
 public:
  explicit Client(KubeApi& api) : api_(api) {}

  KubeApi& api() { return api_; }
  /// How many writes of a pod's status have begun: what may wait, gives way while it rises.
  std::uint64_t status_writes() const { return status_writes_; }

  /// metadata.uid of the namespace kube-system.
  async::Task<std::string> get_cluster_uid(base::Deadline deadline);

  /// The resourceVersion that the pod then has. kConflict: it is another pod by now, or somebody wrote it.
  async::Task<std::string> patch_pod_status(PodStatusPatch patch, base::Deadline deadline);
  /// Grace 0 with the UID as a precondition. kNotFound and kConflict (another UID by now) both mean that this pod is
  /// gone.
  async::Task<void> delete_pod(model::PodKey key, base::Deadline deadline);
  /// The UIDs of all pods of the cluster, read live.
  async::Task<std::unordered_set<std::string>> list_pod_uids(base::Deadline deadline);
  async::Task<DecodedPod> get_pod(std::string ns, std::string name, base::Deadline deadline);

  /// Labels and annotations of this pod, read live. kNotFound also if another one has its name by now.
  async::Task<model::PodMetadata> get_pod_metadata(model::PodKey key, base::Deadline deadline);

  /// kNotFound if there is none.
  async::Task<model::ConfigObject> get_config_map(std::string ns, std::string name, base::Deadline deadline);
  async::Task<model::ConfigObject> get_secret(std::string ns, std::string name, base::Deadline deadline);
  async::Task<model::Service> get_service(std::string ns, std::string name, base::Deadline deadline);
  /// Of one namespace, page by page.
  async::Task<std::vector<model::Service>> list_services(std::string ns, base::Deadline deadline);
  /// A new token of the service account `account` of the pod's namespace; it dies with the pod.
  async::Task<model::BoundToken> request_token(model::PodKey pod, std::string account, std::string audience,
                                               std::chrono::seconds expiration, base::Deadline deadline);

  async::Task<Lease> get_lease(std::string ns, std::string name, base::Deadline deadline);
  /// POST if resource_version is empty, otherwise PUT with it (kConflict if somebody else wrote). Returns what stands
  /// now.
  async::Task<Lease> put_lease(Lease lease, base::Deadline deadline);

  async::Task<void> create_event(Event event, base::Deadline deadline);
  /// Raises count, lastTimestamp and message of an event that exists.
  async::Task<void> patch_event(Event event, base::Deadline deadline);

 private:
  /// The JSON of one object. `api` and `resource` are literals.
  async::Task<std::string> get_object(std::string_view api, std::string_view resource, std::string ns, std::string name,
                                      base::Deadline deadline);

  KubeApi& api_;
  std::uint64_t status_writes_ = 0;
};

}  // namespace spillway::kube
