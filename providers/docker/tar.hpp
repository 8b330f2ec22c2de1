// Tar archives in memory: what goes into volumes, and the one file that comes out.
//
// Values, any thread. Writes ustar, with a pax header where a path is too long or a number too large for it; reads what
// an engine sends for one regular file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::providers::docker {

struct TarOwner {
  std::int64_t user = 0;
  std::int64_t group = 0;
};

/// The time is always 0: the same bytes on every run.
class TarWriter {
 public:
  /// Paths have no leading slash. `mode` is that of chmod, with the bits for setuid, setgid and sticky.
  void add_directory(std::string_view path, int mode, TarOwner owner = {});
  void add_file(std::string_view path, std::string_view content, int mode, TarOwner owner = {});
  /// The archive; the writer is empty after it.
  std::string finish();

 private:
  void add(std::string_view path, char type, size_t size, int mode, TarOwner owner);
  void append_padded(std::string_view content);

  std::string tar_;
};

/// The content of the first regular file; empty if there is none, or if it is cut.
std::optional<std::string> first_file(std::string_view tar);

}  // namespace spillway::providers::docker
