// Virtual time for tests: nothing sleeps, and a coroutine that waits an hour is done in a microsecond.
//
//   VirtualReactor r;
//   auto result = r.run(some_task(...));        // advances time as needed
//   r.run_for(std::chrono::seconds(30));        // lets background loops work for 30 virtual seconds
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "vk-provider/async/timer.hpp"

namespace spillway::test {

class VirtualTimers final : public async::Timers {
 public:
  explicit VirtualTimers(boost::asio::io_context& ctx) : ctx_(ctx) {}

  base::TimePoint now() const override { return now_; }
  base::WallTime wall() const override { return wall_; }
  std::unique_ptr<async::Waiter> make_waiter() override;

  /// Moves to the earliest waiter that is due at or before `limit` and lets it go; false if there is none.
  bool advance_to_next(base::TimePoint limit);
  void advance_to(base::TimePoint t);
  /// A jump of the wall clock alone, as an operator or NTP makes it.
  void jump_wall(base::Duration d) { wall_ += std::chrono::duration_cast<std::chrono::microseconds>(d); }

 private:
  friend class VirtualWaiter;
  struct Key {
    base::TimePoint when;
    std::uint64_t sequence;
    auto operator<=>(const Key&) const = default;
  };

  boost::asio::io_context& ctx_;
  base::TimePoint now_{std::chrono::hours(1)};
  base::WallTime wall_{std::chrono::sys_days(std::chrono::year(2026) / 11 / 29)};
  std::uint64_t sequence_ = 0;
  std::map<Key, class VirtualWaiter*> waiting_;
};

class VirtualReactor {
 public:
  VirtualReactor() : timers(ctx) {}

  /// Runs a task to its end in virtual time. Throws if nothing can ever wake it.
  template <class T>
  T run(boost::asio::awaitable<T> task) {
    std::optional<T> result;
    std::exception_ptr error;
    boost::asio::co_spawn(ctx, std::move(task), [&](const std::exception_ptr& e, T value) {
      error = e;
      result.emplace(std::move(value));
    });
    drive([&] { return result.has_value() || error; });
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }
  void run(boost::asio::awaitable<void> task);

  /// Lets everything that was spawned work for `d` of virtual time.
  void run_for(base::Duration d);
  /// Runs until the predicate holds, at most for `limit` of virtual time; says whether it holds.
  template <class Predicate>
  bool run_until(Predicate done, base::Duration limit) {
    const base::TimePoint end = timers.now() + limit;
    for (;;) {
      settle();
      if (done()) return true;
      if (!timers.advance_to_next(end)) {
        timers.advance_to(end);
        settle();
        return done();
      }
    }
  }
  /// Runs what can run without time passing.
  void settle();

  boost::asio::io_context ctx{1};
  VirtualTimers timers;

 private:
  template <class Predicate>
  void drive(Predicate done) {
    for (;;) {
      settle();
      if (done()) return;
      if (!timers.advance_to_next(base::TimePoint::max())) throw std::logic_error("the task waits for ever");
    }
  }
};

}  // namespace spillway::test
