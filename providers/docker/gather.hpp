// Asks several hosts at once and waits for all of them.
//
// The tasks run in the provider's TaskGroup, not in one of the caller's: a caller that is cancelled leaves at once, and
// the answers go into memory that they share.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::providers::docker {

template <class T>
struct Gathered {
  std::vector<base::Result<T>> results;
  size_t left = 0;
  std::unique_ptr<async::Waiter> done;
};

template <class T>
boost::asio::awaitable<void> gather_one(std::shared_ptr<Gathered<T>> gathered, size_t index, async::Task<T> task) {
  struct Finish {
    Gathered<T>& gathered;
    ~Finish() {
      if (--gathered.left == 0) gathered.done->wake();
    }
  } finish{*gathered};
  gathered->results[index] = co_await std::move(task);
}

/// In the order of `tasks`. Ends when the last task does: each has a deadline of its own.
template <class T>
boost::asio::awaitable<std::vector<base::Result<T>>> gather(async::TaskGroup& group, async::Timers& timers,
                                                            std::vector<async::Task<T>> tasks) {
  const auto gathered = std::make_shared<Gathered<T>>();
  const base::Error cancelled(base::ErrorKind::kCancelled, "the provider is being stopped");
  gathered->results.assign(tasks.size(), base::fail(cancelled));
  if (group.stopping()) co_return gathered->results;
  gathered->left = tasks.size();
  gathered->done = timers.make_waiter();
  for (size_t i = 0; i < tasks.size(); ++i) group.spawn(gather_one<T>(gathered, i, std::move(tasks[i])));
  while (gathered->left > 0) co_await gathered->done->wait();
  co_return std::move(gathered->results);
}

}  // namespace spillway::providers::docker
