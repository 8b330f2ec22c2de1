#include "vk-provider/kube/list_page.hpp"

#include "vk-provider/kube/json_scan.hpp"

namespace spillway::kube {

std::optional<ListPage> parse_list_page(std::string_view body) {
  ListPage out;
  std::string_view metadata;
  JsonObject members(body);
  while (members.next()) {
    if (members.key() == "metadata") metadata = members.value();
    if (members.key() == "items") out.items = members.value();
  }
  if (members.failed()) return std::nullopt;
  if (!json_is_array(out.items) && out.items != "null") return std::nullopt;
  out.resource_version = json_string_or_empty(json_member(metadata, "resourceVersion"));
  out.continue_token = json_string_or_empty(json_member(metadata, "continue"));
  if (out.resource_version.empty()) return std::nullopt;
  return out;
}

}  // namespace spillway::kube
