#include "vk-provider/async/task_group.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace spillway::async {
namespace asio = boost::asio;

namespace {

[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "spillway: %s\n", why);
  std::abort();
}

/// Cancellation travels through awaitables as operation_aborted; everything else is a bug.
void check(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) return;
    die(e.what());
  } catch (const std::exception& e) {
    die(e.what());
  }
}

/// co_spawn runs a coroutine inside the call up to its first wait; nobody expects that of what he only starts.
asio::awaitable<void> begin_later(asio::awaitable<void> task) {
  co_await asio::post(asio::use_awaitable);
  co_await std::move(task);
}

}  // namespace

TaskGroup::TaskGroup(asio::any_io_executor executor) : executor_(std::move(executor)) {}

TaskGroup::~TaskGroup() {
  if (!tasks_.empty()) die("a TaskGroup died with live tasks");
}

void TaskGroup::spawn(asio::awaitable<void> task) {
  if (stopping_) return;
  const std::uint64_t id = next_id_++;
  auto& signal = tasks_[id];
  signal = std::make_unique<asio::cancellation_signal>();
  asio::co_spawn(executor_, begin_later(std::move(task)),
                 asio::bind_cancellation_slot(signal->slot(), [this, id](const std::exception_ptr& error) {
                   check(error);
                   finished(id);
                 }));
}

void TaskGroup::finished(std::uint64_t id) {
  tasks_.erase(id);
  if (tasks_.empty() && on_empty_) std::exchange(on_empty_, nullptr)();
}

asio::awaitable<void> TaskGroup::stop() {
  stopping_ = true;
  std::vector<std::uint64_t> ids;
  ids.reserve(tasks_.size());
  for (const auto& [id, signal] : tasks_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    const auto it = tasks_.find(id);
    if (it != tasks_.end()) it->second->emit(asio::cancellation_type::terminal);
  }
  co_await join();
}

asio::awaitable<void> TaskGroup::join() {
  if (tasks_.empty()) co_return;
  // Whoever waits for the end must not be cancelled away from it. The cancellation itself stays known, and takes effect
  // afterwards: a caller that does not end with the group would otherwise go on for ever.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  asio::steady_timer done(executor_, asio::steady_timer::time_point::max());
  on_empty_ = [&done, earlier = std::move(on_empty_)] {
    if (earlier) earlier();
    done.cancel();
  };
  while (!tasks_.empty()) co_await done.async_wait(asio::as_tuple(asio::use_awaitable));
  co_await asio::this_coro::throw_if_cancelled(throws);
}

}  // namespace spillway::async
