// The engine's frames: how both outputs of a process share one connection.
//
// Pure. A frame is a type, three zeros, a length of four bytes (the highest first), and so many bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"

namespace spillway::providers::docker {

enum class Channel : std::uint8_t { kOutput, kErrors };

/// Bytes of one frame.
struct FramePart {
  FramePart() = default;
  Channel channel = Channel::kOutput;
  bool of_engine = false;  // what the engine itself has to complain about; on kErrors
  bool begins = false;     // the first bytes of their frame
  bool ends = false;       // the last ones
  std::string_view bytes;
};

/// Takes frames apart, however they were cut on their way.
class FrameSplitter {
 public:
  /// Takes the next bytes of one frame off the front of `bytes`: those that are there. Without any when `bytes` ended
  /// in a header, and for a frame that has none. kUnavailable if these are no frames.
  base::Result<FramePart> next(std::string_view& bytes);
  /// Appends what is in `bytes` to the text of its channel.
  base::Result<void> feed(std::string_view bytes, std::array<std::string*, 2> into);
  /// False in the middle of a frame.
  bool at_boundary() const { return left_ == 0 && header_.empty(); }

 private:
  std::string header_;  // as much of it as has come
  size_t left_ = 0;     // of the frame that has begun
  FramePart frame_;     // what is known of it
};

}  // namespace spillway::providers::docker
