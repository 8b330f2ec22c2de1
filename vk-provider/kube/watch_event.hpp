// One line of a watch: `{"type":"MODIFIED","object":{...}}`.
//
// Pure; points into the line. Looks at the type and at the version only, the object stays text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::kube {

struct WatchEvent {
  WatchEvent() = default;
  enum class Type : std::uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  std::string_view object;
  /// metadata.resourceVersion; not for kError.
  std::string resource_version;
  /// A bookmark that ends the initial list of a stream.
  bool ends_initial_list = false;
  /// code and message of the Status that an kError carries.
  int code = 0;
  std::string message;
};

/// Empty if the line is not such an event, or if it has no version to go on from.
std::optional<WatchEvent> parse_watch_line(std::string_view line);

}  // namespace spillway::kube
