#include "providers/docker/frames.hpp"

#include <algorithm>
#include <utility>

namespace spillway::providers::docker {
namespace {

constexpr size_t kHeader = 8;

}  // namespace

base::Result<FramePart> FrameSplitter::next(std::string_view& bytes) {
  if (left_ == 0) {
    const size_t n = std::min(kHeader - header_.size(), bytes.size());
    header_.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    if (header_.size() < kHeader) return FramePart();
    // 1 is standard output, 2 standard error, 3 what the engine itself has to complain about; 0 is used by nobody.
    const auto type = static_cast<unsigned char>(header_[0]);
    if (type > 3 || header_[1] != 0 || header_[2] != 0 || header_[3] != 0) {
      return base::fail(base::ErrorKind::kUnavailable, "what the engine sends of a process is not made of frames");
    }
    for (size_t i = 4; i < kHeader; ++i) left_ = left_ * 256 + static_cast<unsigned char>(header_[i]);
    header_.clear();
    frame_.channel = type >= 2 ? Channel::kErrors : Channel::kOutput;
    frame_.of_engine = type == 3;
    frame_.begins = true;
  }
  FramePart part = frame_;
  part.bytes = bytes.substr(0, std::min(left_, bytes.size()));
  bytes.remove_prefix(part.bytes.size());
  left_ -= part.bytes.size();
  part.ends = left_ == 0;
  if (!part.bytes.empty()) frame_.begins = false;
  return part;
}

base::Result<void> FrameSplitter::feed(std::string_view bytes, std::array<std::string*, 2> into) {
  while (!bytes.empty()) {
    const auto part = next(bytes);
    if (!part) return base::fail(part.error());
    into[static_cast<size_t>(part->channel)]->append(part->bytes);
  }
  return {};
}

}  // namespace spillway::providers::docker
