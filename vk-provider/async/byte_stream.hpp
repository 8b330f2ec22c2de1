// Bytes that come or go piece by piece: a watch, a log, an exec, a port.
//
// Owned by whoever reads it; reactor thread only. Destroying a stream closes it without waiting.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vk-provider/async/task.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::async {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// The next bytes, at least one; an empty string at the end of the stream. kDeadline if nothing came in time: the
  /// stream is then of no further use.
  virtual Task<std::string> read(base::Deadline deadline) = 0;
  /// Writes all of it. kUnsupported for a stream that only reads.
  virtual Task<void> write(std::string bytes, base::Deadline deadline) = 0;
  /// Says that nothing more will be written; reading goes on.
  virtual Task<void> close_write(base::Deadline deadline) = 0;
};

using ByteStreamPtr = std::unique_ptr<ByteStream>;

}  // namespace spillway::async
