// Typed calls about who may call and who we are: one function per verb that we use.
//
// Owned by the kubelet API, uses a KubeApi that outlives it; reactor thread only. Repeats nothing and keeps nothing.
#pragma once

#include <string>

#include "vk-provider/kube/access_codec.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::kube {

class AccessClient {
 public:
  explicit AccessClient(KubeApi& api) : api_(api) {}

  async::Task<TokenVerdict> review_token(base::Secret token, base::Deadline deadline);
  /// True: allowed.
  async::Task<bool> review_access(AccessQuestion question, base::Deadline deadline);

  /// The name that the request was given, and how far it is.
  async::Task<SigningState> create_signing_request(SigningRequest request, base::Deadline deadline);
  /// kNotFound: the API server forgot it, which it does an hour after the answer and a day without one.
  async::Task<SigningState> get_signing_request(std::string name, base::Deadline deadline);

  /// The CA certificates by which the API server knows its clients, and shows itself to kubelets: client-ca-file of
  /// kube-system/extension-apiserver-authentication, as PEM. kNotFound if it has none.
  async::Task<std::string> get_client_ca(base::Deadline deadline);

 private:
  async::Task<std::string> post(std::string target, std::string body, base::Deadline deadline);
  async::Task<std::string> get(std::string target, base::Deadline deadline);

  KubeApi& api_;
};

}  // namespace spillway::kube
