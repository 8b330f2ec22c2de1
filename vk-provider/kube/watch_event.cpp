#include "vk-provider/kube/watch_event.hpp"

#include <utility>

#include "vk-provider/kube/json_scan.hpp"

namespace spillway::kube {
namespace {

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

struct Parts {
  std::string_view type;  // with its quotes
  std::string_view object;
};

/// As the API server writes it: the object is the last member, so that nothing has to be scanned to find its end.
std::optional<Parts> split_as_written(std::string_view line) {
  constexpr std::string_view kBegin = R"({"type":)";
  constexpr std::string_view kMiddle = R"(,"object":)";
  if (!line.starts_with(kBegin) || !line.ends_with("}}")) return std::nullopt;
  line.remove_prefix(kBegin.size());
  const size_t quote = line.find('"', 1);
  if (quote == std::string_view::npos || line.substr(quote + 1, kMiddle.size()) != kMiddle) return std::nullopt;
  const size_t object = quote + 1 + kMiddle.size();
  if (object >= line.size() || line[object] != '{') return std::nullopt;
  return Parts{line.substr(0, quote + 1), line.substr(object, line.size() - object - 1)};
}

std::optional<Parts> split_any(std::string_view line) {
  Parts out;
  JsonObject members(line);
  while (members.next()) {
    if (members.key() == "type") out.type = members.value();
    if (members.key() == "object") out.object = members.value();
  }
  if (members.failed() || !json_is_object(out.object)) return std::nullopt;
  return out;
}

std::optional<WatchEvent::Type> type_of(std::string_view type) {
  if (type == "\"MODIFIED\"") return WatchEvent::Type::kModified;
  if (type == "\"ADDED\"") return WatchEvent::Type::kAdded;
  if (type == "\"DELETED\"") return WatchEvent::Type::kDeleted;
  if (type == "\"BOOKMARK\"") return WatchEvent::Type::kBookmark;
  if (type == "\"ERROR\"") return WatchEvent::Type::kError;
  return std::nullopt;
}

}  // namespace

std::optional<WatchEvent> parse_watch_line(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  auto parts = split_as_written(line);
  if (!parts) parts = split_any(line);
  if (!parts) return std::nullopt;
  const auto type = type_of(parts->type);
  if (!type) return std::nullopt;

  WatchEvent out;
  out.type = *type;
  out.object = parts->object;
  if (*type == WatchEvent::Type::kError) {
    const auto code = json_int(json_member(out.object, "code")).value_or(0);
    out.code = std::in_range<int>(code) ? static_cast<int>(code) : 0;
    out.message = json_string_or_empty(json_member(out.object, "message"));
    return out;
  }
  out.resource_version = json_string_or_empty(json_member(out.object, "metadata", "resourceVersion"));
  if (out.resource_version.empty()) return std::nullopt;
  if (*type == WatchEvent::Type::kBookmark) {
    const std::string_view annotations = json_member(out.object, "metadata", "annotations");
    out.ends_initial_list = json_member(annotations, kInitialEventsEnd) == "\"true\"";
  }
  return out;
}

}  // namespace spillway::kube
