// What several coroutines write to one connection, one after the other.
//
// Owned by shared_ptr: by the coroutine that empties it and by those who write. Reactor thread only. A writer that is
// cancelled, or gives up, takes nothing back: a message that was begun is sent whole, or the messages behind it would
// be rubbish. Bounded by its writers, each of whom waits until its own message has gone.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "vk-provider/async/task.hpp"
#include "vk-provider/async/wait_place.hpp"

namespace spillway::async {

class Outbox {
 public:
  explicit Outbox(Timers& timers) : timers_(timers) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// Returns when the message has been written. kDeadline if that takes too long; else the error that ended the
  /// connection.
  static Task<void> send(std::shared_ptr<Outbox> outbox, std::string message, base::Deadline deadline);
  /// Returns at once: for the little that nobody waits for. Its caller looks at waiting() before it says more.
  void post(std::string message);
  /// Messages that are not yet written.
  size_t waiting() const { return queue_.size() + (current_ ? 1 : 0); }
  /// Returns when all that is waiting now has been written, or the connection has ended.
  static boost::asio::awaitable<void> flush(std::shared_ptr<Outbox> outbox);

  /// For the one who writes: the next message; empty when the outbox is closed and nothing is left.
  static boost::asio::awaitable<std::optional<std::string>> next(std::shared_ptr<Outbox> outbox);
  /// The message that next() gave out has been written.
  void written();
  /// Nothing is taken any more; what is waiting can still be written.
  void close(base::Error why);
  /// The connection has ended: who waits, and who still comes, is told.
  void fail(const base::Error& why);

 private:
  /// One message; shared with the writer who waits for it.
  struct Entry {
    std::string message;
    bool done = false;
    WaitPlace writer;
  };

  static Task<void> wait_for(std::shared_ptr<Outbox> outbox, std::shared_ptr<Entry> entry, base::Deadline deadline);
  std::shared_ptr<Entry> add(std::string message);

  Timers& timers_;
  std::deque<std::shared_ptr<Entry>> queue_;
  std::shared_ptr<Entry> current_;
  WaitPlace sender_;
  std::optional<base::Error> closed_;
  std::optional<base::Error> failed_;
};
using OutboxPtr = std::shared_ptr<Outbox>;

}  // namespace spillway::async
