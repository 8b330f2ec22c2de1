// Bytes on their way from one coroutine to another, within bounds.
//
// Owned by shared_ptr: by both sides. Reactor thread only. One side puts, the other reads; one of each may wait at a
// time. Does not cut and does not keep boundaries: a read gets all that is there.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/async/task.hpp"
#include "vk-provider/async/wait_place.hpp"

namespace spillway::async {

class Pipe {
 public:
  /// From `capacity` bytes on it is full.
  Pipe(Timers& timers, size_t capacity) : timers_(timers), capacity_(capacity) {}
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Adds the bytes, also if they are more than there is room for: who does not want that waits for room first. What
  /// comes after an end, or after the reader has left, is dropped.
  void put(std::string_view bytes);
  /// True if it is not full, or nobody will read any more.
  bool has_room() const { return closed_ || bytes_.size() < capacity_; }
  /// False if the deadline came first.
  static boost::asio::awaitable<bool> wait_for_room(std::shared_ptr<Pipe> pipe, base::Deadline deadline);
  /// The reader gets what is there, and then the end.
  void end();
  /// The reader gets what is there, and then the error.
  void fail(base::Error error);
  bool ended() const { return ended_ || failed_.has_value(); }

  /// As ByteStream::read; but for a deadline that passes, after which the pipe is as it was.
  static Task<std::string> read(std::shared_ptr<Pipe> pipe, base::Deadline deadline);
  /// Nobody will read any more.
  void close_reader();
  bool reader_closed() const { return closed_; }

 private:
  Timers& timers_;
  size_t capacity_;
  std::string bytes_;
  bool ended_ = false;
  bool closed_ = false;
  std::optional<base::Error> failed_;
  WaitPlace reader_;
  WaitPlace writer_;
};
using PipePtr = std::shared_ptr<Pipe>;

}  // namespace spillway::async
