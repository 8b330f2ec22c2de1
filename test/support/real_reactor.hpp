// A reactor in real time, for the few tests that need real sockets. Everything else uses virtual_time.hpp.
//
//   RealReactor r;
//   auto result = r.run(client->send(...));
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::test {

class RealReactor {
 public:
  RealReactor() : timers(ctx.get_executor()) {}

  /// Runs a task to its end. Throws if it hangs: no test waits that long for anything.
  template <class T>
  T run(boost::asio::awaitable<T> task) {
    std::optional<T> result;
    std::exception_ptr error;
    boost::asio::co_spawn(ctx, std::move(task), [&](const std::exception_ptr& e, T value) {
      error = e;
      if (!e) result.emplace(std::move(value));
    });
    run_until([&] { return result.has_value() || error; });
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }

  void run(boost::asio::awaitable<void> task) {
    bool done = false;
    std::exception_ptr error;
    boost::asio::co_spawn(ctx, std::move(task), [&](const std::exception_ptr& e) {
      error = e;
      done = true;
    });
    run_until([&] { return done; });
    if (error) std::rethrow_exception(error);
  }

  template <class Predicate>
  void run_until(Predicate done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) throw std::logic_error("the task hangs");
      ctx.restart();
      ctx.run_one_for(std::chrono::milliseconds(100));
    }
  }

  boost::asio::io_context ctx{1};
  async::ReactorTimers timers;
};

}  // namespace spillway::test
