// Owns the coroutines that a component starts: nothing runs that nobody waits for.
//
// Owned by the component; reactor thread only. The owner awaits stop() before it dies; a group that dies with live
// tasks ends the process, because their frames refer to freed memory. A task that throws ends the process, too: tasks
// report failures as values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "vk-provider/async/task.hpp"

namespace spillway::async {

class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts it on the reactor, not at once. After stop() has begun this does nothing.
  void spawn(boost::asio::awaitable<void> task);
  /// Cancels all (terminal) and returns when the last has ended.
  boost::asio::awaitable<void> stop();
  /// Returns when the last task has ended by itself.
  boost::asio::awaitable<void> join();

  size_t size() const { return tasks_.size(); }
  bool stopping() const { return stopping_; }
  const boost::asio::any_io_executor& executor() const { return executor_; }

 private:
  void finished(std::uint64_t id);

  boost::asio::any_io_executor executor_;
  std::unordered_map<std::uint64_t, std::unique_ptr<boost::asio::cancellation_signal>> tasks_;
  std::uint64_t next_id_ = 0;
  bool stopping_ = false;
  std::function<void()> on_empty_;
};

}  // namespace spillway::async
