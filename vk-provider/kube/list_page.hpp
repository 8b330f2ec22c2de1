// One page of a list: `{"metadata":{"resourceVersion":...,"continue":...},"items":[...]}`.
//
// Pure; points into the body. Strict where it matters: a body that was cut must never pass for an empty list, because
// what is missing from a list is taken for deleted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::kube {

struct ListPage {
  ListPage() = default;
  std::string_view items;  // an array, or `null` for none
  std::string resource_version;
  std::string continue_token;  // empty: this is the last page
};

/// Empty if the body is not whole, or is no list.
std::optional<ListPage> parse_list_page(std::string_view body);

}  // namespace spillway::kube
