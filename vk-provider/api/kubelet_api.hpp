// The kubelet API of all virtual nodes of this process: a server for each, and what they have in common.
//
// Owned by the daemon while it is the active one; reactor thread only. It holds the TLS of all servers together: the
// serving certificate and the CA of clients come from two places and change at any time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vk-provider/api/client_ca.hpp"
#include "vk-provider/api/kubelet_server.hpp"
#include "vk-provider/api/serving_certificate.hpp"
#include "vk-provider/async/task_group.hpp"

namespace spillway::api {

/// A virtual node, as its API needs to know it.
struct KubeletNode {
  KubeletNode() = default;
  std::string name;
  std::string address;   // that the API server connects to
  std::string max_pods;  // a quantity
};

class KubeletApi {
 public:
  /// `installation` begins the names of CertificateSigningRequests.
  KubeletApi(boost::asio::any_io_executor executor, KubeletApiConfig config, std::vector<KubeletNode> nodes,
             const std::string& installation, KubeletSources sources);
  KubeletApi(const KubeletApi&) = delete;
  KubeletApi& operator=(const KubeletApi&) = delete;

  /// Begins to listen. An error names the key of the configuration that is in the way.
  base::Result<void> start();
  boost::asio::awaitable<void> stop(base::Deadline deadline);

  /// Of the node's server, after start().
  std::uint16_t port(const std::string& node) const;
  /// What is in the way of the API server's calls; empty if nothing is.
  std::string problem() const;

 private:
  base::Result<void> prepare_tls();
  base::Result<void> use_certificate(const CertificatePair& pair);
  base::Result<void> use_client_ca(const std::string& ca_pem);
  /// For all servers, or for none.
  base::Result<void> replace_tls(net::ServerTls tls);

  KubeletApiConfig config_;
  std::vector<KubeletNode> nodes_;
  KubeletSources sources_;
  Authn authn_;
  ServingCertificate certificate_;
  ClientCa client_ca_;
  net::ServerTls tls_;
  std::vector<std::unique_ptr<KubeletServer>> servers_;  // in the order of the nodes
  async::TaskGroup group_;
};

}  // namespace spillway::api
