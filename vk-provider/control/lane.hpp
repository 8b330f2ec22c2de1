// Does jobs in order, at most `width` at once.
//
// A job that waits is a small value; coroutines exist only for those at work, so 10,000 waiting pods cost a queue and
// not 10,000 frames. Owned by a controller; reactor thread only; its tasks live in the owner's TaskGroup.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "vk-provider/async/task_group.hpp"

namespace spillway::control {

template <class Job>
class Lane {
 public:
  using Work = std::function<boost::asio::awaitable<void>(Job)>;

  Lane(async::TaskGroup& group, size_t width, Work work) : group_(group), width_(width), work_(std::move(work)) {}

  void push(Job job) {
    if (closed_) return;
    queue_.push_back(std::move(job));
    if (busy_ >= width_) return;
    ++busy_;
    group_.spawn(run());
  }

  /// Forgets what has not begun; what has begun goes on.
  void close() {
    closed_ = true;
    queue_.clear();
  }

 private:
  async::Loop run() {
    while (!queue_.empty()) {
      Job job = std::move(queue_.front());
      queue_.pop_front();
      co_await work_(std::move(job));
    }
    --busy_;
  }

  async::TaskGroup& group_;
  size_t width_;
  Work work_;
  std::deque<Job> queue_;
  size_t busy_ = 0;
  bool closed_ = false;
};

}  // namespace spillway::control
