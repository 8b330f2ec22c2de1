// Client::list_pod_uids: the live look of the sweep. Pages of metadata only, and of that only the UIDs.
#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/json_scan.hpp"

namespace spillway::kube {

async::Task<std::unordered_set<std::string>> Client::list_pod_uids(base::Deadline deadline) {
  std::unordered_set<std::string> uids;
  std::string next;
  do {
    KubeRequest request;
    request.target = "/api/v1/pods?limit=500" + (next.empty() ? std::string() : "&continue=" + next);
    request.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    auto page = co_await api_.send(std::move(request), deadline);
    if (!page) co_return base::fail(std::move(page.error()));
    JsonArray items(json_member(page->body, "items"));
    while (items.next()) {
      uids.insert(json_string_or_empty(json_member(json_member(items.value(), "metadata"), "uid")));
    }
    if (items.failed()) co_return base::fail(base::ErrorKind::kUnavailable, "the list of pods was cut");
    next = json_string_or_empty(json_member(json_member(page->body, "metadata"), "continue"));
  } while (!next.empty());
  co_return uids;
}

}  // namespace spillway::kube
