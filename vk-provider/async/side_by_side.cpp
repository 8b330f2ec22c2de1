#include "vk-provider/async/side_by_side.hpp"

#include <optional>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "vk-provider/async/task_group.hpp"

namespace spillway::async {
namespace asio = boost::asio;

namespace {

/// How many of the tasks are still waited for, and the place where that is done.
struct Progress {
  explicit Progress(const asio::any_io_executor& executor) : over(executor, asio::steady_timer::time_point::max()) {}

  void note(base::Result<void> outcome) {
    if (left == 0) return;
    if (!outcome) {
      left = 0;
    } else {
      --left;
    }
    if (left > 0) return;
    said = std::move(outcome);
    over.cancel();
  }

  asio::steady_timer over;
  size_t left = 0;
  std::optional<base::Result<void>> said;  // by the one that ended the waiting
};

Loop note_end(Task<void> task, Progress* progress) { progress->note(co_await std::move(task)); }

/// Waits until `wanted` of the tasks have succeeded, or one has failed; then cancels whatever still runs.
Task<void> run(std::vector<Task<void>> tasks, size_t wanted, std::vector<Loop> helpers) {
  if (wanted == 0) co_return base::Result<void>();
  // A caller that is cancelled must not leave its parts behind; the cancellation takes effect when they have ended.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  TaskGroup group(co_await asio::this_coro::executor);
  Progress progress(group.executor());
  progress.left = wanted;
  for (Task<void>& task : tasks) group.spawn(note_end(std::move(task), &progress));
  for (Loop& helper : helpers) group.spawn(std::move(helper));
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() == asio::cancellation_type::none) {
    co_await progress.over.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  std::optional<base::Result<void>> said = std::move(progress.said);
  co_await group.stop();
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (!said) co_return base::fail(base::ErrorKind::kCancelled, "it was cancelled");
  co_return *std::move(said);
}

}  // namespace

Task<void> first_of(std::vector<Task<void>> tasks) { return run(std::move(tasks), 1, {}); }

Task<void> all_of(std::vector<Task<void>> tasks) {
  const size_t all = tasks.size();
  return run(std::move(tasks), all, {});
}

Task<void> with_helper(Task<void> main, Loop helper) {
  return run(together(std::move(main)), 1, together(std::move(helper)));
}

}  // namespace spillway::async
