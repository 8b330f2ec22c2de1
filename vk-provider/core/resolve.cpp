#include "vk-provider/core/resolve.hpp"

#include <fmt/format.h>

#include "vk-provider/core/environment.hpp"
#include "vk-provider/core/files.hpp"
#include "vk-provider/core/service_variables.hpp"

namespace spillway::core {
namespace {

constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxHostname = 64;  // of the Linux kernel
// Clusters with another domain are rare, and nothing in the API tells it.
constexpr std::string_view kClusterDomain = "cluster.local";

/// The first init container, or all that there are at once without any: the rest waits for core to start it. A
/// container with a postStart hook waits, too, because the hook and its failure belong to the start.
void set_roles(const model::PodSpec& pod, std::vector<model::ResolvedContainer>& containers) {
  const size_t init = pod.extras ? pod.extras->init_containers.size() : 0;
  for (size_t i = 0; i < containers.size(); ++i) {
    const bool is_init = i < init;
    const model::ContainerSpec& spec = is_init ? pod.extras->init_containers[i] : pod.containers[i - init];
    const bool sidecar = is_init && spec.restart_policy == model::RestartPolicy::kAlways;
    model::ResolvedContainer& container = containers[i];
    container.role = sidecar   ? model::ContainerRole::kSidecar
                     : is_init ? model::ContainerRole::kInit
                               : model::ContainerRole::kMain;
    container.start_at_once = !spec.post_start && (init == 0 || i == 0);
  }
}

}  // namespace

base::Result<std::string> hostname_of(const model::PodSpec& pod) {
  std::string host = pod.extras && !pod.extras->hostname.empty() ? pod.extras->hostname : pod.key.name.str();
  if (host.size() > kMaxLabel) host.resize(kMaxLabel);
  while (!host.empty() && (host.back() == '-' || host.back() == '.')) host.pop_back();
  if (!pod.extras || !pod.extras->hostname_as_fqdn || pod.extras->subdomain.empty()) return host;
  std::string fqdn = fmt::format("{}.{}.{}.svc.{}", host, pod.extras->subdomain, pod.key.ns.str(), kClusterDomain);
  if (fqdn.size() <= kMaxHostname) return fqdn;
  return base::fail(base::ErrorKind::kInvalid,
                    fmt::format("Failed to construct FQDN from pod hostname and cluster domain, FQDN {} is too long "
                                "({} characters is the max, {} characters requested)",
                                fqdn, kMaxHostname, fqdn.size()));
}

std::expected<model::ResolvedPod, Hindrance> resolve_pod(model::PodSpecPtr pod, const Surroundings& read,
                                                         std::vector<int> public_ports, std::vector<Note>& notes) {
  const auto hinder = [](model::WaitReason why, const std::string& message) {
    return std::unexpected(Hindrance(why, message));
  };
  model::ResolvedPod out;
  // Volumes first, as a kubelet does it: it does not look at containers before all volumes are mounted.
  auto files = resolve_files(*pod, read, notes);
  if (!files) return hinder(model::WaitReason::kMount, files.error().message);
  out.volumes = std::move(files->volumes);
  out.files = std::move(files->files);

  const std::map<std::string, std::string> services = service_variables(read.services);
  const EnvironmentInput in{*pod, read, services};
  for (const model::ContainerSpec* spec : all_containers(*pod)) {
    auto container = resolve_container(in, *spec, notes);
    if (!container) return hinder(model::WaitReason::kConfig, "Error: " + container.error().message);
    out.containers.push_back(std::move(*container));
  }
  set_roles(*pod, out.containers);

  auto hostname = hostname_of(*pod);
  if (!hostname) return hinder(model::WaitReason::kMount, hostname.error().message);
  out.hostname = std::move(*hostname);
  out.public_ports = std::move(public_ports);
  out.spec = std::move(pod);
  return out;
}

}  // namespace spillway::core
