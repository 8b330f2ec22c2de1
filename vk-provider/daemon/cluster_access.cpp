#include "vk-provider/daemon/cluster_access.hpp"

#include "vk-provider/kube/kubeconfig.hpp"

namespace spillway::daemon {

base::Result<kube::ClusterAccess> find_cluster(
    const std::string& kubeconfig, const std::function<std::optional<std::string>(const std::string&)>& environment) {
  if (!kubeconfig.empty()) return kube::load_kubeconfig(kubeconfig);
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  if (!host.empty()) return kube::in_cluster_access(host, environment("KUBERNETES_SERVICE_PORT").value_or("443"));
  const std::string file = environment("KUBECONFIG").value_or("");
  if (file.empty()) {
    return base::fail(base::ErrorKind::kInvalid,
                      "no API server: this process does not run in a cluster and $KUBECONFIG is not set; give "
                      "--kubeconfig FILE");
  }
  if (file.find(':') != std::string::npos) {
    return base::fail(base::ErrorKind::kInvalid,
                      "$KUBECONFIG names several files (" + file + "); one is read, so give it by --kubeconfig FILE");
  }
  return kube::load_kubeconfig(file);
}

}  // namespace spillway::daemon
