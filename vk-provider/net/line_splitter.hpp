// Cuts a byte stream into lines: watch events, progress of an image pull.
//
// Pure; owned by the one who reads the stream. Does not decode anything: a line is bytes up to `\n`, which is not part
// of it. Each byte is looked at once.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"

namespace spillway::net {

class LineSplitter {
 public:
  /// A line of more than `max_line` bytes is an error.
  explicit LineSplitter(size_t max_line) : max_line_(max_line) {}

  /// Adds bytes. kInvalid once a line is too long, finished or not; the splitter is then of no further use.
  base::Result<void> feed(std::string_view chunk);

  /// The next complete line; valid until the next feed().
  std::optional<std::string_view> next();

  /// What came after the last `\n`: a torn line if the stream has ended.
  std::string_view rest() const { return std::string_view(buffer_).substr(line_begin_); }

 private:
  size_t max_line_;
  std::string buffer_;
  size_t taken_ = 0;              // what next() has handed out
  size_t line_begin_ = 0;         // of the line that is not complete
  std::deque<size_t> line_ends_;  // positions of `\n` after taken_
};

}  // namespace spillway::net
