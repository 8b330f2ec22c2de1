// Client::list_pod_uids: the live look of the sweep. Pages of metadata only, and of that only the UIDs.
#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/list_page.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {

async::Task<std::unordered_set<std::string>> Client::list_pod_uids(base::Deadline deadline) {
  std::unordered_set<std::string> uids;
  std::string next;
  do {
    KubeRequest request;
    request.target =
        "/api/v1/pods?limit=500" + (next.empty() ? std::string() : "&continue=" + net::encode_query_value(next));
    request.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    auto page = co_await api_.send(std::move(request), deadline);
    if (!page) co_return base::fail(std::move(page.error()));
    // Who is not in this list loses his instance: a body that was cut must not pass for a short list.
    const std::optional<ListPage> list = parse_list_page(page->body);
    JsonArray items(list ? list->items : std::string_view());
    while (items.next()) {
      const std::string uid = json_string_or_empty(json_member(json_member(items.value(), "metadata"), "uid"));
      if (uid.empty()) co_return base::fail(base::ErrorKind::kUnavailable, "the list of pods holds one without a UID");
      uids.insert(uid);
    }
    if (!list || items.failed()) co_return base::fail(base::ErrorKind::kUnavailable, "the list of pods was cut");
    next = list->continue_token;
  } while (!next.empty());
  co_return uids;
}

}  // namespace spillway::kube
