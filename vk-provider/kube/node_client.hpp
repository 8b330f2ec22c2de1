// Typed calls for Nodes over KubeApi: one function per verb that we use.
//
// Owned by the node controller, uses a KubeApi that outlives it; reactor thread only. Repeats nothing and keeps
// nothing. Every write answers with the Node as it stands then.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/kube/node_codec.hpp"

namespace spillway::kube {

class NodeClient {
 public:
  explicit NodeClient(KubeApi& api) : api_(api) {}

  /// v1.36.3
  async::Task<std::string> get_server_version(base::Deadline deadline);

  async::Task<ObservedNode> get(std::string name, base::Deadline deadline);
  /// kConflict if a Node of that name exists, whoever owns it.
  async::Task<ObservedNode> create(NodeMetadata metadata, std::vector<NodeTaint> taints, std::string provider_id,
                                   base::Deadline deadline);

  // All of these: kNotFound if the Node is gone, kConflict if it is another one by now.
  async::Task<ObservedNode> apply_metadata(NodeMetadata metadata, base::Deadline deadline);
  async::Task<ObservedNode> remove_metadata(std::string name, std::string uid, std::set<std::string> labels,
                                            std::set<std::string> annotations, base::Deadline deadline);
  async::Task<ObservedNode> apply_status(std::string name, std::string uid, NodeStatus status, base::WallTime now,
                                         base::Deadline deadline);
  async::Task<ObservedNode> replace_addresses(std::string name, std::string uid, std::vector<NodeAddress> addresses,
                                              base::Deadline deadline);
  /// kConflict also if somebody wrote the Node since `resource_version`.
  async::Task<ObservedNode> write_taints(std::string name, std::string resource_version, std::vector<NodeTaint> taints,
                                         base::Deadline deadline);
  async::Task<ObservedNode> set_provider_id(std::string name, std::string uid, std::string provider_id,
                                            base::Deadline deadline);

 private:
  async::Task<ObservedNode> patch(std::string target, std::string content_type, std::string body,
                                  base::Deadline deadline);

  KubeApi& api_;
};

}  // namespace spillway::kube
