// Whose signature makes a client certificate believable: a file, or the cluster's own client CA.
//
// Owned by the kubelet API, one for all nodes; reactor thread only. The cluster's is read at the start, each hour, and
// when a certificate was not believed (the CA may be a new one); a file each half minute. Before the first one is known
// no certificate is believed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/kube/access_client.hpp"

namespace spillway::api {

class ClientCa {
 public:
  /// Believes in these CAs from now on. kInvalid if they cannot be read: the last ones stay.
  using Use = std::function<base::Result<void>(const std::string& ca_pem)>;

  /// `file`: empty for the cluster's.
  ClientCa(std::string file, kube::KubeApi& api, async::Timers& timers);

  /// Runs until it is cancelled.
  async::Loop run(Use use);
  /// A certificate was not believed.
  void doubt();

  /// Why no CA is known yet; empty once one is.
  const std::string& problem() const { return problem_; }

 private:
  async::Task<std::string> read();
  boost::asio::awaitable<void> rest(int failures);

  std::string file_;
  kube::AccessClient client_;
  async::Timers& timers_;
  std::unique_ptr<async::Waiter> waiter_;
  std::string known_;
  std::string problem_{"it was not read yet"};
  std::string complaint_;
};

}  // namespace spillway::api
