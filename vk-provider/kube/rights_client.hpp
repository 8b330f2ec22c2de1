// Typed calls about what an account may do: one function per verb that we use.
//
// Owned by the doctor, uses a KubeApi that outlives it; reactor thread only. Repeats nothing and keeps nothing.
#pragma once

#include <string>

#include "vk-provider/kube/access_codec.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::kube {

/// What somebody would do; empty parts mean all of them.
struct ResourceRight {
  ResourceRight() = default;
  std::string group;
  std::string resource;
  std::string subresource;
  std::string verb;
  std::string ns;
  std::string name;
};

std::string encode_access_review(const UserInfo& user, const ResourceRight& right);
/// status.userInfo.username of a SelfSubjectReview.
base::Result<std::string> decode_self_review(std::string_view body);

/// The user that a ServiceAccount is, with the groups that it is in.
UserInfo service_account(const std::string& ns, const std::string& name);

class RightsClient {
 public:
  explicit RightsClient(KubeApi& api) : api_(api) {}

  /// True: allowed.
  async::Task<bool> review(UserInfo user, ResourceRight right, base::Deadline deadline);
  /// The name by which the API server knows us.
  async::Task<std::string> who_am_i(base::Deadline deadline);

 private:
  async::Task<std::string> post(std::string target, std::string body, base::Deadline deadline);

  KubeApi& api_;
};

}  // namespace spillway::kube
