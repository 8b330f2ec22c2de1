// Decides about each request to the kubelet API: who sends it (client certificate, bearer token, nobody), and whether
// the API server lets them do that to the node.
//
// Owned by the kubelet API, one for all nodes; uses a KubeApi that outlives it; reactor thread only. What the API
// server said is kept as a kubelet keeps it: a token 2 min, a yes 5 min, a no 30 s. A token that is none is forgotten
// after 10 s: it may only be too new. While the API server cannot be asked, nobody comes in on its word. Keeps no
// token: only its hash.
#pragma once

#include <string>

#include "vk-provider/api/answer_cache.hpp"
#include "vk-provider/api/authn_rules.hpp"
#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/kube/access_client.hpp"

namespace spillway::api {

struct Admission {
  Admission() = default;
  Admission(int s, std::string b) : status(s), body(std::move(b)) {}
  int status = 200;  // 200: come in; 401, 403; 500: the API server could not be asked
  std::string body;  // what to say to those who stay outside
  std::string user;  // who came in
};

class Authn {
 public:
  /// `anonymous`: who shows no credentials at all is system:anonymous instead of nobody.
  Authn(kube::KubeApi& api, async::Timers& timers, base::Metrics& metrics, bool anonymous);

  boost::asio::awaitable<Admission> admit(Credentials credentials, AccessAttributes wanted, base::Deadline deadline);

 private:
  /// Empty: nobody. An error: the API server could not be asked.
  async::Task<kube::TokenVerdict> identify(Credentials credentials, base::Deadline deadline);
  async::Task<kube::TokenVerdict> ask_token(base::Secret token, base::Deadline deadline);
  async::Task<bool> ask_access(kube::AccessQuestion question, base::Deadline deadline);
  async::Task<bool> may(kube::AccessQuestion question, base::Deadline deadline);
  base::Counter& counter(const std::string& review, const std::string& outcome);

  kube::AccessClient client_;
  base::Metrics& metrics_;
  bool anonymous_;
  /// Tokens come from whoever can connect: what is asked about them must not fill the API server.
  async::Semaphore reviews_;
  AnswerCache<kube::TokenVerdict> tokens_;
  AnswerCache<bool> access_;
};

}  // namespace spillway::api
