// KubeApi over HTTP: bearer token, user agent, and what each status means.
//
// Owned by main; uses a client and credentials that outlive it. Reactor thread only. Repeats nothing but a request that
// was answered 401 while a newer token was at hand.
#pragma once

#include <string>

#include "vk-provider/kube/credentials.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::kube {

class HttpKubeApi final : public KubeApi {
 public:
  /// `path_prefix` of ClusterAccess; `user_agent` as in `spillway/0.1.0`.
  HttpKubeApi(net::HttpClient& client, Credentials& credentials, std::string path_prefix, std::string user_agent);

  async::Task<KubeResponse> send(KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(KubeRequest request, base::Deadline deadline) override;

 private:
  net::HttpRequest to_http(const KubeRequest& request);

  net::HttpClient& client_;
  Credentials& credentials_;
  std::string path_prefix_;
  std::string user_agent_;
};

/// The error that an answer other than 2xx stands for.
base::Error error_of(net::Method method, const net::HttpResponse& response);

}  // namespace spillway::kube
