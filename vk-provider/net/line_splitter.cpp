#include "vk-provider/net/line_splitter.hpp"

namespace spillway::net {

base::Result<void> LineSplitter::feed(std::string_view chunk) {
  if (taken_ > 0) {
    buffer_.erase(0, taken_);
    line_begin_ -= taken_;
    for (size_t& end : line_ends_) end -= taken_;
    taken_ = 0;
  }
  size_t search = buffer_.size();
  buffer_.append(chunk);
  for (;;) {
    const size_t end = buffer_.find('\n', search);
    const size_t length = (end == std::string::npos ? buffer_.size() : end) - line_begin_;
    if (length > max_line_) {
      return base::fail(base::ErrorKind::kInvalid,
                        "a line of the stream is longer than " + std::to_string(max_line_) + " bytes");
    }
    if (end == std::string::npos) return {};
    line_ends_.push_back(end);
    line_begin_ = search = end + 1;
  }
}

std::optional<std::string_view> LineSplitter::next() {
  if (line_ends_.empty()) return std::nullopt;
  const size_t end = line_ends_.front();
  line_ends_.pop_front();
  const std::string_view line = std::string_view(buffer_).substr(taken_, end - taken_);
  taken_ = end + 1;
  return line;
}

}  // namespace spillway::net
