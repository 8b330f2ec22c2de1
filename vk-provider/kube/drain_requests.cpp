#include "vk-provider/kube/drain_requests.hpp"

#include <utility>

#include "vk-provider/kube/drain_codec.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

std::string pod_path(const model::HomePod& pod) {
  return "/api/v1/namespaces/" + net::encode_path_segment(pod.drain.ns) + "/pods/" +
         net::encode_path_segment(pod.drain.name);
}

KubeRequest patch_request(const model::HomePod& pod, std::string body) {
  KubeRequest out;
  out.method = net::Method::kPatch;
  out.target = pod_path(pod) + "?fieldManager=spillway-gate";
  out.content_type = "application/merge-patch+json";
  out.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  out.body = std::move(body);
  return out;
}

}  // namespace

KubeRequest eviction_request(const model::HomePod& pod) {
  KubeRequest out;
  out.method = net::Method::kPost;
  out.target = pod_path(pod) + "/eviction";
  out.content_type = "application/json";
  out.body = encode_eviction(pod);
  return out;
}

KubeRequest detach_request(const model::HomePod& pod, const model::DetachNote& note) {
  return patch_request(pod, encode_detach(pod, note));
}

KubeRequest return_request(const model::HomePod& pod) { return patch_request(pod, encode_return(pod)); }

}  // namespace spillway::kube
