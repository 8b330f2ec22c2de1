// Who we are to the API server, and where it is.
//
// ClusterAccess is read once at the start (kubeconfig or in-cluster); Credentials then keeps the token current. Owned
// by main, outlives HttpKubeApi; reactor thread only. Reads small local files; does not renew client certificates: a
// new one needs a new start.
#pragma once

#include <string>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/base/secret.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::kube {

struct ClusterAccess {
  ClusterAccess() = default;
  net::Endpoint endpoint;   // with CA and client certificate
  std::string path_prefix;  // of the server's URL: /k8s/clusters/c-1; mostly empty
  std::string ns;           // the context's or the pod's namespace; `default` if there is none
  base::Secret token;       // empty with a client certificate alone
  std::string token_file;   // set: `token` came from there and is read again
};

class Credentials {
 public:
  /// `access` has been checked by its loader: `token` is usable now.
  Credentials(const ClusterAccess& access, const base::Clock& clock);

  /// What to send now; a token file is read again if the last time was 60 s ago. If that fails, the last good token is
  /// kept, with a warning.
  const base::Secret& bearer();

  /// Reads the token file at once, as after a 401. True if the token is another one now.
  bool reload();

 private:
  base::Secret token_;
  std::string token_file_;
  const base::Clock& clock_;
  base::TimePoint read_at_;
};

/// The content of a token file without white space at its ends. kInvalid if it cannot be read, is empty, or is more
/// than one line.
base::Result<base::Secret> read_token_file(const std::string& path);

/// The content of a file of up to 1 MiB. kInvalid names the path.
base::Result<std::string> read_small_file(const std::string& path);

/// The service account that the kubelet mounts: token, ca.crt and namespace in `directory`. `host` and `port` are
/// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of the environment. kInvalid names what is missing.
base::Result<ClusterAccess> in_cluster_access(
    const std::string& host, const std::string& port,
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace spillway::kube
