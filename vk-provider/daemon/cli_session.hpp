// What a sub-command needs to look at a cluster and its providers by itself, without a daemon.
//
// Owned by the sub-command for its run; main's thread. Makes the providers undecorated: one look needs no breaker.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "vk-provider/async/reactor.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/daemon/config.hpp"
#include "vk-provider/kube/http_kube_api.hpp"
#include "vk-provider/model/ownership.hpp"
#include "vk-provider/net/http_client.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::daemon {

/// The parts that status and sweep work with; a test hands in its own.
struct Surroundings {
  Surroundings() = default;
  kube::KubeApi* api = nullptr;
  net::HttpClient* server = nullptr;  // the API server, for what KubeApi does not show: headers
  net::HttpClientFactory* http = nullptr;
  async::Timers* timers = nullptr;
  std::vector<provider::Provider*> providers;
};

class CliSession {
 public:
  /// kInvalid if certificates cannot be read or a provider cannot be made.
  static base::Result<std::unique_ptr<CliSession>> open(const Config& config, const provider::Registry& registry,
                                                        const kube::ClusterAccess& access);
  /// For the providers alone: `surroundings().api` is null.
  static base::Result<std::unique_ptr<CliSession>> open(const Config& config, const provider::Registry& registry);
  /// For the cluster alone.
  static base::Result<std::unique_ptr<CliSession>> open(const kube::ClusterAccess& access);

  const Surroundings& surroundings() const { return surroundings_; }
  /// Runs to its end, and stops the providers.
  void run(boost::asio::awaitable<void> work);

 private:
  explicit CliSession(const kube::ClusterAccess& access);
  base::Result<void> connect(const kube::ClusterAccess& access);
  base::Result<void> make_providers(const Config& config, const provider::Registry& registry);
  boost::asio::awaitable<void> then_stop(boost::asio::awaitable<void> work);

  async::Reactor reactor_;
  base::SeededRandom random_;
  net::BeastHttpClientFactory http_;
  kube::Credentials credentials_;
  std::unique_ptr<net::HttpClient> client_;
  std::unique_ptr<kube::HttpKubeApi> api_;
  std::vector<std::unique_ptr<provider::Provider>> providers_;
  Surroundings surroundings_;
};

/// The ownership of an installation, once the cluster's id is known.
model::Ownership make_ownership(const std::string& cluster_id, const std::string& installation);
/// The configured id, or the UID of kube-system.
async::Task<std::string> find_cluster_id(std::string configured, kube::KubeApi& api, base::Deadline deadline);

}  // namespace spillway::daemon
